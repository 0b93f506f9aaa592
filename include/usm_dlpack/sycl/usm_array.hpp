// SPDX-License-Identifier: Apache-2.0
//
// An array for results: owns exportable USM, exposes it as an mdspan, and becomes a managed
// tensor without a copy. Its destructor waits for the work on the memory: keep that where you
// change it.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/core/strides.hpp>
#include <usm_dlpack/core/to_dlpack.hpp>
#include <usm_dlpack/core/view.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/queues.hpp>
#include <usm_dlpack/sycl/to_dlpack.hpp>
#include <usm_dlpack/sycl/to_mdspan.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

namespace usm_dlpack::detail {

/// Extents of 0 count as 1, because the strides of an empty array are products too.
template <class Mapping>
void check_product(const typename Mapping::extents_type& extents) {
  constexpr std::size_t rank = Mapping::extents_type::rank();
  strided_shape<rank> array{};
  for (std::size_t r = 0; r < rank; ++r) {
    const std::int64_t extent = to_extent(extents.extent(r), r);
    array.shape[r] = extent == 0 ? 1 : extent;
  }
  if (!holds_product<Mapping>(array, in_layout<Mapping>(array, is_left<Mapping>))) {
    refuse_product<typename Mapping::extents_type::index_type>();
  }
}

template <class Shape, class = void>
inline constexpr bool has_extents = false;
template <class Shape>
inline constexpr bool has_extents<
    Shape, std::void_t<decltype(std::declval<const Shape&>().extent(std::size_t{})),
                       decltype(Shape::rank())>> = true;

/// Whether the extents of a requested shape can be read: it is like mdspan's extents, or a
/// container of integers.
template <class Shape, class = void>
inline constexpr bool is_readable = has_extents<Shape>;
template <class Shape>
inline constexpr bool is_readable<
    Shape, std::void_t<decltype(std::declval<const Shape&>().size()),
                       decltype(std::declval<const Shape&>()[std::size_t{}])>> =
    std::is_integral_v<std::decay_t<decltype(std::declval<const Shape&>()[std::size_t{}])>>;

/// Validates a requested shape (all extents, or the dynamic ones) before building extents.
template <class Extents, class Shape>
void check_requested_shape(const Shape& shape) {
  using index_type = typename Extents::index_type;
  std::size_t count = 0;
  if constexpr (has_extents<Shape>) {
    count = Shape::rank();
  } else {
    count = shape.size();
  }
  const auto extent_at = [&](std::size_t i) {
    if constexpr (has_extents<Shape>) {
      return shape.extent(i);
    } else {
      return shape[i];
    }
  };
  std::size_t next = 0;
  for (std::size_t r = 0; r < Extents::rank() && next < count; ++r) {
    const std::size_t fixed = Extents::static_extent(r);
    if (fixed != dynamic_extent && count != Extents::rank()) {
      continue;
    }
    const std::int64_t extent = to_extent(extent_at(next++), r);
    if (fixed != dynamic_extent && fixed != static_cast<std::size_t>(extent)) {
      refuse_extent_mismatch(r, fixed, extent);
    }
    if (!fits<index_type>(extent)) {
      refuse_index_type<index_type>(indexed("shape", r), extent);
    }
  }
}

/// The device id for exports of USM of a queue. Refuses a queue of another context than the
/// default one.
inline std::int32_t export_id(const sycl::queue& queue) {
  const sycl::context context = queue.get_context();
  if (device_table::get().find(context) == nullptr) {
    refuse_context(nullptr, true, context, -1);
  }
  return device_id(queue.get_device());
}

/// Refuses an array that was moved from.
template <class Array>
void check_not_moved_from(const Array& array) {
  if (array.data() == nullptr) {
    refuse(errc::invalid_tensor, "data", "the memory of the array", "null: it was moved from",
           "use the array that it was moved to");
  }
}

struct usm_deleter {
  sycl::queue queue;
  void* base;  ///< of the allocation, which the array may begin within

  usm_deleter(const sycl::queue& of, void* begin) : queue(of), base(begin) {}
  usm_deleter(const usm_deleter&) =
      default;  // and no move: a moved-from array keeps its queue
  usm_deleter& operator=(const usm_deleter&) = default;
  void operator()(void*) const noexcept { queue_functions_now().free_after_work(queue, base); }
};
/// Owns one USM allocation of a queue's device and context. Null after a move.
using usm_block = std::unique_ptr<void, usm_deleter>;

/// Allocates aligned memory: within a larger allocation if the backend does not align it.
inline usm_block allocate(const sycl::queue& queue, sycl::usm::alloc kind,
                          std::size_t alignment, std::size_t size) {
  queue_functions_now().free_finished();
  const sycl::device device = queue.get_device();
  const sycl::context context = queue.get_context();
  std::size_t space = size;
  void* base = with_runtime_errors(
      "data", [&] { return sycl::aligned_alloc(alignment, space, device, context, kind); });
  void* address = base;
  // CUDA returns null above 512 bytes, Level Zero above 64 KiB; PoCL 7.1 does not align.
  if (base == nullptr || std::align(alignment, size, address, space) == nullptr) {
    if (base != nullptr) {
      sycl::free(base, context);
    }
    space = size + alignment;
    base = with_runtime_errors("data",
                               [&] { return sycl::malloc(space, device, context, kind); });
    address = base;
    address = std::align(alignment, size, address, space);
  }
  if (address == nullptr) {
    refuse(errc::runtime_error, "data",
           digits(size) + " bytes of " + to_string(kind) + " USM for the array",
           "null: the SYCL runtime had none to give", "free other memory, or use less");
  }
  return usm_block(address, usm_deleter{queue, base});
}

}  // namespace usm_dlpack::detail

namespace usm_dlpack {
/// Owns an array in USM and exposes it as the mdspan type `View`. For results: allocate it,
/// fill it by kernels, and return `to_managed_tensor(std::move(array))`.
///
/// The USM kind is the one that `View` names, or the constructor's argument for a plain type.
/// The elements are uninitialised. The memory is on the queue's device, in its platform's
/// default context. It begins at a multiple of 256 bytes, as DLPack specifies for
/// `DLTensor::data`, and exists for an empty array too. Movable, not copyable; a moved-from
/// array keeps its queue.
///
/// The destructor waits for the work submitted to the array's queue so far, then frees; the
/// deleter of a managed tensor does the same. Work on other queues must be done, or the
/// array's queue must depend on it. With the Python package, a thread that runs no Python code
/// may be a host task, so it does not wait: a later allocation frees the memory. If the
/// runtime cannot confirm that the queue is done (it throws, or the queue records a graph),
/// the memory is leaked rather than freed under a kernel. Never throws. In a Python extension
/// it releases the GIL.
/// @pre without the Python package, the array is not destroyed in a host task of its queue,
///      which would wait for itself; with it, not under a lock that other threads wait for
///      while they hold the GIL
template <class View>
class usm_array {
  static_assert(detail::required_view<View>::value == 0);
  static_assert(!detail::has_const_elements<View>,
                "element_type: expected mutable elements, found const ones; "
                "take the element type without const, and a view of const elements of it");

  static constexpr bool is_plain = usm_kind_v<View> == sycl::usm::alloc::unknown;

 public:
  using view_type = View;
  using element_type = typename View::element_type;
  using extents_type = typename View::extents_type;
  using mapping_type = typename View::mapping_type;

 private:
  /// Whether a mapping is made from the extents of a shape, which can be checked before.
  template <class Shape>
  static constexpr bool gives_extents =
      detail::is_readable<Shape> && std::is_constructible_v<extents_type, const Shape&> &&
      std::is_constructible_v<mapping_type, extents_type>;
  template <class Shape>
  static constexpr bool is_shape =
      gives_extents<Shape> || std::is_constructible_v<mapping_type, const Shape&>;

 public:
  /// Alignment of the memory in bytes: at least 256, more if the elements need it or the
  /// view's accessor promises it. Source: DLPack `DLTensor::data`.
  static constexpr std::size_t alignment =
      std::max({std::size_t{256}, alignof(element_type),
                detail::promised_alignment<detail::accessor_of<View>>});

  /// Allocates USM of the kind that `View` names; device USM if it names none.
  /// @param queue made from a root device without a context; the array stores a copy
  /// @param shape extents, or a mapping if the layout needs more
  /// @throws conversion_error `context_not_default`, `device_without_id`,
  ///         `out_of_range`, `shape_mismatch`, `index_type_too_small`, those of the view,
  ///         `runtime_error`, also if there is no memory
  template <class Shape, std::enable_if_t<is_shape<Shape>, int> = 0>
  usm_array(const sycl::queue& queue, const Shape& shape)
      : usm_array(is_plain ? sycl::usm::alloc::device : usm_kind_v<View>, queue, shape) {}

  /// Allocates USM of a kind for a plain type.
  /// @throws conversion_error also `usm_type_not_accepted` for the kind unknown
  template <class Shape, bool Plain = is_plain,
            std::enable_if_t<Plain && is_shape<Shape>, int> = 0>
  usm_array(const sycl::queue& queue, const Shape& shape, sycl::usm::alloc kind)
      : usm_array(checked_kind(kind), queue, shape) {}

  usm_array(usm_array&&) noexcept = default;
  /// Frees the old memory last: while that waits, other threads may read this array.
  usm_array& operator=(usm_array&& other) noexcept {
    detail::usm_block block = std::move(other.block_);
    device_id_ = other.device_id_;
    kind_ = other.kind_;
    mapping_ = other.mapping_;
    block_.swap(block);
    return *this;
  }

  /// The elements, on which `queue()` may still work: a view has no queue, so pass the array
  /// itself to others. Must not outlive the array or its managed tensor.
  /// @throws conversion_error `invalid_tensor` if the array was moved from
  View view() const& USM_DLPACK_LIFETIMEBOUND {
    detail::check_not_moved_from(*this);
    return View(data(), mapping_);
  }
  View view() const&& = delete;  // keep the array in a variable
  /// Address of the memory; not null for an empty array.
  element_type* data() const noexcept { return static_cast<element_type*>(block_.get()); }
  /// Bytes of the elements and the gaps between them; 0 for an empty array.
  std::size_t size_bytes() const noexcept {
    return static_cast<std::size_t>(mapping_.required_span_size()) * sizeof(element_type);
  }
  /// The queue of the constructor, for whose work the destructor waits.
  const sycl::queue& queue() const noexcept { return block_.get_deleter().queue; }
  sycl::usm::alloc usm_type() const noexcept { return kind_; }
  /// The DLPack id of the queue's root device.
  std::int32_t device_id() const noexcept { return device_id_; }

 private:
  /// @param kind host, device or shared
  template <class Shape>
  usm_array(sycl::usm::alloc kind, const sycl::queue& queue, const Shape& shape)
      : device_id_(detail::export_id(queue)),
        kind_(kind),
        mapping_(make_mapping(shape)),
        block_(detail::allocate(queue, kind, alignment, size_to_allocate(mapping_))) {}

  static sycl::usm::alloc checked_kind(sycl::usm::alloc kind) {
    if (kind == sycl::usm::alloc::unknown) {
      detail::refuse(errc::usm_type_not_accepted, "kind", "host or device or shared USM",
                     usm_dlpack::to_string(kind), "name the kind that the array is to be in");
    }
    return kind;
  }

  /// Checks extents before a mapping multiplies them, which may overflow.
  template <class Shape>
  static mapping_type make_mapping(const Shape& shape) {
    if constexpr (gives_extents<Shape>) {
      detail::check_requested_shape<extents_type>(shape);
      const extents_type extents(shape);
      detail::check_product<mapping_type>(extents);
      return mapping_type(extents);
    } else {
      return mapping_type(shape);
    }
  }

  /// Bytes to allocate; refuses an array that could not be exported.
  static std::size_t size_to_allocate(const mapping_type& mapping) {
    if constexpr (!detail::made_from_strides<mapping_type>) {  // it multiplies extents
      detail::check_product<mapping_type>(mapping.extents());
    }
    constexpr DLDevice any_device{kDLOneAPI, 0};
    static_cast<void>(detail::describe<detail::empty_data::handle>(
        View(typename View::data_handle_type{}, mapping), any_device));
    constexpr auto max_count =
        static_cast<std::uint64_t>(std::numeric_limits<std::ptrdiff_t>::max()) /
        sizeof(element_type);
    const auto count = mapping.required_span_size();
    if (!detail::fits_int64(count) || static_cast<std::uint64_t>(count) > max_count) {
      detail::refuse(errc::out_of_range, "shape",
                     "at most " + detail::digits(max_count) + " elements of the element type",
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

/// Makes a managed tensor that owns the array, without a copy. Does not wait: the consumer
/// must wait for `queue()`. The deleter acts as the array's destructor.
/// @throws conversion_error if a rule is broken, std::bad_alloc if there is no memory for the
///         tensor; the array is then unchanged
template <class View>
[[nodiscard]] managed_tensor to_managed_tensor(usm_array<View>&& array) {
  const DLDevice device{kDLOneAPI, array.device_id()};
  return usm_dlpack::to_managed_tensor(array.view(), device, std::move(array));
}

/// Makes a legacy managed tensor that owns the array. It cannot declare padded elements.
/// @throws conversion_error also `dtype_unsupported`
template <class View>
[[nodiscard]] legacy_managed_tensor to_legacy_managed_tensor(usm_array<View>&& array) {
  const DLDevice device{kDLOneAPI, array.device_id()};
  return usm_dlpack::to_legacy_managed_tensor(array.view(), device, std::move(array));
}

}  // namespace usm_dlpack
