// SPDX-License-Identifier: Apache-2.0
//
// Consumer: what it may require of a tensor, the import protocol, and the facts that it
// proves. A new rule is a step of `import_protocol`, and a row in docs/checks.md.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/dtype.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/strides.hpp>
#include <usm_dlpack/core/structure.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/memory.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace usm_dlpack {
namespace detail {
struct import_protocol;
}

/// Accepted values of an enumeration; all unless constructed from a list.
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

/// Requirements of a consumer; by default any USM.
struct requirements {
  accepted<sycl::usm::alloc> usm_types{};   ///< USM kinds; host, device, shared
  accepted<sycl::backend> backends{};       ///< backends of the named device
  bool writable = false;                    ///< refuse read-only memory
  bool unique = false;                      ///< refuse elements that may overlap
  std::optional<DLDataType> dtype{};        ///< lanes included
  std::optional<std::int32_t> ndim{};       ///< number of dimensions
  std::optional<std::int32_t> device_id{};  ///< DLPack id of the root device
};

/// Facts that `validate` proved. They hold until the memory is freed. Does not own the memory.
class usm_allocation {
 public:
  /// Address of the first element, `byte_offset` included; null only for an empty tensor.
  void* data() const noexcept { return reinterpret_cast<void*>(structure_.first); }
  /// The USM kind; unknown only for an empty tensor.
  sycl::usm::alloc usm_type() const noexcept { return memory_.kind; }
  /// The root device of the memory, which the tensor named.
  std::int32_t device_id() const noexcept { return device_id_; }
  const sycl::device& root_device() const noexcept {
    return detail::device_table::get().devices[static_cast<std::size_t>(device_id_)].device;
  }
  /// The true device: the root device, or the sub-device that the memory was allocated for.
  sycl::device device() const { return memory_.part ? *memory_.part : root_device(); }
  /// The default context of the root device's platform, which knows the memory.
  const sycl::context& context() const noexcept {
    return *detail::device_table::get().platform_of(device_id_).context;
  }
  /// How the true device is known.
  device_proof device_proved() const noexcept { return memory_.device; }
  /// How the bounds are known.
  bounds_proof bounds_proved() const noexcept { return range_.proof; }
  /// Base address and size in bytes of the range that `bounds_proved()` names. Size 0 for
  /// `both_ends` and `none`.
  std::uintptr_t base() const noexcept { return range_.base; }
  std::size_t size() const noexcept { return range_.size; }
  /// The bytes of the view, and whether its elements provably do not overlap.
  const tensor_structure& structure() const noexcept { return structure_; }

 private:
  friend struct detail::import_protocol;
  tensor_structure structure_{};
  detail::allocation memory_{};
  detail::allocation_range range_{0, 0, bounds_proof::none};
  std::int32_t device_id_ = -1;
};

namespace detail {

inline constexpr std::initializer_list<sycl::usm::alloc> known_kinds = {
    sycl::usm::alloc::host, sycl::usm::alloc::device, sycl::usm::alloc::shared};
inline constexpr std::initializer_list<sycl::backend> known_backends = {
    sycl::backend::opencl, sycl::backend::ext_oneapi_level_zero,
    sycl::backend::ext_oneapi_cuda, sycl::backend::ext_oneapi_hip,
    sycl::backend::ext_oneapi_native_cpu};

/// The names of accepted values, for example `host or shared`; empty if there are none.
template <class Enum>
std::string names_of(const accepted<Enum>& some, std::initializer_list<Enum> all) {
  std::string names;
  for (const Enum value : all) {
    if (some.contains(value)) {
      add_alternative(names, to_string(value));
    }
  }
  return names;
}

/// The distance of an address from a base in bytes, for messages.
inline std::string offset_text(std::uintptr_t address, std::uintptr_t base) {
  return address < base ? "-" + digits(base - address) : digits(address - base);
}
/// What a view outside of its bounds spans, for messages.
inline std::string bytes_from(std::uintptr_t lowest, std::uint64_t count,
                              std::uintptr_t base) {
  return "one of " + digits(count) + " bytes from byte " + offset_text(lowest, base);
}

inline void check_usm_type(sycl::usm::alloc kind, const requirements& needs) {
  if (!needs.usm_types.contains(kind)) {
    const std::string names = names_of(needs.usm_types, known_kinds);
    const std::string first = names.substr(0, names.find(' '));
    refuse(errc::usm_type_not_accepted, "data",
           names.empty() ? "no USM: usm_types has no kind, or not that of the view's type"
                         : names + " USM",
           std::string(usm_dlpack::to_string(kind)) + " USM",
           names.empty() ? "add the kind to usm_types"
                         : "copy the array to " + first +
                               " USM, in Python by usm_dlpack.from_dlpack(x, usm_type=\"" +
                               first + "\")");
  }
}

USM_DLPACK_COLD inline void refuse_other_device(const std::string& true_id,
                                                std::int32_t named_id) {
  refuse(errc::device_mismatch, "device.device_id",
         true_id + " (the root device of the memory)", digits(named_id),
         "have the producer name the root device of the memory");
}

/// The steps of the import protocol. Each refuses the tensor or writes to `result`.
struct import_protocol {
  const DLTensor& tensor;
  const requirements& needs;
  usm_allocation& result;

  /// A tensor in host memory, of which only the structure is known.
  static usm_allocation on_host(const tensor_structure& structure) {
    usm_allocation result;
    result.structure_ = structure;
    return result;
  }

  /// A proof of the same tensor by another module, from its parts.
  static usm_allocation from_parts(const tensor_structure& structure, const allocation& memory,
                                   const allocation_range& range, std::int32_t device_id) {
    usm_allocation result;
    result.structure_ = structure;
    result.memory_ = memory;
    result.range_ = range;
    result.device_id_ = device_id;
    return result;
  }
  /// The true device of a proof, as `usm_allocation::device`, which lives as long as the
  /// proof.
  static const sycl::device& true_device(const usm_allocation& proof) {
    return proof.memory_.part ? *proof.memory_.part : proof.root_device();
  }

  void run(subbyte storage) {
    result.device_id_ = detail::id_named_by(tensor.device);
    result.structure_ = usm_dlpack::check_structure(tensor, storage);
    if (needs.dtype || needs.ndim || needs.unique) {
      check_description();
    }
    const platform_entry& entry = check_device_id();
    if (result.structure_.empty && result.structure_.first == 0) {
      return;
    }
    result.memory_ = find_allocation(result.data(), entry);
    if (result.structure_.empty) {
      // An empty view may point anywhere, even to the allocation after its own: ignore memory
      // of another device or of a kind that is not accepted.
      if (!needs.usm_types.contains(result.memory_.kind) || is_elsewhere()) {
        result.memory_ = allocation{};
      }
      return;
    }
    if (result.memory_.kind == sycl::usm::alloc::unknown) {
      refuse_unknown_pointer();
    }
    check_usm_type(result.memory_.kind, needs);
    if (is_elsewhere()) {
      refuse_other_device(digits(result.memory_.device_id), result.device_id_);
    }
    check_bounds(entry);
  }

 private:
  // Out of line: most consumers have no such requirements.
  [[gnu::noinline]] void check_description() const {
    if (needs.dtype && !usm_dlpack::same_data_type(*needs.dtype, tensor.dtype)) {
      refuse(errc::dtype_mismatch, "dtype",
             usm_dlpack::to_string(*needs.dtype) + ", as asked for",
             usm_dlpack::to_string(tensor.dtype), "convert the array to that dtype");
    }
    if (needs.ndim && *needs.ndim != tensor.ndim) {
      refuse(errc::shape_mismatch, "ndim", digits(*needs.ndim) + ", as asked for",
             digits(tensor.ndim), "reshape the array");
    }
    if (needs.unique && !result.structure_.unique) {
      const bool whole_bytes = tensor.dtype.bits * tensor.dtype.lanes % 8 == 0;
      refuse(errc::overlapping, "strides", "elements that do not overlap",
             "strides that do not prove it",
             whole_bytes ? "copy the array to a compact one, in Python by "
                           "usm_dlpack.from_dlpack(x, order=\"C\")"
                         : "have the producer make one whose elements do not overlap");
    }
  }

  const platform_entry& check_device_id() {
    const std::int32_t id = result.device_id_;
    if (needs.device_id && *needs.device_id != id) {
      refuse(errc::device_not_accepted, "device.device_id",
             digits(*needs.device_id) + ", as asked for", digits(id),
             "copy the array to that device first");
    }
    const platform_entry& entry = working_platform(id);
    if (!needs.backends.contains(entry.backend)) {
      const std::string names = names_of(needs.backends, known_backends);
      refuse(
          errc::device_not_accepted, "device.device_id",
          names.empty() ? "a device of no backend" : "a device of the backend " + names,
          "device " + digits(id) + " of the backend " + usm_dlpack::to_string(entry.backend),
          "move the array to a device of an accepted backend");
    }
    return entry;
  }

  // Names the device of another platform, if one knows the memory.
  USM_DLPACK_COLD void refuse_unknown_pointer() const {
    const std::vector<located_memory> candidates = locate(result.data());
    if (!candidates.empty()) {
      refuse_other_device(ids_of(candidates), result.device_id_);
    }
    refuse_pointer("the default context of device " + digits(result.device_id_),
                   allocation_remedy);
  }

  // Host USM belongs to no single device: any id of its platform is right.
  bool is_elsewhere() const noexcept {
    return result.memory_.device != device_proof::none &&
           result.memory_.device_id != result.device_id_;
  }

  void check_bounds(const platform_entry& entry) {
    const tensor_structure& view = result.structure_;
    result.range_ = entry.queries->range(view, result.memory_);
    const allocation_range& range = result.range_;
    if (range.proof != bounds_proof::both_ends) {
      if (!range.contains(view)) {
        refuse_bounds();
      }
      return;
    }
    for (const std::uintptr_t end : {view.lowest, view.lowest + view.nbytes - 1}) {
      const allocation memory = find_allocation(reinterpret_cast<const void*>(end), entry);
      if (memory.kind != result.memory_.kind || memory.device_id != result.memory_.device_id) {
        refuse_bounds();
      }
    }
  }

  USM_DLPACK_COLD void refuse_bounds() const {
    const tensor_structure& view = result.structure_;
    const allocation_range& range = result.range_;
    const char* const remedy = "correct shape, strides (in elements) or byte_offset";
    if (range.proof == bounds_proof::both_ends) {
      refuse(errc::out_of_bounds, "shape", "a view within one allocation",
             "one of " + digits(view.nbytes) + " bytes that reaches out of it", remedy);
    }
    const char* const end = range.proof == bounds_proof::allocation
                                ? " bytes of its allocation"
                                : " bytes of the driver's block";
    refuse(errc::out_of_bounds, "shape", "a view within the " + digits(range.size) + end,
           bytes_from(view.lowest, view.nbytes, range.base), remedy);
  }
};

inline usm_allocation import_tensor(const DLTensor& tensor, const requirements& needs,
                                    subbyte storage) {
  usm_allocation result;
  import_protocol{tensor, needs, result}.run(storage);
  return result;
}

/// Refuses memory that the producer's queue shows to be of another context than the device
/// id's default context. The import protocol cannot see it: GPU drivers know the memory of all
/// contexts of a platform, and two drivers may give the same address.
inline void check_context(const usm_allocation& proof, const sycl::queue& producer) {
  const sycl::context context = producer.get_context();
  if (proof.structure().empty || context == proof.context()) {
    return;
  }
  if (const platform_entry* const entry = device_table::get().find(context)) {
    const located_memory candidate{entry, find_allocation(proof.data(), *entry)};
    if (candidate.memory.kind != sycl::usm::alloc::unknown) {
      refuse_other_device(digits(candidate.device_id()), proof.device_id());
    }
    return;
  }
  const auto kind = with_runtime_errors(
      "context", [&] { return sycl::get_pointer_type(proof.data(), context); });
  if (kind != sycl::usm::alloc::unknown) {
    refuse(
        errc::context_not_default, "context", "the default context of the memory's platform",
        "another one, that of the array's sycl_queue",
        "allocate with a queue of the root device alone, as sycl::queue(device) or "
        "dpctl.SyclQueue(device), or copy to such memory, in Python by usm_dlpack.empty and copy_from");
  }
}

inline void check_managed(const DLManagedTensorVersioned& managed, const requirements& needs) {
  detail::check_header(managed);
  if (needs.writable && (managed.flags & flag::read_only) != 0) {
    refuse(errc::read_only, "flags", "writable memory", "read-only memory",
           "copy the array, in Python by usm_dlpack.from_dlpack(x, copy=True), or leave out "
           "readonly=False, or in C++ use a view of const elements");
  }
}

}  // namespace detail

/// Checks, by the import protocol, that this process can use a tensor's USM as described.
///
/// Checks, in this order (docs/checks.md): `device_type` is kDLOneAPI, or one of CUDA's for a
/// GPU that is a SYCL device of this process; `check_structure`;
/// dtype, `ndim`, no overlap and the device, if required; `device_id` names a working root
/// device of an accepted backend; its platform's default context knows the pointer; the USM
/// kind is accepted; the memory is on the named root device; the view lies in one allocation,
/// as far as the bounds are known (`bounds_proof`). For an empty tensor, the kind of USM at
/// its pointer is reported if it is accepted and on the named device; otherwise `usm_type()`
/// is unknown.
/// @pre the tensor's `shape`, and `strides` unless null, have `ndim` readable entries
/// @throws conversion_error of the first broken rule; the caller still owns the tensor
inline usm_allocation validate(const DLTensor& tensor, const requirements& needs = {}) {
  return detail::import_tensor(tensor, needs, subbyte::packed);
}

/// Checks the version and flags of a managed tensor, then its DLTensor. Calls no deleter.
/// @throws conversion_error also `version_unsupported`, `read_only`
inline usm_allocation validate(const DLManagedTensorVersioned& managed,
                               const requirements& needs = {}) {
  detail::check_managed(managed, needs);
  return detail::import_tensor(managed.dl_tensor, needs, detail::storage_of(managed.flags));
}

/// Checks a legacy managed tensor, which has no version or flags. Calls no deleter.
inline usm_allocation validate(const DLManagedTensor& managed,
                               const requirements& needs = {}) {
  return usm_dlpack::validate(managed.dl_tensor, needs);
}

}  // namespace usm_dlpack
