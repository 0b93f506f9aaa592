// SPDX-License-Identifier: Apache-2.0
#include "memory/copies.hpp"
#include "memory/frees.hpp"
#include "order/process.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

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

/// Copies bytes, and waits for it. dpctl's queue is out of order, so the copy waits for no
/// other work. @pre the GIL is not held
void copy_bytes(std::int32_t device_id, const void* from, void* to, std::uint64_t nbytes) {
  sycl::queue queue = dpctl_queue(device_id);
  detail::wait_for_command(queue.memcpy(to, from, nbytes));
}

/// Elements of whole bytes, with two places for each. Strides are in bytes.
struct strided_bytes {
  struct dimension {
    std::int64_t extent, from_stride, to_stride;
  };
  std::vector<dimension> dimensions;
  std::int64_t item;  ///< bytes of an element
};

/// The dimensions that have strides: those of extents above 1. Such as are compact in both
/// places are joined, at last to longer elements.
strided_bytes join_dimensions(strided_bytes all) {
  strided_bytes joined{{}, all.item};
  for (const auto& next : all.dimensions) {
    auto& dimensions = joined.dimensions;
    if (next.extent == 1) {
      continue;
    }
    if (!dimensions.empty() &&
        dimensions.back().from_stride == next.extent * next.from_stride &&
        dimensions.back().to_stride == next.extent * next.to_stride) {
      dimensions.back() = {dimensions.back().extent * next.extent, next.from_stride,
                           next.to_stride};
    } else {
      dimensions.push_back(next);
    }
  }
  if (!joined.dimensions.empty()) {
    const auto& inner = joined.dimensions.back();
    if (inner.from_stride == joined.item && inner.to_stride == joined.item) {
      joined.item *= inner.extent;
      joined.dimensions.pop_back();
    }
  }
  return joined;
}

/// Calls a function for each item of the dimensions from `r` on, with its distances in bytes
/// from the first item in both places.
template <class Function>
void for_each_item(const strided_bytes& all, std::size_t r, std::int64_t from, std::int64_t to,
                   const Function& function) {
  if (r == all.dimensions.size()) {
    function(from, to);
    return;
  }
  const auto [extent, from_stride, to_stride] = all.dimensions[r];
  for (std::int64_t i = 0; i < extent; ++i) {
    if (r + 1 == all.dimensions.size()) {
      function(from, to);
    } else {
      for_each_item(all, r + 1, from, to, function);
    }
    from += from_stride;
    to += to_stride;
  }
}

/// @tparam Item bytes of an item, or 0 if that is known only at run time
template <std::size_t Item>
void copy_items(const strided_bytes& all, const unsigned char* from, unsigned char* to) {
  for_each_item(all, 0, 0, 0, [&](std::int64_t from_byte, std::int64_t to_byte) {
    std::memcpy(to + to_byte, from + from_byte,
                Item == 0 ? static_cast<std::size_t>(all.item) : Item);
  });
}

/// Copies elements within host memory. @param from, to the first element
void rearrange(const strided_bytes& elements, const unsigned char* from, unsigned char* to) {
  const strided_bytes joined = join_dimensions(elements);
  switch (joined.item) {
    case 1: return copy_items<1>(joined, from, to);
    case 2: return copy_items<2>(joined, from, to);
    case 4: return copy_items<4>(joined, from, to);
    case 8: return copy_items<8>(joined, from, to);
    case 16: return copy_items<16>(joined, from, to);
    default: return copy_items<0>(joined, from, to);
  }
}

/// Copies elements from device USM to host memory, in pieces of at most 64 MiB, gaps included.
/// @param from, to the first element
void fetch(std::int32_t device_id, const strided_bytes& elements, const unsigned char* from,
           unsigned char* to) {
  constexpr std::int64_t most = 64 << 20;
  std::int64_t before = 0, length = elements.item;
  std::size_t longest = 0;
  std::int64_t most_of_one = 0;
  for (std::size_t r = 0; r < elements.dimensions.size(); ++r) {
    const std::int64_t reach =
        (elements.dimensions[r].extent - 1) * elements.dimensions[r].from_stride;
    before += std::min<std::int64_t>(reach, 0);
    length += std::abs(reach);
    if (std::abs(reach) > most_of_one) {
      longest = r;
      most_of_one = std::abs(reach);
    }
  }
  if (length > most && most_of_one > 0) {
    strided_bytes part = elements;
    auto& [extent, from_stride, to_stride] = part.dimensions[longest];
    const std::int64_t half = extent / 2, rest = extent - half;
    extent = half;
    fetch(device_id, part, from, to);
    extent = rest;
    fetch(device_id, part, from + half * from_stride, to + half * to_stride);
    return;
  }
  const copy_memory staged = allocate_host(static_cast<std::uint64_t>(length));
  copy_bytes(device_id, from + before, staged.get(), static_cast<std::uint64_t>(length));
  rearrange(elements, static_cast<const unsigned char*>(staged.get()) - before, to);
}

[[noreturn]] void refuse_packed(const proved_tensor& tensor) {
  detail::refuse(errc::dtype_unsupported, "dtype",
                 "elements of whole bytes, or packed ones in C order that fill their bytes",
                 "packed " + to_string(tensor.described.dtype), unpacking_remedy);
}

/// The number of elements in C order without gaps; otherwise, and of an empty tensor, 0.
std::int64_t compact_size(const proved_tensor& tensor) {
  const DLTensor& described = tensor.described;
  return detail::compact_size(described.shape, described.strides, tensor.ndim(), false);
}

std::int64_t offset_of_first(const proved_tensor& tensor) {
  return static_cast<std::int64_t>(tensor.structure().first - tensor.structure().lowest);
}

/// The elements of two tensors of one shape; null for one that is compact in row-major order.
/// @pre the elements have whole bytes
strided_bytes elements_of(const proved_tensor& shaped, const proved_tensor* from,
                          const proved_tensor* to) {
  const std::int64_t item = bits_of_element(shaped) / 8;
  strided_bytes elements{{}, item};
  std::int64_t compact = item;
  for (std::size_t r = shaped.ndim(); r-- > 0;) {
    const std::int64_t extent = shaped.described.shape[r];
    const auto stride = [&](const proved_tensor* tensor) {
      return tensor == nullptr || extent == 1 ? compact : tensor->described.strides[r] * item;
    };
    elements.dimensions.push_back({extent, stride(from), stride(to)});
    compact *= extent;
  }
  std::reverse(elements.dimensions.begin(), elements.dimensions.end());
  return elements;
}

/// Copies the source's bytes, gaps included, to the host. @pre the GIL is not held
void copy_span(const proved_tensor& source, void* to) {
  const std::uint64_t nbytes = source.structure().nbytes;
  if (source.is_on_host()) {
    std::memcpy(to, bytes_of(source), nbytes);
  } else {
    copy_bytes(source.proof.device_id(), bytes_of(source), to, nbytes);
  }
}

/// Writes the elements to host memory, compact and in row-major order.
/// @pre the GIL is not held; the source is not empty, and compact if elements are packed
void compact(const proved_tensor& source, unsigned char* to) {
  if (is_c_contiguous(source)) {
    copy_span(source, to);
    return;
  }
  const strided_bytes elements = elements_of(source, &source, nullptr);
  const unsigned char* first = bytes_of(source) + offset_of_first(source);
  if (host_reads(source)) {
    rearrange(elements, first, to);
  } else {
    fetch(source.proof.device_id(), elements, first, to);
  }
}

/// Refuses packed elements that a copy would have to take out of their bytes.
void check_packing(const proved_tensor& source, const copy_layout& copy) {
  if (copy.compact && !has_whole_bytes(source) && !is_c_contiguous(source)) {
    refuse_packed(source);
  }
}

/// Writes a tensor without gaps: by one copy of what is rearranged on the host.
void write_whole(const unsigned char* values, const proved_tensor& to) {
  const std::uint64_t nbytes = to.structure().nbytes;
  const copy_memory staged = allocate_host(nbytes);
  auto* bytes = static_cast<unsigned char*>(staged.get());
  rearrange(elements_of(to, nullptr, &to), values, bytes + offset_of_first(to));
  copy_bytes(to.proof.device_id(), bytes, reinterpret_cast<void*>(to.structure().lowest),
             nbytes);
}

/// Writes a tensor with gaps in device USM: by a copy for each run of elements that lie side
/// by side, because others may write to the gaps meanwhile.
void write_runs(const unsigned char* values, const proved_tensor& to) {
  constexpr std::size_t most_pending = 1024;
  auto* first = reinterpret_cast<unsigned char*>(to.structure().first);
  sycl::queue queue = dpctl_queue(to.proof.device_id());
  std::vector<sycl::event> pending;
  const auto wait = [&] {
    std::for_each(pending.begin(), pending.end(), &detail::wait_for_command);
    pending.clear();
  };
  const strided_bytes runs = join_dimensions(elements_of(to, nullptr, &to));
  try {
    for_each_item(runs, 0, 0, 0, [&](std::int64_t from_byte, std::int64_t to_byte) {
      pending.push_back(queue.memcpy(first + to_byte, values + from_byte,
                                     static_cast<std::size_t>(runs.item)));
      if (pending.size() == most_pending) {
        wait();
      }
    });
    wait();
  } catch (...) {
    detail::pending_work(queue).wait();  // other copies read `values`, which the caller frees
    throw;
  }
}

/// Writes compact elements in row-major order to USM.
/// @pre the GIL is not held; packed elements are compact there, too
void write_elements(const unsigned char* values, const proved_tensor& to) {
  const std::uint64_t nbytes = to.structure().nbytes;
  auto* lowest = reinterpret_cast<void*>(to.structure().lowest);
  if (is_c_contiguous(to) && host_reads(to)) {
    std::memcpy(lowest, values, nbytes);
  } else if (is_c_contiguous(to)) {
    copy_bytes(to.proof.device_id(), values, lowest, nbytes);
  } else if (host_reads(to)) {
    rearrange(elements_of(to, nullptr, &to), values,
              reinterpret_cast<unsigned char*>(to.structure().first));
  } else if (layout_of_copy(to).nbytes == to.structure().nbytes) {
    write_whole(values, to);
  } else {
    write_runs(values, to);
  }
}

/// Whether two tensors of one shape have the same strides.
bool have_same_strides(const proved_tensor& one, const proved_tensor& other) {
  bool same = true;
  for (std::size_t r = 0; r < one.ndim(); ++r) {
    same = same && (one.described.shape[r] == 1 ||
                    one.described.strides[r] == other.described.strides[r]);
  }
  return same;
}

/// Whether two tensors of one shape have the same elements. Two drivers may have different
/// memory at one address.
bool are_the_same(const proved_tensor& one, const proved_tensor& other) {
  const bool is_one_memory =
      one.is_on_host() || other.is_on_host() || one.proof.context() == other.proof.context();
  return is_one_memory && one.structure().first == other.structure().first &&
         have_same_strides(one, other);
}

/// Whether two tensors of one shape have the same strides, and no gaps.
bool have_one_layout(const proved_tensor& one, const proved_tensor& other) {
  return have_same_strides(one, other) && !layout_of_copy(one).compact;
}

bool share_bytes(const tensor_structure& one, const tensor_structure& other) {
  return one.lowest < other.lowest + other.nbytes && other.lowest < one.lowest + one.nbytes;
}

tensor_copy describe_copy(const proved_tensor& source, copy_memory memory, DLDevice device,
                          bool compact) {
  const std::uint64_t flags = (source.flags & flag::is_subbyte_type_padded) | flag::is_copied;
  tensor_copy copied{source.described, flags, std::move(memory)};
  copied.described.data = copied.memory.get();
  copied.described.device = device;
  if (compact) {
    copied.described.strides = nullptr;
  }
  return copied;
}

/// Whether a root device is known to reach the memory of another one.
bool are_peers(std::int32_t device_id, std::int32_t other) {
  return default_context(device_id) == default_context(other) &&
         detail::can_access_peer(root_device(device_id), root_device(other));
}

/// Whether one memcpy of the destination's queue can copy the source. A driver need not
/// support copies between root devices that are not peers, even within a context. Host memory
/// can be shared USM of another root device.
bool one_copy_reaches(const proved_tensor& source, std::int32_t device_id) {
  sycl::usm::alloc kind = source.proof.usm_type();
  std::int32_t source_id = source.proof.device_id();
  if (source.is_on_host()) {
    const detail::allocation memory = detail::find_allocation(
        bytes_of(source), detail::device_table::get().platform_of(device_id));
    kind = memory.kind;
    source_id = memory.device_id;
  }
  return kind == sycl::usm::alloc::unknown || kind == sycl::usm::alloc::host ||
         source_id == device_id || are_peers(device_id, source_id);
}

}  // namespace

bool has_whole_bytes(const proved_tensor& tensor) { return bits_of_element(tensor) % 8 == 0; }

void check_copyable(const proved_tensor& source, bool c_order) {
  check_packing(source, layout_of_copy(source, c_order));
}

bool is_c_contiguous(const proved_tensor& tensor) {
  return tensor.structure().empty || compact_size(tensor) != 0;
}

void copy_free::operator()(void* address) noexcept {
  if (!context) {
    std::free(address);
  } else if (!process_is_forked()) {
    free_usm_after_work(queues->queues(), address, *context);
  }
}

void drop_after_work::operator()(detail::tensor_owner* owner) noexcept {
  if (process_is_forked()) {
    return;
  }
  try {
    free_after_work({queues->queues(), [owner]() noexcept {
                       const nb::gil_scoped_acquire gil;
                       delete owner;
                     }});
  } catch (const std::bad_alloc&) {  // leaks
  }
}

copy_memory find_usm(const char* field, std::uint64_t nbytes, std::int32_t device_id,
                     sycl::usm::alloc kind) {
  const sycl::context context = default_context(device_id);
  if (kind == sycl::usm::alloc::unknown) {
    kind = sycl::usm::alloc::device;
  }
  const sycl::device device = root_device(device_id);
  free_finished();
  copy_memory memory(nullptr, {context, std::make_shared<queue_list>(), nullptr});
  memory.reset(detail::with_runtime_errors(
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
  detail::with_runtime_errors("data",
                              [&] { compact(source, static_cast<unsigned char*>(to)); });
}

void write_to_usm(const proved_tensor& from, const proved_tensor& to) {
  if (to.structure().empty || are_the_same(from, to)) {
    return;
  }
  const bool is_block = have_one_layout(from, to) &&
                        !share_bytes(from.structure(), to.structure()) &&
                        one_copy_reaches(from, to.proof.device_id());
  // A packed destination must end on a byte boundary: other elements may share its last byte.
  const bool fills = compact_size(to) * bits_of_element(to) % 8 == 0;
  if (!has_whole_bytes(to) && !(is_c_contiguous(from) && is_c_contiguous(to) && fills)) {
    refuse_packed(to);
  }
  const without_gil unlocked;
  detail::with_runtime_errors("data", [&] {
    if (is_block) {
      copy_bytes(to.proof.device_id(), bytes_of(from),
                 reinterpret_cast<void*>(to.structure().lowest), to.structure().nbytes);
      return;
    }
    const copy_memory staged = allocate_host(layout_of_copy(to, true).nbytes);
    auto* values = static_cast<unsigned char*>(staged.get());
    compact(from, values);
    write_elements(values, to);
  });
}

tensor_copy copy_to_host(const proved_tensor& source, bool c_order) {
  const copy_layout layout = layout_of_copy(source, c_order);
  check_packing(source, layout);
  copy_memory memory = allocate_host(layout.nbytes);
  if (layout.compact) {
    write_compact(source, memory.get());
  } else if (!source.structure().empty) {
    const without_gil unlocked;
    detail::with_runtime_errors("data", [&] { copy_span(source, memory.get()); });
  }
  return describe_copy(source, std::move(memory), {kDLCPU, 0}, layout.compact);
}

tensor_copy copy_to_usm(const proved_tensor& source, std::int32_t device_id,
                        sycl::usm::alloc kind, bool c_order) {
  const copy_layout layout = layout_of_copy(source, c_order);
  check_packing(source, layout);
  copy_memory memory = find_usm("copy", layout.nbytes, device_id, kind);
  if (memory.get() == nullptr) {
    refuse_memory(std::to_string(layout.nbytes));
  }
  if (!source.structure().empty) {
    const bool direct = !layout.compact && one_copy_reaches(source, device_id);
    const copy_memory staged = direct ? copy_memory() : copy_to_host(source, c_order).memory;
    const void* from = direct ? bytes_of(source) : staged.get();
    const without_gil unlocked;
    detail::with_runtime_errors(
        "data", [&] { copy_bytes(device_id, from, memory.get(), layout.nbytes); });
  }
  return describe_copy(source, std::move(memory), {kDLOneAPI, device_id},
                       layout.compact || c_order);
}

}  // namespace usm_dlpack::python
