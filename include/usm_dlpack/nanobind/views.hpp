// SPDX-License-Identifier: Apache-2.0
//
// nanobind casters of views: the text of a parameter in a Python signature, the import of an
// array as a view (compared with the view's type, proved and kept alive), and the export of a
// view with an owner or a usm_array as a DLPackTensor.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/dtype.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/core/structure.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>
#include <usm_dlpack/core/view.hpp>
#include <usm_dlpack/nanobind/argument.hpp>
#include <usm_dlpack/nanobind/owned_view.hpp>
#include <usm_dlpack/nanobind/package.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/to_mdspan.hpp>
#include <usm_dlpack/sycl/usm_array.hpp>
#include <usm_dlpack/sycl/validate.hpp>

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

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

/// What a view's type requires of a tensor.
template <class View>
requirements requirements_of() {
  requirements wanted = require_kind<View>({});
  wanted.dtype = data_type_v<typename View::element_type>;
  wanted.ndim = static_cast<std::int32_t>(View::rank());
  return wanted;
}

/// An array as an argument for a view.
class array_offer {
 public:
  array_offer(nb::handle array, const requirements& wanted)
      : answer_(package_interface::get().ask(array.ptr(), wanted, tensor_)) {
    if (answer_ == offer::failed) {
      throw nb::python_error();
    }
    if (answer_ == offer::refused) {
      refusal_.emplace();
    }
  }

  bool is_array() const noexcept { return answer_ != offer::no_array; }
  /// Whether the dtype or the rank is not the view's.
  bool is_of_other_type() const noexcept { return answer_ == offer::other_type; }
  /// The Python error if the package refuses the array.
  const std::optional<nb::python_error>& refusal() const noexcept { return refusal_; }
  proved_tensor& tensor() noexcept { return tensor_; }
  nb::object& owner() noexcept { return std::get<nb::object>(tensor_.owner); }

  /// @throws conversion_error if the tensor's type, extents or layout are not the view's
  template <class View>
  View view() const {
    const subbyte storage = tensor_.storage();
    if (is_of_other_type()) {
      detail::check_element_type<View>(tensor_.described, storage);
      detail::check_rank<View>(tensor_.described);
    }
    return detail::make_view<View>(tensor_.described, tensor_.structure(), storage);
  }

 private:
  proved_tensor tensor_;
  offer answer_;
  std::optional<nb::python_error> refusal_;
};

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
    requirements wanted;
    wanted.usm_types = require_kind<View>({}).usm_types;
    return nb::steal(package_interface::get().make_tensor(std::move(made).release().release(),
                                                          queue ? &*queue : nullptr, wanted));
  });
}

/// Whether a rule depends on the view's type, so that another overload may accept the array.
constexpr bool is_of_type(errc rule) noexcept {
  return rule == errc::dtype_mismatch || rule == errc::rank_mismatch ||
         rule == errc::extent_mismatch || rule == errc::index_type_too_small ||
         rule == errc::layout_mismatch;
}

/// The Python error of a refused argument. Its text begins with what the function takes,
/// because nanobind does not tell the names of the function and the argument.
template <class View>
nb::python_error refusal_of_parameter(nb::python_error error) {
  static constexpr auto wanted = dtype_text<element_of<View>>() +
                                 nb::detail::const_name(" view of rank ") +
                                 nb::detail::const_name<View::rank()>();
  error.value().attr("args") =
      nb::make_tuple(nb::str("{}: {}").format(wanted.text, error.value()));
  return error;
}

/// Imports a parameter that is a view. A wrong type, dtype, rank, extent or layout lets the
/// next overload try in the first round, and in the second if another one took the array
/// before; every other error is kept, and raised when the function would take its arguments.
/// @tparam Made the parameter's type: the view, or the view with an owner
template <class Made, class View>
class view_parameter : public kept_argument<Made> {
 protected:
  /// @param use takes the view and the offer if both are good
  /// @return whether this overload accepts the object
  template <class Use>
  bool take(nb::handle object, std::uint32_t flags, nb::detail::cleanup_list* call,
            Use&& use) noexcept {
    const nb::object alive = nb::borrow(object);  // __dlpack__ may remove it from its list
    const char* sentence =
        "x: expected an array with __dlpack__ or USM, found another object; pass the array "
        "itself";
    return this->keep(object, flags, call, sentence, [&] {
      array_offer array(object, requirements_of<View>());
      const bool may_leave =
          !is_cast(flags) && (is_first_round(flags) || was_taken(object, *call));
      if (!array.is_array() || (may_leave && array.is_of_other_type())) {
        return false;
      }
      if (array.refusal()) {
        throw is_cast(flags) ? *array.refusal() : refusal_of_parameter<View>(*array.refusal());
      }
      try {
        use(array.template view<View>(), array);
      } catch (const conversion_error& refused) {
        if (is_cast(flags)) {
          throw;
        }
        if (may_leave && is_of_type(refused.code())) {
          return false;
        }
        set_error(refused);
        throw refusal_of_parameter<View>(nb::python_error());
      }
      if (call != nullptr && is_first_round(flags)) {
        note_taken(object, *call);
      }
      return true;
    });
  }
};

template <class View>
owned_view<View> own_array(const View& view, array_offer& array) {
  const proved_tensor& tensor = array.tensor();
  return {view, tensor.queue,
          usm_dlpack::to_managed_tensor(tensor.described, python_owner(array.owner()),
                                        tensor.flags & ~flag::is_copied)};
}

}  // namespace usm_dlpack::detail

namespace nanobind::detail {

/// Caster of a view that lives as long as the call.
template <typename View>
struct type_caster<View, enable_if_t<usm_dlpack::detail::is_view<View>>>
    : usm_dlpack::detail::view_parameter<View, View> {
  static constexpr auto Name = usm_dlpack::detail::parameter_text<View>();

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    return this->take(source, flags, cleanup, [&](const View& view, auto& array) {
      if (usm_dlpack::detail::is_cast(flags)) {
        usm_dlpack::detail::refuse(usm_dlpack::errc::request_unsupported, "view",
                                   "a parameter of a function, which keeps the memory",
                                   "a cast, which would not", "cast to an owned_view");
      }
      this->value.emplace(view);
      if (cleanup != nullptr) {  // nb::isinstance has none
        cleanup->append(array.owner().release().ptr());
      }
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
