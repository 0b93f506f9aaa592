// SPDX-License-Identifier: Apache-2.0
//
// An array for results: it owns USM that can leave the process, shows it as an mdspan, and
// becomes a managed tensor without a copy.
#pragma once

#include <usm_dlpack/array_shape.hpp>
#include <usm_dlpack/managed.hpp>
#include <usm_dlpack/usm_block.hpp>
#include <usm_dlpack/usm_mdspan.hpp>

#include <sycl/sycl.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace usm_dlpack {
/// Owns an array in USM, and shows it as the mdspan type `View`. For results: made here,
/// filled by kernels, and handed out by `to_managed_tensor(std::move(array))`.
///
/// The kind of the USM is the one that `View` names, or, for a plain type, that which the
/// constructor is given. The elements are uninitialised. The memory is that of the queue's
/// device, in the default context of its platform, begins at a multiple of 256 bytes, which
/// DLPack asks of `DLTensor::data`, and is there for an empty array too. Moved from, an array
/// may only be destroyed or assigned to.
///
/// The destructor waits for what the array's queue has been given so far, and frees then: work
/// on this queue may be pending when the array goes, also in the deleter of a managed tensor.
/// Work on other queues must be done, or the array's queue depend on it. If the runtime cannot
/// say that the queue is done (it throws, or the queue records a graph), the memory is left
/// alone for good rather than freed under a kernel. It never throws.
/// In an extension of Python it gives up the GIL while it waits, and keeps it where the queue
/// has no work.
/// @pre the array does not go in a host task of its queue, which would wait for itself; nor in
///      Python under a lock that other threads wait for with the GIL
template <class View>
class usm_array {
  static_assert(detail::is_view<View>,
                "view: expected a type with the interface of mdspan, found another; "
                "use the type of an mdspan");
  static_assert(!detail::has_const_elements<View>,
                "element_type: expected mutable elements, found const ones; "
                "take the element type without const, and a view of const elements of it");
  static_assert(sycl::is_device_copyable_v<typename View::element_type>,
                "element_type: expected a device copyable type, found another; "
                "use elements that a device can hold");
  static_assert(detail::require_view<View, true>() +
                    detail::require_dtype<detail::element_of<View>>() ==
                0);

  static constexpr bool is_plain = usm_kind_v<View> == sycl::usm::alloc::unknown;

 public:
  using view_type = View;
  using element_type = typename View::element_type;
  using extents_type = typename View::extents_type;
  using mapping_type = typename View::mapping_type;

  /// Alignment of the memory in bytes: that of the elements, or what the view's accessor
  /// promises, if that is more than 256. Source: DLPack `DLTensor::data`.
  static constexpr std::size_t alignment =
      std::max({std::size_t{256}, alignof(element_type),
                detail::promised_alignment<detail::accessor_of<View>>});

  /// Allocates USM of the kind that `View` names, device USM if it names none.
  /// @param queue one made from a root device alone; kept
  /// @param shape extents, or a mapping for a layout that needs more
  /// @throws conversion_error `context_not_default`, `device_without_id`,
  ///         `extent_out_of_range`, `extent_mismatch`, `index_type_too_small`,
  ///         `span_overflow`, those of the
  ///         view, `data_null` if there is no memory, `runtime_error`
  template <class Shape,
            std::enable_if_t<std::is_constructible_v<mapping_type, const Shape&>, int> = 0>
  usm_array(const sycl::queue& queue, const Shape& shape)
      : usm_array(queue, shape, is_plain ? sycl::usm::alloc::device : usm_kind_v<View>,
                  checked{}) {}

  /// The same for a plain type, in USM of the given kind.
  /// @throws conversion_error also `usm_type_not_accepted` for the kind unknown
  template <
      class Shape, bool Plain = is_plain,
      std::enable_if_t<Plain && std::is_constructible_v<mapping_type, const Shape&>, int> = 0>
  usm_array(const sycl::queue& queue, const Shape& shape, sycl::usm::alloc kind)
      : usm_array(queue, shape, check_kind(kind), checked{}) {}

  usm_array(usm_array&&) noexcept = default;
  usm_array& operator=(usm_array&&) noexcept = default;
  usm_array(const usm_array&) = delete;
  usm_array& operator=(const usm_array&) = delete;
  ~usm_array() = default;

  /// The view of the elements, which must not outlive the array or its managed tensor.
  View view() const& USM_DLPACK_LIFETIMEBOUND { return View(data(), mapping_); }
  View view() const&& = delete;
  /// Address of the memory, as `view().data_handle()`; not null for an empty array.
  element_type* data() const noexcept { return static_cast<element_type*>(block_.address()); }
  /// Bytes of the elements and the gaps between them; 0 for an empty array.
  std::size_t size_bytes() const noexcept {
    return static_cast<std::size_t>(mapping_.required_span_size()) * sizeof(element_type);
  }
  /// The queue that the array was made with, and whose work the destructor waits for.
  const sycl::queue& queue() const noexcept { return block_.queue(); }
  sycl::usm::alloc usm_type() const noexcept { return kind_; }
  /// The DLPack id of the queue's root device.
  std::int32_t device_id() const noexcept { return device_id_; }

 private:
  struct checked {};

  template <class Shape>
  usm_array(const sycl::queue& queue, const Shape& shape, sycl::usm::alloc kind, checked)
      : device_id_(detail::export_id(queue)),
        kind_(kind),
        mapping_(make_mapping(shape)),
        block_(queue, kind, alignment, size_to_allocate(mapping_)) {}

  static sycl::usm::alloc check_kind(sycl::usm::alloc kind) {
    if (kind == sycl::usm::alloc::unknown) {
      detail::refuse(errc::usm_type_not_accepted, "kind", "host or device or shared USM",
                     usm_dlpack::to_string(kind), "name the kind that the array is to be in");
    }
    return kind;
  }

  /// Looks at extents before a mapping counts with them: its products may overflow.
  template <class Shape>
  static mapping_type make_mapping(const Shape& shape) {
    if constexpr (std::is_constructible_v<extents_type, const Shape&> &&
                  detail::is_readable<Shape>) {
      detail::check_shape<extents_type>(shape);
      const extents_type extents(shape);
      detail::check_product<mapping_type>(extents);
      return mapping_type(extents);
    } else {
      return mapping_type(shape);
    }
  }

  /// Bytes to allocate. What could not be exported is refused before there is memory.
  static std::size_t size_to_allocate(const mapping_type& mapping) {
    detail::check_product<mapping_type>(mapping.extents());
    constexpr DLDevice any_device{kDLOneAPI, 0};
    static_cast<void>(detail::describe<detail::empty_data::kept>(
        View(typename View::data_handle_type{}, mapping), any_device));
    constexpr auto most =
        static_cast<std::uint64_t>(std::numeric_limits<std::ptrdiff_t>::max()) /
        sizeof(element_type);
    const auto count = mapping.required_span_size();
    if (!detail::fits_int64(count) || static_cast<std::uint64_t>(count) > most) {
      detail::refuse(errc::span_overflow, "shape",
                     "at most " + detail::digits(most) + " elements of the element type",
                     detail::digits(count), "make the array smaller");
    }
    const std::size_t size = static_cast<std::size_t>(count) * sizeof(element_type);
    return size == 0 ? alignment : size;
  }

  std::int32_t device_id_;
  sycl::usm::alloc kind_;
  mapping_type mapping_;
  detail::usm_block block_;
};

namespace detail {

/// What leaves the process of an array. No SYCL call: the array has proved it when it was
/// made.
template <class View>
dlpack_tensor<View::rank()> describe_array(const usm_array<View>& array) {
  return detail::describe_owned(array.view(), DLDevice{kDLOneAPI, array.device_id()});
}

}  // namespace detail

/// Makes a managed tensor that owns the array: no copy, and no allocation but the tensor's
/// own. Does not wait: whoever gets it waits for `queue()`, or is handed it. When the deleter
/// runs, the array goes as its destructor says.
/// @throws conversion_error if a rule is broken; the array is then untouched
/// @throws std::bad_alloc if there is no memory for the tensor; the array is then untouched
template <class View>
[[nodiscard]] managed_tensor to_managed_tensor(usm_array<View>&& array) {
  const auto tensor = detail::describe_array(array);
  return managed_tensor(detail::make_managed<DLManagedTensorVersioned>(
      tensor.get(), detail::flags_of<View>(), std::move(array)));
}

/// The same as a legacy managed tensor, which cannot say that elements are padded.
/// @throws conversion_error also `dtype_unsupported`
template <class View>
[[nodiscard]] legacy_managed_tensor to_legacy_managed_tensor(usm_array<View>&& array) {
  detail::check_legacy_flags(detail::flags_of<View>());
  const auto tensor = detail::describe_array(array);
  return legacy_managed_tensor(detail::make_managed<DLManagedTensor>(
      tensor.get(), detail::flags_of<View>(), std::move(array)));
}

}  // namespace usm_dlpack
