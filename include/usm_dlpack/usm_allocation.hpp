// SPDX-License-Identifier: Apache-2.0
//
// The two ends of an import: what a consumer requires of a tensor, and what was proved of it.
#pragma once

#include <usm_dlpack/allocation.hpp>
#include <usm_dlpack/structure.hpp>

#include <sycl/sycl.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

namespace usm_dlpack {
namespace detail {
class import_protocol;
}  // namespace detail

/// Which values of an enumeration are accepted; all of them unless constructed from some.
template <class Enum>
class accepted {
 public:
  constexpr accepted() noexcept = default;
  constexpr accepted(std::initializer_list<Enum> values) noexcept : mask_(0) {
    for (const Enum value : values) {
      insert(value);
    }
  }
  constexpr void insert(Enum value) noexcept { mask_ |= bit(value); }
  constexpr bool contains(Enum value) const noexcept { return (mask_ & bit(value)) != 0; }

 private:
  static constexpr std::uint64_t bit(Enum value) noexcept {
    return std::uint64_t{1} << static_cast<unsigned>(value);
  }
  std::uint64_t mask_ = ~std::uint64_t{0};
};

namespace detail {

inline constexpr std::initializer_list<sycl::usm::alloc> known_kinds = {
    sycl::usm::alloc::host, sycl::usm::alloc::device, sycl::usm::alloc::shared};

/// The accepted ones of the known values by name, as a message lists them.
template <class Enum>
std::string names_of(const accepted<Enum>& some, std::initializer_list<Enum> known) {
  std::string names;
  for (const Enum value : known) {
    if (some.contains(value)) {
      names.append(names.empty() ? "" : " or ").append(to_string(value));
    }
  }
  return names.empty() ? "no" : names;
}

}  // namespace detail

/// What a consumer can take; everything that is USM unless told.
struct requirements {
  accepted<sycl::usm::alloc> usm_types{};   ///< USM kinds; host, device, shared
  accepted<sycl::backend> backends{};       ///< backends of the named device
  bool writable = false;                    ///< refuse what the producer made read-only
  bool unique = false;                      ///< refuse elements that may overlap
  std::optional<DLDataType> dtype{};        ///< the one dtype, lanes included
  std::optional<std::int32_t> ndim{};       ///< the one number of dimensions
  std::optional<std::int32_t> device_id{};  ///< the one root device, by its DLPack id
};

/// What `validate` proved. Holds no memory alive, and is true only as long as the memory is
/// not freed.
class usm_allocation {
 public:
  /// Address of the first element, `byte_offset` included; null only for an empty tensor.
  void* data() const noexcept { return reinterpret_cast<void*>(structure_.first); }
  /// The USM kind; unknown only for an empty tensor.
  sycl::usm::alloc usm_type() const noexcept { return found_.kind; }
  /// The root device that the tensor named and the memory belongs to.
  std::int32_t device_id() const noexcept { return device_id_; }
  const sycl::device& root_device() const noexcept {
    return detail::device_table::get().devices[static_cast<std::size_t>(device_id_)].device;
  }
  /// The true device: the root device, or the sub-device that the memory was allocated for.
  sycl::device device() const { return found_.part ? *found_.part : root_device(); }
  /// The default context of the root device's platform, which knows the memory.
  const sycl::context& context() const noexcept {
    return *detail::device_table::get().platform_of(device_id_).context;
  }
  /// How the true device is known.
  device_proof device_proved() const noexcept { return found_.device; }
  /// How the bounds are known.
  bounds_proof bounds_proved() const noexcept { return range_.proof; }
  /// Base address and size in bytes of what `bounds_proved()` names: the allocation or the
  /// driver's block; of a chunk, the view's lowest address and the bytes from there to its
  /// end. Size 0 for `both_ends` and `none`.
  std::uintptr_t base() const noexcept { return range_.base; }
  std::size_t size() const noexcept { return range_.size; }
  /// The bytes that the view spans, and whether its elements are proved not to overlap.
  const tensor_structure& structure() const noexcept { return structure_; }

 private:
  friend class detail::import_protocol;
  tensor_structure structure_{};
  detail::allocation found_{};
  detail::allocation_range range_{0, 0, bounds_proof::none};
  std::int32_t device_id_ = -1;
};

}  // namespace usm_dlpack
