// SPDX-License-Identifier: Apache-2.0
//
// nanobind casters of views: the text of a parameter in a Python signature, the import of an
// array as a view (compared with the view's type, proved and kept alive), and the export of a
// view with an owner or a usm_array as a DLPackTensor.
#pragma once

#include <usm_dlpack/nanobind/overloads.hpp>

#include <tuple>

namespace usm_dlpack::detail {

namespace nb = nanobind;

/// The first characters of a string, as signature text.
template <std::size_t... Is>
constexpr auto text_of(const char* name, std::index_sequence<Is...>) {
  return (nb::detail::const_name("") + ... + nb::detail::const_name(name[Is]));
}

/// `float32`, `bool`, `bfloat16`, `float32x4`: a dtype as messages print it, without numbers.
template <class Element>
constexpr auto dtype_text() {
  using nb::detail::const_name;
  constexpr DLDataType dtype = data_type_v<Element>;
  constexpr std::string_view name = type_code_rows[dtype.code].name;
  return text_of(name.data(), std::make_index_sequence<name.size()>{}) +
         const_name<is_named_by_code(dtype)>(const_name(""), const_name<dtype.bits>()) +
         const_name<dtype.lanes == 1>(const_name(""),
                                      const_name("x") + const_name<dtype.lanes>());
}

template <class Extents, std::size_t... Ranks>
constexpr auto shape_text(std::index_sequence<Ranks...>) {
  using nb::detail::const_name;
  return const_name("(") +
         nb::detail::concat(const_name<Extents::static_extent(Ranks) == dynamic_extent>(
             const_name("None"), const_name<Extents::static_extent(Ranks)>())...) +
         const_name<sizeof...(Ranks) == 1>(",", "") + const_name(")");
}

template <sycl::usm::alloc Kind>
constexpr auto kind_text() {
  using nb::detail::const_name;
  constexpr std::string_view name = to_string(Kind);
  return const_name<Kind == sycl::usm::alloc::unknown>(
      const_name(""), const_name(", usm_type='") +
                          text_of(name.data(), std::make_index_sequence<name.size()>{}) +
                          const_name("'"));
}

/// `typing.Annotated[usm_dlpack.UsmArray, dict(dtype='float32', shape=(None, 3))]`
template <class View>
constexpr auto parameter_text() {
  using nb::detail::const_name;
  using extents_type = typename View::extents_type;
  return const_name("typing.Annotated[usm_dlpack.UsmArray, dict(dtype='") +
         dtype_text<element_of<View>>() + const_name("', shape=") +
         shape_text<extents_type>(std::make_index_sequence<extents_type::rank()>{}) +
         kind_text<usm_kind_v<View>>() +
         const_name<has_const_elements<View>>(", writable=False", "") + const_name(")]");
}

/// The tensor of an array, and the reference that keeps it alive.
class array_offer {
 public:
  explicit array_offer(nb::handle array) : array_(array.ptr()) {
    if (package_interface::get().ask(array.ptr(), offered_) == offer::failed) {
      throw nb::python_error();
    }
    owner_ = nb::steal(offered_.owner);
  }

  /// @pre `release` was not called
  bool is_array() const noexcept { return owner_.is_valid(); }
  const DLTensor& tensor() const noexcept { return offered_.tensor; }
  std::uint64_t flags() const noexcept { return offered_.flags; }
  PyObject* release() noexcept { return owner_.release().ptr(); }

  /// Checks that memory that was proved before is of the kind that the view's type names.
  /// Accepts any kind for an array without elements, which has no memory.
  template <class View>
  void check_kind() const {
    const DLTensor& proved = offered_.tensor;
    if (std::count(proved.shape, proved.shape + proved.ndim, 0) == 0) {
      check_usm_type(offered_.proved_kind, require_kind<View>({}));
    }
  }

  std::optional<sycl::queue> queue() const {
    std::optional<sycl::queue> found = offered_.queue;
    if (!found && package_interface::get().find_queue(array_, found) == offer::failed) {
      throw nb::python_error();
    }
    return found;
  }

  /// The view, proved. Dtype and rank are compared first, so that a mismatch lets the next
  /// overload try. Memory that was proved before is not proved again.
  /// @throws conversion_error of the first broken rule: dtype and rank, as `validate` and
  ///         `check_context`, then as `to_mdspan`
  template <class View>
  View view() const {
    const subbyte storage = storage_of(offered_.flags);
    detail::check_element_type<View>(offered_.tensor, storage);
    detail::check_rank<View>(offered_.tensor);
    const requirements wanted = require_kind<View>({});
    if (wanted.writable) {
      check_writable<View>(offered_.flags);
    }
    if (offered_.proved_kind != sycl::usm::alloc::unknown) {
      check_kind<View>();
      return detail::convert<View>(offered_.tensor, storage);
    }
    const usm_allocation proved = detail::import_tensor(offered_.tensor, wanted, storage);
    const sycl::device& root = proved.root_device();
    // OpenCL's CPU driver distinguishes contexts itself.
    if (root.get_backend() != sycl::backend::opencl || !root.is_cpu()) {
      if (const std::optional<sycl::queue> producer = queue()) {
        check_context(proved, *producer);
      }
    }
    return detail::make_view<View>(offered_.tensor, proved.structure(), storage);
  }

 private:
  PyObject* array_;
  array_description offered_;
  nb::object owner_;
};

/// An owner that any thread may destroy: a `python_owner` of a Python handle, or else the
/// owner.
template <class Owner>
decltype(auto) any_thread_owner(Owner&& owner) {
  if constexpr (std::is_convertible_v<Owner, nb::handle>) {
    return python_owner(owner);
  } else {
    return std::forward<Owner>(owner);
  }
}

}  // namespace usm_dlpack::detail

namespace usm_dlpack {

/// A view with an owner. Returned from a function, it becomes a `usm_dlpack.DLPackTensor` that
/// shares the memory. As a parameter, or made of a Python object by `nb::cast`, it keeps the
/// array's memory alive for as long as it lives, on any thread. Movable, not copyable.
///
/// Nothing here waits: wait for pending work, or order your work behind it.
template <class View>
class owned_view {
 public:
  using view_type = View;

  /// Makes a result. Python proves it: `validate` refuses memory that is not USM of the
  /// queue's root device.
  /// @param queue works on the memory; the DLPackTensor's `sycl_queue`
  /// @param owner anything movable that keeps the memory alive: for example a Python object,
  ///        which is dropped with the GIL. Any other owner's destructor runs on any thread,
  ///        with the GIL or without; it must not throw, and not need the GIL. What is in it is
  ///        not looked at: put a `python_owner` in it, not an `nb::object`
  /// @throws conversion_error `context_not_default`, `device_without_id`, and as
  ///         `to_managed_tensor(view, device, owner)`; `owner` is then untouched
  template <class Owner>
  owned_view(const View& view, const sycl::queue& queue, Owner&& owner)
      : view_(view),
        queue_(queue),
        managed_(usm_dlpack::to_managed_tensor(
            view, DLDevice{kDLOneAPI, detail::export_id(queue)},
            detail::any_thread_owner(std::forward<Owner>(owner)))) {}

  /// Makes a result of an array that owns its memory, and whose view converts to this type.
  /// The array's destructor waits, without the GIL.
  /// @param kept objects that the work on the array's queue reads, for example other views
  ///        with owners; destroyed after the array, so after that work, as an `owner` is
  template <class Made, class... Kept,
            std::enable_if_t<std::is_constructible_v<View, const Made&>, int> = 0>
  owned_view(usm_array<Made>&& array, Kept&&... kept)
      : view_(array.view()),
        queue_(array.queue()),
        managed_(own(std::move(array), std::forward<Kept>(kept)...)) {}

  /// Holds a proved import. Const elements make the tensor read-only for later consumers.
  /// @pre `view` was made of `managed`
  owned_view(const View& view, std::optional<sycl::queue> queue, managed_tensor managed)
      : view_(view), queue_(std::move(queue)), managed_(std::move(managed)) {
    if (managed_ != nullptr) {
      managed_.get()->flags |= detail::flags_of<View>();
    }
  }

  const View& view() const noexcept { return view_; }
  /// The queue that may still work on the memory; none if the array reports none.
  const std::optional<sycl::queue>& queue() const noexcept { return queue_; }
  /// The managed tensor that keeps the memory alive, borrowed; null after `release`.
  const DLManagedTensorVersioned* managed() const noexcept { return managed_.get(); }
  /// Gives the managed tensor away; null after `release`.
  managed_tensor release() && noexcept { return std::move(managed_); }

 private:
  // The array is destroyed first, because its destructor waits.
  template <class Made, class... Kept>
  struct array_and_kept {
    std::tuple<Kept...> kept;
    usm_array<Made> array;
  };

  template <class Made, class... Kept>
  static managed_tensor own(usm_array<Made>&& array, Kept&&... kept) {
    const View view(array.view());
    const DLDevice device{kDLOneAPI, array.device_id()};
    using owner_type = array_and_kept<
        Made, std::decay_t<decltype(detail::any_thread_owner(std::declval<Kept>()))>...>;
    return usm_dlpack::to_managed_tensor(
        view, device,
        owner_type{{detail::any_thread_owner(std::forward<Kept>(kept))...}, std::move(array)});
  }

  View view_;
  std::optional<sycl::queue> queue_;
  managed_tensor managed_;
};

namespace detail {

/// Makes a proved DLPackTensor; a null handle with the Python error set if that fails.
/// @param result an `owned_view` or a `usm_array`
template <class View, class Result>
nb::handle to_python(Result&& result) noexcept {
  return made_or_error([&] {
    owned_view<View> made(std::forward<Result>(result));
    if (made.managed() == nullptr) {
      refuse(errc::request_unsupported, "return", "a view with an owner",
             "one that was moved from or released", "return it before that");
    }
    const std::optional<sycl::queue> queue = made.queue();
    nb::object tensor = nb::steal(package_interface::get().make_tensor(
        std::move(made).release().release(), queue ? &*queue : nullptr));
    if (tensor.is_valid() && usm_kind_v<View> != sycl::usm::alloc::unknown) {
      array_offer(tensor).template check_kind<View>();
    }
    return tensor;
  });
}

/// Imports a parameter that is a view. A wrong type, dtype, rank, extent or layout lets the
/// next overload try; every other error is kept, and raised after all parameters of this
/// overload have taken their arguments.
/// @tparam Made the parameter's type: the view, or the view with an owner
template <class Made, class View>
class view_parameter : public kept_argument<Made> {
 protected:
  /// @param keep takes the view and the offer if both are good
  /// @return whether this overload accepts the object
  template <class Keep>
  bool take(nb::handle object, std::uint32_t flags, nb::detail::cleanup_list* cleanup,
            Keep&& keep) noexcept {
    const nb::object alive = nb::borrow(object);  // __dlpack__ may remove it from its list
    this->value.reset();
    if (is_cast(flags)) {
      return this->take_or_leave_error([&] {
        array_offer array(object);
        if (!array.is_array()) {
          PyErr_SetString(PyExc_TypeError,
                          "x: expected an array with __dlpack__ or USM, "
                          "found another object; pass the array itself");
          throw nb::python_error();
        }
        keep(array.template view<View>(), array);
      });
    }
    if (object.is_none()) {
      return true;
    }
    if (search_ended(flags, cleanup)) {
      return false;
    }
    if (const auto call = recorded_calls().find(cleanup); call != recorded_calls().end()) {
      this->error = call->second.raised;  // an interrupt in the first round
      if (this->error != nullptr) {
        return true;
      }
    }
    try {
      return try_to_take(object, cleanup, keep);
    } catch (const conversion_error& refused) {
      set_error(refused);
      this->error = std::make_exception_ptr(nb::python_error());
      end_search(flags, cleanup);
    } catch (const nb::python_error& raised) {
      this->error = std::current_exception();
      if (is_refusal(raised)) {
        end_search(flags, cleanup);
      }
    } catch (...) {
      this->error = std::current_exception();
    }
    return true;
  }

 private:
  void end_search(std::uint32_t flags, nb::detail::cleanup_list* cleanup) noexcept {
    this->ends_search = last_overload_raises(flags, cleanup) ? cleanup : nullptr;
  }

  /// Whether a producer, or the reader of its array interface, refuses the array.
  static bool is_refusal(const nb::python_error& raised) {
    return raised.matches(PyExc_BufferError) || raised.matches(PyExc_TypeError) ||
           raised.matches(PyExc_ValueError);
  }

  template <class Keep>
  static bool try_to_take(nb::handle object, nb::detail::cleanup_list* cleanup, Keep& keep) {
    try {
      array_offer array(object);
      if (!array.is_array()) {
        record_refusal(object, cleanup);
        return false;
      }
      const DLTensor& tensor = array.tensor();
      const subbyte storage = storage_of(array.flags());
      constexpr DLDataType wanted = data_type_v<typename View::element_type>;
      if (!same_data_type(tensor.dtype, wanted) ||
          static_cast<std::size_t>(tensor.ndim) != View::rank()) {
        // Another overload is likely to take it, so no exception is made yet.
        record_refusal(object, cleanup, [tensor, storage] {
          detail::check_element_type<View>(tensor, storage);
          detail::check_rank<View>(tensor);
        });
        return false;
      }
      keep(array.template view<View>(), array);
      record_taken(object, cleanup);
      return true;
    } catch (const conversion_error& refused) {
      record_refusal(object, cleanup, [refused] { throw conversion_error(refused); });
      if (!is_of_type(refused.code())) {
        throw;
      }
      return false;
    } catch (const nb::python_error& raised) {
      if (is_refusal(raised)) {
        record_refusal(object, cleanup, [raised] { throw nb::python_error(raised); });
      } else if (cleanup != nullptr && record_of(cleanup).raised == nullptr) {
        record_of(cleanup).raised = std::current_exception();
      }
      throw;
    }
  }
};

template <class View>
owned_view<View> own_array(const View& view, array_offer& array) {
  std::optional<sycl::queue> queue = array.queue();
  const DLTensor tensor = array.tensor();
  const std::uint64_t flags = array.flags() & ~flag::is_copied;
  return {
      view, std::move(queue),
      usm_dlpack::to_managed_tensor(tensor, python_owner(nb::steal(array.release())), flags)};
}

}  // namespace detail

/// Imports the Python package usm_dlpack, which registers the CPU driver of a wheel before the
/// first device query, and translates a thrown `conversion_error` to
/// `usm_dlpack.ConversionError`. Call it once, at the beginning of `NB_MODULE`.
/// @throws nb::python_error ImportError for no package, or another interface version
inline void load_package() {
  detail::package_interface::get();
  nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const conversion_error& error) {
      detail::set_error(error);
    }
  });
}

}  // namespace usm_dlpack

namespace nanobind::detail {

/// Caster of a view that lives as long as the call.
template <typename View>
struct type_caster<View, enable_if_t<usm_dlpack::detail::is_view<View>>>
    : usm_dlpack::detail::view_parameter<View, View> {
  static constexpr auto Name = usm_dlpack::detail::parameter_text<View>();

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    return this->take(source, flags, cleanup, [&](const View& view, auto& array) {
      if (usm_dlpack::detail::is_cast(flags) || cleanup == nullptr) {  // nb::isinstance
        usm_dlpack::detail::refuse(usm_dlpack::errc::request_unsupported, "view",
                                   "a parameter of a function, which keeps the memory",
                                   "a cast, which would not", "cast to an owned_view");
      }
      this->value.emplace(view);
      cleanup->append(array.release());
    });
  }

  template <class T>
  static handle from_cpp(T&&, rv_policy, cleanup_list*) {
    static_assert(!std::is_same_v<View, View>,
                  "return: expected a view with an owner, found a view alone, whose memory "
                  "nothing keeps; return an owned_view or a usm_array");
    return {};
  }
};

template <typename View>
struct type_caster<usm_dlpack::owned_view<View>>
    : usm_dlpack::detail::view_parameter<usm_dlpack::owned_view<View>, View> {
  // nanobind's `@input@output@`
  static constexpr auto Name = const_name("@") + usm_dlpack::detail::parameter_text<View>() +
                               const_name("@usm_dlpack.DLPackTensor@");

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    return this->take(source, flags, cleanup, [&](const View& view, auto& array) {
      this->value.emplace(usm_dlpack::detail::own_array(view, array));
    });
  }

  static handle from_cpp(usm_dlpack::owned_view<View>&& value, rv_policy,
                         cleanup_list*) noexcept {
    return usm_dlpack::detail::to_python<View>(std::move(value));
  }
};

template <typename View>
struct type_caster<usm_dlpack::usm_array<View>> {
  using array = usm_dlpack::usm_array<View>;
  static constexpr auto Name = const_name("usm_dlpack.DLPackTensor");
  template <class T>
  using Cast = movable_cast_t<T>;
  template <class>
  static constexpr bool can_cast() {
    return true;
  }

  bool from_python(handle, std::uint32_t, cleanup_list*) noexcept {
    static_assert(!std::is_same_v<View, View>,
                  "parameter: expected a view, found a usm_array, which would own memory that "
                  "is Python's; take the mdspan type, or an owned_view");
    return false;
  }

  static handle from_cpp(array&& value, rv_policy, cleanup_list*) noexcept {
    return usm_dlpack::detail::to_python<View>(std::move(value));
  }

  explicit operator array&();
  explicit operator array&&();
};

}  // namespace nanobind::detail
