// SPDX-License-Identifier: Apache-2.0
#include "copies.hpp"

#include "process.hpp"
#include "python_objects.hpp"
#include "queues.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace usm_dlpack::python {
namespace {

constexpr std::size_t copy_alignment = 256;

[[noreturn]] void refuse_memory(std::uint64_t nbytes) {
  detail::refuse(errc::copy_needed, "copy",
                 "memory for a copy of " + std::to_string(nbytes) + " bytes", "none",
                 "free some, or export without a copy");
}

copy_memory allocate_host(std::uint64_t nbytes) {
  const std::uint64_t rounded = (nbytes / copy_alignment + 1) * copy_alignment;
  void* memory = std::aligned_alloc(copy_alignment, rounded);
  if (memory == nullptr) {
    refuse_memory(nbytes);
  }
  return copy_memory(memory);
}

bool host_reads(const copy_source& source) {
  return !source.proof || source.proof->usm_type() != sycl::usm::alloc::device;
}

/// Bytes of an element, or 0 for packed elements of which several share a byte.
std::size_t item_size(const copy_source& source) {
  const auto storage = detail::storage_of(source.flags);
  const std::int64_t bits = detail::bits_per_element(source.described.dtype, storage);
  return bits % 8 == 0 ? static_cast<std::size_t>(bits / 8) : 0;
}

/// Bytes of all elements without gaps; the span where that is less, or cannot be compacted.
std::uint64_t compact_bytes(const copy_source& source) {
  std::uint64_t all = item_size(source);
  for (std::int32_t r = 0; r < source.described.ndim; ++r) {
    const auto extent = static_cast<std::uint64_t>(source.described.shape[r]);
    if (__builtin_mul_overflow(all, extent, &all)) {
      return source.structure.nbytes;
    }
  }
  return item_size(source) == 0 ? source.structure.nbytes : all;
}

/// Waits for what a queue has got; the GIL is not held.
void wait_for_pending(const std::optional<sycl::queue>& pending) {
  if (pending) {
    sycl::queue(*pending).wait();
  }
}

/// One copy by a root device, after what is pending; the GIL is not held.
void copy_bytes(std::int32_t device_id, const std::optional<sycl::queue>& pending,
                const void* from, void* to, std::uint64_t nbytes) {
  copy_queue own(device_id);
  sycl::queue& queue = own.get();
  // A barrier of an out-of-order queue can miss a host task that runs (DPC++ 2026.2).
  if (pending && pending->is_in_order() && pending->get_context() == queue.get_context()) {
    const sycl::event last = sycl::queue(*pending).ext_oneapi_submit_barrier();
    queue.memcpy(to, from, nbytes, last).wait();
  } else {
    wait_for_pending(pending);
    queue.memcpy(to, from, nbytes).wait();
  }
}

/// The bytes of the span where the host can read them: in place, or in `staged`.
/// @pre the GIL is not held
const unsigned char* bring_to_host(const copy_source& source, copy_memory& staged) {
  const auto* lowest = reinterpret_cast<const unsigned char*>(source.structure.lowest);
  if (host_reads(source)) {
    wait_for_pending(source.pending);
    return lowest;
  }
  copy_bytes(source.proof->device_id(), source.pending, lowest, staged.get(),
             source.structure.nbytes);
  return static_cast<const unsigned char*>(staged.get());
}

/// Copies element by element into row-major order: an odometer over all but the last
/// dimension.
void gather(const copy_source& source, const unsigned char* span, unsigned char* to) {
  const DLTensor& from = source.described;
  const std::size_t item = item_size(source);
  const auto ndim = static_cast<std::size_t>(from.ndim);
  std::vector<std::int64_t> index(ndim, 0);
  const unsigned char* at = span + (source.structure.first - source.structure.lowest);
  const auto step = static_cast<std::int64_t>(item);
  while (true) {
    std::memcpy(to, at, item);
    to += item;
    std::size_t r = ndim;
    while (r > 0) {
      --r;
      at += from.strides[r] * step;
      if (++index[r] < from.shape[r]) {
        break;
      }
      at -= from.strides[r] * step * from.shape[r];
      index[r] = 0;
      if (r == 0) {
        return;
      }
    }
    if (ndim == 0) {
      return;
    }
  }
}

/// Whether the elements stand in row-major order without gaps.
bool is_compact(const DLTensor& tensor) {
  std::int64_t step = 1;
  for (std::int32_t r = tensor.ndim - 1; r >= 0; --r) {
    if (tensor.shape[r] != 1 && tensor.strides[r] != step) {
      return false;
    }
    step *= tensor.shape[r];
  }
  return true;
}

/// The description of a copy that kept the source's strides, and whose span is at `memory`.
DLTensor moved_to(void* memory, const copy_source& source, DLDevice device) {
  DLTensor described = source.described;
  described.data =
      static_cast<unsigned char*>(memory) + (source.structure.first - source.structure.lowest);
  described.byte_offset = 0;
  described.device = device;
  return described;
}

tensor_copy describe_copy(const copy_source& source, copy_memory memory, DLDevice device,
                          bool compact) {
  const std::uint64_t flags = (source.flags & flag::is_subbyte_type_padded) | flag::is_copied;
  tensor_copy made{moved_to(memory.get(), source, device), flags, std::move(memory), {}};
  if (compact) {
    const auto ndim = static_cast<std::size_t>(source.described.ndim);
    made.described.data = made.memory.get();
    made.strides.resize(ndim + 1);
    detail::write_compact_strides(source.described.shape, made.strides.data(), ndim);
    made.described.strides = made.strides.data();
  }
  return made;
}

/// Whether the memory of the source can be copied by one call of the destination's queue.
bool one_copy_reaches(const copy_source& source, std::int32_t device_id) {
  return host_reads(source) || source.proof->context() == default_context(device_id);
}

}  // namespace

copy_memory::~copy_memory() {
  if (address_ == nullptr) {
    return;
  }
  if (!context_) {
    std::free(address_);
    return;
  }
  if (process_is_forked() || (interpreter_gate::is_closed() && !is_idle())) {
    // The runtime stayed behind in the parent, and the memory with it; or the work may wait
    // for a Python that does not come back. The queues are not dropped either.
    new (std::nothrow) std::vector<sycl::queue>(std::move(queues_));
    return;
  }
  // Also where the queues are idle: the backend's own free waits for kernels of any queue.
  run_unlocked([](void* memory) { static_cast<copy_memory*>(memory)->free(); }, this);
}

bool copy_memory::is_idle() const noexcept {
  return std::all_of(queues_.begin(), queues_.end(), &detail::is_idle);
}

void copy_memory::free() noexcept {
  if (is_kept_) {
    return;
  }
  for (const sycl::queue& queue : queues_) {
    if (!detail::is_idle(queue) && !detail::wait_until_idle(queue)) {
      return;
    }
  }
  try {
    sycl::free(address_, *context_);
  } catch (const sycl::exception&) {
    // The runtime is shutting down: it frees the memory itself.
  }
}

void copy_memory::used_by(const sycl::queue& queue) noexcept {
  constexpr std::size_t many = 16;
  const nb::ft_lock_guard lock(guard_);
  if (std::find(queues_.begin(), queues_.end(), queue) != queues_.end()) {
    return;
  }
  if (queues_.size() >= many) {
    queues_.erase(std::remove_if(queues_.begin(), queues_.end(), &detail::is_idle),
                  queues_.end());
  }
  try {
    queues_.push_back(queue);
  } catch (const std::bad_alloc&) {
    is_kept_ = true;
  }
}

copy_memory find_usm(const char* field, std::uint64_t nbytes, std::int32_t device_id,
                     sycl::usm::alloc kind) {
  const sycl::context context = default_context(device_id);
  if (kind == sycl::usm::alloc::unknown) {
    kind = sycl::usm::alloc::device;
  }
  void* memory = detail::ask_runtime(field, [&] {
    return sycl::aligned_alloc(copy_alignment, nbytes == 0 ? 1 : nbytes,
                               root_device(device_id), context, kind);
  });
  return {memory, context};
}

copy_memory allocate_usm(std::uint64_t nbytes, std::int32_t device_id, sycl::usm::alloc kind) {
  copy_memory memory = find_usm("copy", nbytes, device_id, kind);
  if (memory.get() == nullptr) {
    refuse_memory(nbytes);
  }
  return memory;
}

void write_compact(const copy_source& source, void* to) {
  if (source.structure.empty) {
    return;
  }
  const without_gil unlocked;
  detail::ask_runtime("data", [&] {
    const std::uint64_t nbytes = source.structure.nbytes;
    auto* bytes = static_cast<unsigned char*>(to);
    if (is_compact(source.described) && source.proof) {
      copy_bytes(source.proof->device_id(), source.pending,
                 reinterpret_cast<const void*>(source.structure.lowest), to, nbytes);
      return;
    }
    copy_memory staged = host_reads(source) ? copy_memory() : allocate_host(nbytes);
    gather(source, bring_to_host(source, staged), bytes);
  });
}

tensor_copy copy_to_host(const copy_source& source) {
  const std::uint64_t nbytes = source.structure.nbytes;
  const std::uint64_t compacted = compact_bytes(source);
  const bool compact = compacted < nbytes;
  copy_memory memory = allocate_host(compact ? compacted : nbytes);
  if (compact) {
    write_compact(source, memory.get());
  } else if (nbytes != 0) {
    const without_gil unlocked;
    detail::ask_runtime("data", [&] {
      const auto* from = reinterpret_cast<const void*>(source.structure.lowest);
      if (source.proof) {
        copy_bytes(source.proof->device_id(), source.pending, from, memory.get(), nbytes);
      } else {
        std::memcpy(memory.get(), from, nbytes);
      }
    });
  }
  return describe_copy(source, std::move(memory), {kDLCPU, 0}, compact);
}

tensor_copy copy_to_usm(const copy_source& source, std::int32_t device_id,
                        sycl::usm::alloc kind) {
  const std::uint64_t nbytes = source.structure.nbytes;
  const std::uint64_t compacted = compact_bytes(source);
  const bool compact = compacted < nbytes;
  const std::uint64_t size = compact ? compacted : nbytes;
  copy_memory memory = allocate_usm(size, device_id, kind);
  const DLDevice device{kDLOneAPI, device_id};
  if (source.structure.empty) {
    return describe_copy(source, std::move(memory), device, false);
  }
  if (!compact && one_copy_reaches(source, device_id)) {
    const without_gil unlocked;
    detail::ask_runtime("data", [&] {
      copy_bytes(device_id, source.pending,
                 reinterpret_cast<const void*>(source.structure.lowest), memory.get(), size);
    });
    return describe_copy(source, std::move(memory), device, false);
  }
  const copy_memory staged = copy_to_host(source).memory;
  const without_gil unlocked;
  detail::ask_runtime(
      "data", [&] { copy_bytes(device_id, std::nullopt, staged.get(), memory.get(), size); });
  return describe_copy(source, std::move(memory), device, compact);
}

}  // namespace usm_dlpack::python
