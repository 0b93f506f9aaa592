// SPDX-License-Identifier: Apache-2.0
//
// sycl/backends/cuda.hpp: what CUDA tells of memory, SYCL's and its own, and tensors of CUDA's
// device types. Run on a GPU by `dev.py cuda`.
#include "usm_memory.hpp"

#include <dlfcn.h>

namespace test_cuda {

using namespace usm_dlpack_test;
using bytes = row_view<std::uint8_t>;

/// A function of CUDA's driver; all return 0 for success.
template <class... Arguments>
void call_cuda(const char* name, Arguments... arguments) {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY);
  auto* const function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  if (function == nullptr || function(arguments...) != 0) {
    throw std::runtime_error(std::string("CUDA failed: ") + name);
  }
}

std::byte* from_number(std::uintptr_t address) {
  return reinterpret_cast<std::byte*>(address);
}

usm_allocation prove(std::byte* first, std::int64_t count, DLDevice device = {kDLOneAPI, 0}) {
  const bytes view(reinterpret_cast<std::uint8_t*>(first), count);
  const auto tensor = to_dlpack_tensor(view, device);
  return validate(tensor.get());
}

TEST(Cuda, KindDeviceAndBoundsAreExact) {
  for (const alloc kind : usm_kinds) {
    SCOPED_TRACE(usm_dlpack::to_string(kind));
    const usm_memory memory(kind, 1000, queue_on());
    const usm_memory neighbour(kind, 1000, queue_on());
    for (const std::ptrdiff_t offset : {0, 1, 999}) {
      const usm_allocation proved = prove(memory.at(offset), 1000 - offset);
      expect_bounds(proved, bounds_proof::allocation, memory.at(), 1000);
      EXPECT_EQ(proved.usm_type(), kind);
      EXPECT_EQ(proved.device_proved(),
                kind == alloc::host ? device_proof::none : device_proof::backend);
      EXPECT_EQ(proved.device(), root_devices().at(0));
    }
    for (const std::int64_t count : {std::int64_t{1001}, std::int64_t{1536}}) {
      EXPECT_REFUSAL(prove(memory.at(), count), errc::out_of_bounds, "shape",
                     "a view within the 1000 bytes of its allocation",
                     "one of " + std::to_string(count) + " bytes from byte 0");
    }
    EXPECT_REFUSAL(prove(memory.at(1000), 1), errc::pointer_unknown, "data");
  }
}

TEST(Cuda, FreedMemoryAndOtherMemoryIsUnknown) {
  std::vector<std::byte> on_heap(100);
  EXPECT_REFUSAL(prove(on_heap.data(), 100), errc::pointer_unknown, "data");
  for (const alloc kind : usm_kinds) {
    usm_memory memory(kind, 1000, queue_on());
    memory.free();
    EXPECT_REFUSAL(prove(memory.at(), 1), errc::pointer_unknown, "data");
  }
}

TEST(Cuda, MemoryOfCudaItselfIsUsm) {
  static_cast<void>(usm_memory(alloc::device, 1, queue_on()));  // makes a context current
  std::uintptr_t on_device = 0;
  std::uintptr_t managed = 0;
  void* pinned = nullptr;
  call_cuda("cuMemAlloc_v2", &on_device, std::size_t{1000});
  call_cuda("cuMemAllocManaged", &managed, std::size_t{1000}, 1U);
  call_cuda("cuMemAllocHost_v2", &pinned, std::size_t{1000});
  const std::pair<std::byte*, alloc> all[] = {{from_number(on_device), alloc::device},
                                              {from_number(managed), alloc::shared},
                                              {static_cast<std::byte*>(pinned), alloc::host}};
  for (const auto& known : all) {
    std::byte* const memory = known.first;
    const usm_allocation proved = prove(memory + 8, 992);
    EXPECT_EQ(proved.usm_type(), known.second);
    expect_bounds(proved, bounds_proof::allocation, memory, 1000);
    EXPECT_REFUSAL(prove(memory, 1001), errc::out_of_bounds, "shape");
  }
  call_cuda("cuMemFree_v2", on_device);
  call_cuda("cuMemFree_v2", managed);
  call_cuda("cuMemFreeHost", pinned);
  EXPECT_REFUSAL(prove(from_number(on_device), 1), errc::pointer_unknown, "data");
}

/// A reservation of virtual memory, in which pieces of device memory can be mapped.
class reservation {
 public:
  static constexpr std::size_t piece = std::size_t{2} << 20;

  explicit reservation(std::size_t pieces) : size_(pieces * piece) {
    call_cuda("cuMemAddressReserve", &base_, size_, std::size_t{0}, std::uintptr_t{0},
              std::uint64_t{0});
  }
  ~reservation() {
    for (const auto& [address, handle] : mapped_) {
      call_cuda("cuMemUnmap", address, piece);
      call_cuda("cuMemRelease", handle);
    }
    call_cuda("cuMemAddressFree", base_, size_);
  }
  reservation(const reservation&) = delete;
  reservation& operator=(const reservation&) = delete;

  /// The address of a piece, mapped or not.
  std::byte* at(std::size_t place) const { return from_number(base_ + place * piece); }

  void map(std::size_t place) {
    // CUmemAllocationProp: pinned memory (1) of a device (1), the first.
    struct {
      int type = 1;
      int handle_types = 0;
      int location_type = 1;
      int location_id = 0;
      void* metadata = nullptr;
      std::uint64_t flags = 0;
    } wanted;
    struct {
      int location_type = 1;
      int location_id = 0;
      int flags = 3;  // readable and writable
    } access;
    std::uint64_t handle = 0;
    const std::uintptr_t address = as_number(at(place));
    call_cuda("cuMemCreate", &handle, piece, &wanted, std::uint64_t{0});
    call_cuda("cuMemMap", address, piece, std::size_t{0}, handle, std::uint64_t{0});
    call_cuda("cuMemSetAccess", address, piece, &access, std::size_t{1});
    mapped_.emplace_back(address, handle);
  }

 private:
  std::uintptr_t base_ = 0;
  std::size_t size_;
  std::vector<std::pair<std::uintptr_t, std::uint64_t>> mapped_;
};

TEST(Cuda, AdjacentMappedPiecesCountAsOneAndAGapEndsThem) {
  static_cast<void>(usm_memory(alloc::device, 1, queue_on()));
  constexpr std::size_t piece = reservation::piece;
  constexpr auto count = static_cast<std::int64_t>(piece);
  reservation space(8);
  for (const std::size_t place : {0U, 1U, 2U, 4U}) {
    space.map(place);
  }
  expect_bounds(prove(space.at(1), count), bounds_proof::block, space.at(1), piece);
  expect_bounds(prove(space.at(0) + 8, count), bounds_proof::block, space.at(0), 2 * piece);
  expect_bounds(prove(space.at(0), 3 * count), bounds_proof::block, space.at(0), 3 * piece);
  EXPECT_EQ(prove(space.at(1), count).usm_type(), alloc::device);
  for (const std::int64_t beyond : {3 * count + 1, 5 * count}) {  // with a gap, to a piece
    EXPECT_REFUSAL(prove(space.at(0), beyond), errc::out_of_bounds, "shape");
  }
  EXPECT_REFUSAL(prove(space.at(4) + 8, count), errc::out_of_bounds, "shape");
  EXPECT_REFUSAL(prove(space.at(3), 1), errc::pointer_unknown, "data");
  EXPECT_REFUSAL(prove(space.at(7), 1), errc::pointer_unknown, "data");
}

TEST(Cuda, ViewsThatReachBelowTheirFirstElementAreProvedInPieces) {
  static_cast<void>(usm_memory(alloc::device, 1, queue_on()));
  reservation space(2);
  space.map(0);
  space.map(1);
  const std::int64_t shape[] = {static_cast<std::int64_t>(2 * reservation::piece)};
  const std::int64_t strides[] = {-1};
  const DLTensor tensor{space.at(2) - 1,
                        {kDLOneAPI, 0},
                        1,
                        {kDLUInt, 8, 1},
                        const_cast<std::int64_t*>(shape),
                        const_cast<std::int64_t*>(strides),
                        0};
  expect_bounds(validate(tensor), bounds_proof::block, space.at(0), 2 * reservation::piece);
}

TEST(Cuda, TensorsOfCudasDeviceTypesAreProvedLikeAnyOther) {
  const DLDevice cuda = cuda_device(0);
  EXPECT_EQ(cuda.device_type, kDLCUDA);
  for (const DLDeviceType type : {kDLCUDA, kDLCUDAHost, kDLCUDAManaged}) {
    EXPECT_EQ(device_id(DLDevice{type, cuda.device_id}), 0);
    for (const alloc kind : usm_kinds) {
      const usm_memory memory(kind, 1000, queue_on());
      const usm_allocation proved = prove(memory.at(), 1000, {type, cuda.device_id});
      EXPECT_EQ(proved.device_id(), 0);
      EXPECT_EQ(proved.usm_type(), kind);
      expect_bounds(proved, bounds_proof::allocation, memory.at(), 1000);
      EXPECT_REFUSAL(prove(memory.at(), 1001, {type, cuda.device_id}), errc::out_of_bounds,
                     "shape");
    }
    EXPECT_REFUSAL(device_id(DLDevice{type, 64}), errc::device_type_unsupported,
                   "device.device_type", std::nullopt,
                   detail::device_type_name(type) + " of CUDA device 64, which is none");
  }
}

TEST(Cuda, AViewGoesToCudaCodeAndBack) {
  const usm_memory memory(alloc::device, 48, queue_on());
  const row_view<float> view(memory.as<float>(), 12);
  const auto tensor = usm_dlpack::to_dlpack_tensor(view, usm_dlpack::cuda_device(0));
  const auto proof = usm_dlpack::validate(tensor.get());
  EXPECT_EQ(proof.data(), view.data_handle());
  EXPECT_EQ(tensor.get().data, memory.at());
  EXPECT_EQ(tensor.device().device_type, kDLCUDA);
  EXPECT_EQ(tensor.device().device_id, cuda_device(0).device_id);
  EXPECT_EQ(to_mdspan<device_mdspan<row_view<float>>>(tensor.get()).data_handle(),
            view.data_handle());
}

}  // namespace test_cuda
