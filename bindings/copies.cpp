// SPDX-License-Identifier: Apache-2.0
#include "copies.hpp"
#include "cuda_streams.hpp"
#include "process.hpp"
#include "queues.hpp"

#include <cstring>

namespace usm_dlpack::python {
namespace {

[[noreturn]] void refuse_memory(const std::string& bytes) {
  detail::refuse(errc::copy_needed, "copy", "memory for a copy of " + bytes + " bytes", "none",
                 "free some, or export without a copy");
}

copy_memory allocate_host(std::uint64_t nbytes) {
  constexpr std::size_t alignment = 256;
  const std::uint64_t rounded = (nbytes / alignment + 1) * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) {
    refuse_memory(std::to_string(nbytes));
  }
  return copy_memory(memory);
}

const unsigned char* bytes_of(const proved_tensor& source) {
  return reinterpret_cast<const unsigned char*>(source.structure().lowest);
}

bool host_reads(const proved_tensor& source) {
  return source.is_on_host() || source.proof.usm_type() != sycl::usm::alloc::device;
}

std::int64_t bits_of_element(const proved_tensor& source) {
  return detail::bits_per_element(source.described.dtype, source.storage());
}

/// The layout of a copy. It has the source's strides if none of them is negative (even for an
/// extent of 1) and the elements neither overlap nor have gaps. Otherwise it is compact, in
/// row-major order.
struct copy_layout {
  std::uint64_t nbytes;
  bool compact;
};

/// @throws conversion_error `copy_needed` for more bytes than an object can have
copy_layout layout_of_copy(const proved_tensor& source, bool c_order = false) {
  const std::int64_t* strides = source.described.strides;
  const bool negative = std::any_of(strides, strides + source.described.ndim,
                                    [](std::int64_t stride) { return stride < 0; });
  if (source.structure().empty) {
    return {0, negative};
  }
  std::int64_t bits = bits_of_element(source);
  bool overflow = false;
  for (std::int32_t r = 0; r < source.described.ndim; ++r) {
    overflow = __builtin_mul_overflow(bits, source.described.shape[r], &bits) || overflow;
  }
  if (overflow || __builtin_add_overflow(bits, 7, &bits)) {
    refuse_memory("more than 1152921504606846975");
  }
  const auto nbytes = static_cast<std::uint64_t>(bits) / 8;
  const tensor_structure& spanned = source.structure();
  const bool reordered = c_order && !is_c_contiguous(source);
  return {nbytes, reordered || !spanned.unique || nbytes < spanned.nbytes || negative};
}

// The functions below wait for whole queues, because a barrier of an out-of-order queue can
// miss a running host task, and the event of a command behind a host task may report
// completion too early (DPC++ 2026.2).

/// @pre the GIL is not held
void wait_for_pending(const std::optional<sycl::queue>& pending) {
  if (pending) {
    detail::wait_in_turn(*pending);
  }
}

/// Copies bytes with a queue of a root device, after the pending work. @pre the GIL is not
/// held
void copy_bytes(std::int32_t device_id, const std::optional<sycl::queue>& pending,
                const void* from, void* to, std::uint64_t nbytes) {
  copy_queue own(device_id);
  sycl::queue& queue = own.get();
  wait_for_pending(pending);
  queue.memcpy(to, from, nbytes);
  queue.wait();
}

/// Copies the source's bytes, gaps included, to the host, after the pending work.
/// @pre the GIL is not held
void copy_span(const proved_tensor& source, void* to) {
  const std::uint64_t nbytes = source.structure().nbytes;
  if (!source.is_on_host()) {
    copy_bytes(source.proof.device_id(), source.queue, bytes_of(source), to, nbytes);
    return;
  }
  wait_for_pending(source.queue);
  std::memcpy(to, bytes_of(source), nbytes);
}

/// Copies bits, the lowest of a byte first.
void copy_bits(const unsigned char* from, std::int64_t from_bit, unsigned char* to,
               std::int64_t to_bit, std::int64_t count) {
  if ((from_bit | to_bit | count) % 8 == 0) {
    std::memcpy(to + to_bit / 8, from + from_bit / 8, static_cast<std::size_t>(count / 8));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const int bit = from[(from_bit + i) / 8] >> ((from_bit + i) % 8) & 1;
    unsigned char& byte = to[(to_bit + i) / 8];
    const int place = static_cast<int>((to_bit + i) % 8);
    byte = static_cast<unsigned char>((byte & ~(1 << place)) | bit << place);
  }
}

/// The number of dimensions outside a run. A run is a part of the tensor whose elements are
/// compact in C order: the innermost dimensions, as many as possible.
/// @param run the number of its elements
std::size_t dimensions_outside(const DLTensor& tensor, std::int64_t& run) {
  run = 1;
  std::int32_t outer = tensor.ndim;
  for (; outer > 0; --outer) {
    if (tensor.shape[outer - 1] != 1 && tensor.strides[outer - 1] != run) {
      break;
    }
    run *= tensor.shape[outer - 1];
  }
  return static_cast<std::size_t>(outer);
}

/// Calls a function for each run, with the number of bits before the run in row-major order,
/// the position of the run's first bit, counted from the lowest byte of the tensor, and the
/// number of its bits.
/// @pre the tensor is not empty
template <class Function>
void for_each_run(const proved_tensor& tensor, Function&& function) {
  const DLTensor& described = tensor.described;
  std::int64_t count = 1;
  const std::size_t outer = dimensions_outside(described, count);
  const std::int64_t bits = bits_of_element(tensor);
  std::vector<std::int64_t> index(outer, 0);
  const auto first =
      static_cast<std::int64_t>(tensor.structure().first - tensor.structure().lowest);
  // In elements from the first. Unsigned, because an extent of 1 may have any stride, and the
  // sum may wrap.
  std::uint64_t at = 0;
  for (std::int64_t run = 0;; ++run) {
    function(run * count * bits, first * 8 + static_cast<std::int64_t>(at) * bits,
             count * bits);
    for (std::size_t r = outer;;) {
      if (r == 0) {
        return;
      }
      --r;
      at += static_cast<std::uint64_t>(described.strides[r]);
      if (++index[r] < described.shape[r]) {
        break;
      }
      at -= static_cast<std::uint64_t>(described.strides[r]) *
            static_cast<std::uint64_t>(described.shape[r]);
      index[r] = 0;
    }
  }
}

/// Copies element by element into row-major order. @param span the lowest byte of the source
void gather(const proved_tensor& source, const unsigned char* span, unsigned char* to) {
  for_each_run(source, [&](std::int64_t to_bit, std::int64_t from_bit, std::int64_t bits) {
    copy_bits(span, from_bit, to, to_bit, bits);
  });
}

/// Writes the elements to host memory, compact and in row-major order, after the pending work.
/// @pre the GIL is not held; the source is not empty
void compact(const proved_tensor& source, unsigned char* to) {
  if (is_c_contiguous(source)) {
    copy_span(source, to);
  } else if (host_reads(source)) {
    wait_for_pending(source.queue);
    gather(source, bytes_of(source), to);
  } else {
    const copy_memory staged = allocate_host(source.structure().nbytes);
    copy_span(source, staged.get());
    gather(source, static_cast<const unsigned char*>(staged.get()), to);
  }
}

/// Writes compact elements in row-major order to USM. Does not write to the gaps between them,
/// because others may write there meanwhile. Elements of fewer than 8 bits are read and
/// written together with the bytes around them.
/// @param host_reads_from whether the host can read `from`; elements of fewer than 8 bits it
///        must
void scatter(const unsigned char* from, bool host_reads_from, const proved_tensor& to) {
  constexpr int most_pending = 1024;
  auto* span = reinterpret_cast<unsigned char*>(to.structure().lowest);
  const std::uint64_t nbytes = to.structure().nbytes;
  const bool by_queue = !(host_reads_from && host_reads(to)) && bits_of_element(to) % 8 == 0;
  const copy_memory staged =
      host_reads(to) || by_queue ? copy_memory() : allocate_host(nbytes);
  auto* bytes = staged.get() == nullptr ? span : static_cast<unsigned char*>(staged.get());
  copy_queue own(to.proof.device_id());
  sycl::queue& queue = own.get();
  if (bytes != span) {
    queue.memcpy(bytes, span, nbytes).wait();
  }
  int pending = 0;
  for_each_run(to, [&](std::int64_t from_bit, std::int64_t to_bit, std::int64_t bits) {
    if (!by_queue) {
      copy_bits(from, from_bit, bytes, to_bit, bits);
      return;
    }
    queue.memcpy(bytes + to_bit / 8, from + from_bit / 8, static_cast<std::size_t>(bits / 8));
    if (++pending % most_pending == 0) {
      queue.wait();
    }
  });
  if (bytes != span) {
    queue.memcpy(span, bytes, nbytes);
  }
  queue.wait();
}

/// Whether two tensors of the same shape have the same elements.
bool are_the_same(const proved_tensor& one, const proved_tensor& other) {
  bool same = one.structure().first == other.structure().first;
  for (std::size_t r = 0; r < one.ndim(); ++r) {
    same = same && (one.described.shape[r] == 1 ||
                    one.described.strides[r] == other.described.strides[r]);
  }
  return same;
}

bool share_bytes(const tensor_structure& one, const tensor_structure& other) {
  return one.lowest < other.lowest + other.nbytes && other.lowest < one.lowest + one.nbytes;
}

tensor_copy describe_copy(const proved_tensor& source, copy_memory memory, DLDevice device,
                          bool compact) {
  const std::uint64_t flags = (source.flags & flag::is_subbyte_type_padded) | flag::is_copied;
  tensor_copy made{source.described, flags, std::move(memory)};
  made.described.data = made.memory.get();
  made.described.device = device;
  if (compact) {
    made.described.strides = nullptr;
  }
  return made;
}

/// Whether a root device is known to reach the memory of another one. On OpenCL it is not
/// asked, because the query would end the process (DPC++ 2026.2).
bool are_peers(std::int32_t device_id, std::int32_t other) {
  try {
    sycl::device device = root_device(device_id);
    return device.get_backend() != sycl::backend::opencl &&
           default_context(device_id) == default_context(other) &&
           device.ext_oneapi_can_access_peer(root_device(other));
  } catch (const sycl::exception&) {  // the backend does not know
    return false;
  }
}

/// Whether one memcpy of the destination's queue can copy the source. A driver need not
/// support copies between root devices that are not peers, even within a context.
bool one_copy_reaches(const proved_tensor& source, std::int32_t device_id) {
  return source.is_on_host() || source.proof.usm_type() == sycl::usm::alloc::host ||
         source.proof.device_id() == device_id ||
         are_peers(device_id, source.proof.device_id());
}

}  // namespace

bool is_c_contiguous(const proved_tensor& tensor) {
  std::int64_t run = 1;
  return tensor.structure().empty || dimensions_outside(tensor.described, run) == 0;
}

void copy_free::operator()(void* address) noexcept {
  if (!context) {
    std::free(address);
    return;
  }
  // This way also if the queues are idle, because the backend's free waits for kernels of any
  // queue.
  free_memory([address, context = *context, users = std::move(users)] {
    if (!users->wait()) {
      return;
    }
    try {
      sycl::free(address, context);
    } catch (const sycl::exception&) {
      // The runtime is shutting down, and frees the memory itself.
    }
  });
}

void queue_wait::operator()(detail::tensor_owner* owner) noexcept {
  free_memory([owner, users = std::move(users)] {
    const beside_recordings relaxed;  // the garbage collector may drop arrays at any time
    if (users->wait()) {
      const nb::gil_scoped_acquire held;
      delete owner;
    }
  });
}

copy_memory find_usm(const char* field, std::uint64_t nbytes, std::int32_t device_id,
                     sycl::usm::alloc kind) {
  const sycl::context context = default_context(device_id);
  if (kind == sycl::usm::alloc::unknown) {
    kind = sycl::usm::alloc::device;
  }
  const sycl::device device = root_device(device_id);
  copy_memory memory(nullptr, {context, std::make_shared<memory_users>()});
  memory.reset(detail::ask_runtime(
      field, [&] { return sycl::malloc(nbytes == 0 ? 1 : nbytes, device, context, kind); }));
  return memory;
}

copy_memory allocate_usm(DLTensor& wanted, subbyte storage, sycl::usm::alloc kind) {
  wanted.strides = nullptr;
  wanted.byte_offset = 0;
  // `check_structure` needs an address. Any will do that does not wrap.
  wanted.data = reinterpret_cast<void*>(std::uintptr_t{256});
  const std::uint64_t nbytes = check_structure(wanted, storage).nbytes;
  copy_memory memory = find_usm("data", nbytes, wanted.device.device_id, kind);
  if (memory.get() == nullptr) {
    throw std::bad_alloc();
  }
  wanted.data = memory.get();
  return memory;
}

void write_compact(const proved_tensor& source, void* to) {
  if (source.structure().empty) {
    return;
  }
  const without_gil unlocked;
  detail::ask_runtime("data", [&] { compact(source, static_cast<unsigned char*>(to)); });
}

void write_to_usm(const proved_tensor& from, const proved_tensor& to,
                  const std::optional<sycl::queue>& also) {
  if (to.structure().empty) {
    return;
  }
  const without_gil unlocked;
  detail::ask_runtime("data", [&] {
    wait_for_pending(from.queue);
    wait_for_pending(to.queue);
    wait_for_pending(also);
    if (are_the_same(from, to)) {
      return;
    }
    const bool in_place = is_c_contiguous(from) &&
                          !share_bytes(from.structure(), to.structure()) &&
                          one_copy_reaches(from, to.proof.device_id()) &&
                          (host_reads(from) || bits_of_element(from) % 8 == 0);
    if (in_place) {
      scatter(bytes_of(from), host_reads(from), to);
      return;
    }
    const copy_memory staged = allocate_host(layout_of_copy(to).nbytes);
    auto* values = static_cast<unsigned char*>(staged.get());
    compact(from, values);
    scatter(values, true, to);
  });
}

tensor_copy copy_to_host(const proved_tensor& source, bool c_order) {
  const copy_layout layout = layout_of_copy(source, c_order);
  copy_memory memory = allocate_host(layout.nbytes);
  if (layout.compact) {
    write_compact(source, memory.get());
  } else if (!source.structure().empty) {
    const without_gil unlocked;
    detail::ask_runtime("data", [&] { copy_span(source, memory.get()); });
  }
  return describe_copy(source, std::move(memory), {kDLCPU, 0}, layout.compact);
}

tensor_copy copy_to_usm(const proved_tensor& source, std::int32_t device_id,
                        sycl::usm::alloc kind, bool c_order) {
  const copy_layout layout = layout_of_copy(source, c_order);
  copy_memory memory = find_usm("copy", layout.nbytes, device_id, kind);
  if (memory.get() == nullptr) {
    refuse_memory(std::to_string(layout.nbytes));
  }
  if (!source.structure().empty) {
    const bool direct = !layout.compact && one_copy_reaches(source, device_id);
    const copy_memory staged = direct ? copy_memory() : copy_to_host(source, c_order).memory;
    const void* from = direct ? bytes_of(source) : staged.get();
    const without_gil unlocked;
    detail::ask_runtime("data", [&] {
      copy_bytes(device_id, direct ? source.queue : std::nullopt, from, memory.get(),
                 layout.nbytes);
    });
  }
  return describe_copy(source, std::move(memory), {kDLOneAPI, device_id},
                       layout.compact || c_order);
}

}  // namespace usm_dlpack::python
