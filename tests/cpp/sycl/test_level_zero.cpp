// SPDX-License-Identifier: Apache-2.0
//
// sycl/backends/level_zero.hpp: what Level Zero reports of SYCL's memory, and what is claimed
// where it does not. Run on Intel's driver by `dev.py gpu`.
#include "usm_memory.hpp"

#include <map>

namespace test_level_zero {

using namespace usm_dlpack_test;
using bytes = row_view<std::uint8_t>;

usm_allocation prove(std::byte* first, std::int64_t count) {
  const bytes view(reinterpret_cast<std::uint8_t*>(first), count);
  const auto tensor = to_dlpack_tensor(view, queue_on());
  return validate(tensor.get());
}

TEST(LevelZero, TheDriverNamesKindAndDevice) {
  for (const alloc kind : usm_kinds) {
    const usm_memory memory(kind, 64, queue_on());
    const usm_allocation proved = prove(memory.at(), 64);
    EXPECT_EQ(proved.usm_type(), kind);
    EXPECT_EQ(proved.device_proved(),
              kind == alloc::host ? device_proof::none : device_proof::backend);
    EXPECT_EQ(proved.device(), root_devices().at(0));
  }
}

// --- The driver's block ---------------------------------------------------------------------

TEST(LevelZero, AViewIsTakenUpToTheEndOfTheDriversBlockAndBeyondItRefused) {
  for (const alloc kind : usm_kinds) {
    SCOPED_TRACE(usm_dlpack::to_string(kind));
    const usm_memory memory(kind, 1000, queue_on());
    const usm_allocation proved = prove(memory.at(200), 800);
    ASSERT_EQ(proved.bounds_proved(), bounds_proof::block);
    const std::uintptr_t first = as_number(memory.at()) - proved.base();
    ASSERT_GE(proved.size(), first + 1000);
    const auto left = static_cast<std::int64_t>(proved.size() - first);
    EXPECT_EQ(prove(memory.at(), left).base(), proved.base());
    EXPECT_REFUSAL(
        prove(memory.at(), left + 1), errc::out_of_bounds, "shape",
        within_whole(proved.size()),
        "one of " + std::to_string(left + 1) + " bytes from byte " + std::to_string(first));
  }
}

TEST(LevelZero, WithoutPoolsEveryAllocationIsABlockUnpooled) {
  const usm_memory memory(alloc::device, 1000, queue_on());
  expect_bounds(prove(memory.at(200), 800), bounds_proof::block, memory.at(), 1000);
}

// --- Where the driver does not tell ---------------------------------------------------------

using detail::level_zero_queries;

/// The device table with other queries of Level Zero.
template <class Change>
auto with_queries(const Change& change) {
  return [&](device_table& table) {
    change_queries<level_zero_queries>(table.platforms.at(0), change);
  };
}

TEST(LevelZero, BothEndsAreAskedWhereTheDriverTellsNoRange) {
  const usm_memory memory(alloc::device, 1000, queue_on());
  const changed_table changed(with_queries([](level_zero_queries& queries) {
    queries.get_range = [](ze_context_handle_t, const void*, void**, std::size_t*) {
      return 1;
    };
  }));
  expect_bounds(prove(memory.at(), 1000), bounds_proof::both_ends, nullptr, 0);
}

TEST(LevelZero, ADriverThatRefusesAQuestionKnowsNoPointer) {
  const usm_memory memory(alloc::device, 1000, queue_on());
  const changed_table changed(with_queries([](level_zero_queries& queries) {
    queries.get_properties = [](ze_context_handle_t, const void*,
                                detail::level_zero_properties*,
                                ze_device_handle_t*) { return 1; };
  }));
  EXPECT_REFUSAL(prove(memory.at(), 1000), errc::pointer_unknown, "data");
  EXPECT_REFUSAL(to_dlpack_tensor(bytes(memory.as<std::uint8_t>(), 1000)),
                 errc::pointer_unknown, "data");
}

// --- Memory that is mapped in pieces --------------------------------------------------------

namespace virtual_memory = sycl::ext::oneapi::experimental;

/// A reservation of virtual memory, in which tests map some pieces.
class reservation {
 public:
  static constexpr std::int64_t piece = 65536;  ///< bytes

  explicit reservation(std::size_t pieces)
      : size_(pieces * piece),
        address_(virtual_memory::reserve_virtual_mem(size_, queue_.get_context())) {}
  ~reservation() {
    for (const auto& mapped : mapped_) {
      virtual_memory::unmap(at(mapped.first), piece, queue_.get_context());
    }
    virtual_memory::free_virtual_mem(address_, size_, queue_.get_context());
  }
  reservation(const reservation&) = delete;
  reservation& operator=(const reservation&) = delete;

  void map(std::int64_t offset, const sycl::device& device = root_devices().at(0)) {
    const auto& made = mapped_.try_emplace(offset, device, queue_.get_context(), piece);
    try {
      made.first->second.map(reinterpret_cast<std::uintptr_t>(at(offset)), piece,
                             virtual_memory::address_access_mode::read_write);
    } catch (const sycl::exception&) {
      // The simulated driver has mapped it, and then fails to make it resident.
    }
  }

  std::byte* at(std::int64_t offset = 0) const noexcept {
    return reinterpret_cast<std::byte*>(address_) + offset;
  }

 private:
  sycl::queue queue_ = queue_on();
  std::map<std::int64_t, virtual_memory::physical_mem> mapped_;  ///< by offset
  std::size_t size_;
  std::uintptr_t address_;
};

constexpr std::int64_t piece = reservation::piece;

/// Proves a view that begins `distance` bytes below its first element, of 4 bytes.
usm_allocation prove_downwards(std::byte* first, std::int64_t distance) {
  usm_tensor valid(alloc::device);
  valid.tensor.data = first;
  valid.shape = {2, 1};
  valid.strides = {-distance / 4, 1};
  return validate(valid.tensor);
}

TEST(LevelZero, AdjacentPiecesOfAReservationAreOneBlockAsFarAsTheViewNeeds) {
  reservation memory(4);
  for (const std::int64_t offset : {2 * piece, 0 * piece, piece}) {
    memory.map(offset);
  }
  const auto expect_block = [&](const usm_allocation& proved, std::int64_t from,
                                std::size_t pieces) {
    expect_bounds(proved, bounds_proof::block, memory.at(from * piece), pieces * piece);
  };
  expect_block(prove(memory.at(), piece), 0, 1);
  expect_block(prove(memory.at(1), 3 * piece - 1), 0, 3);
  expect_block(prove(memory.at(piece + 5), piece), 1, 2);
  expect_block(prove_downwards(memory.at(2 * piece), 2 * piece), 0, 3);
  EXPECT_REFUSAL(prove(memory.at(5), 3 * piece), errc::out_of_bounds, "shape",
                 "a view within the 196608 bytes of the driver's block",
                 "one of 196608 bytes from byte 5");
  EXPECT_REFUSAL(prove(memory.at(3 * piece), 1), errc::pointer_unknown, "data");
}

TEST(LevelZero, AViewAcrossAnUnmappedPieceIsRefused) {
  reservation memory(3);
  memory.map(0);
  memory.map(2 * piece);
  EXPECT_REFUSAL(prove(memory.at(), 3 * piece), errc::out_of_bounds, "shape",
                 "a view within the 65536 bytes of the driver's block",
                 "one of 196608 bytes from byte 0");
  EXPECT_REFUSAL(prove_downwards(memory.at(2 * piece), 4), errc::out_of_bounds, "shape",
                 "a view within the 65536 bytes of the driver's block",
                 "one of 8 bytes from byte -4");
  memory.map(piece);
  expect_bounds(prove(memory.at(), 3 * piece), bounds_proof::block, memory.at(), 3 * piece);
}

TEST(LevelZero, AdjacentAllocationsAreNotOneBlock) {
  constexpr std::int64_t size = 8 << 20;
  const usm_memory one(alloc::device, size, queue_on());
  const usm_memory other(alloc::device, size, queue_on());
  const usm_memory& lower = one.at() < other.at() ? one : other;
  ASSERT_EQ(lower.at(size), std::max(one.at(), other.at()));
  EXPECT_REFUSAL(prove(lower.at(), size + 1), errc::out_of_bounds, "shape",
                 "a view within the 8388608 bytes of the driver's block",
                 "one of 8388609 bytes from byte 0");
}

TEST(LevelZero, AViewWithinItsBlockIsNotAskedForPieces) {
  static level_zero_queries::range_query get_range;
  static int asked;
  const usm_memory memory(alloc::device, 1000, queue_on());
  const changed_table changed(with_queries([](level_zero_queries& queries) {
    get_range = queries.get_range;
    queries.get_range = [](ze_context_handle_t context, const void* pointer, void** base,
                           std::size_t* size) {
      ++asked;
      return get_range(context, pointer, base, size);
    };
  }));
  prove(memory.at(), 1000);
  EXPECT_EQ(asked, 1);
}

TEST(LevelZero, PiecesAreJoinedOnlyIfTheDriverSaysThatTheyAreOfOneReservation) {
  reservation memory(3);
  for (const std::int64_t offset : {0 * piece, piece, 2 * piece}) {
    memory.map(offset);
  }
  const auto expect_refusal = [&](level_zero_queries::access_query get_access) {
    const changed_table changed(
        with_queries([&](level_zero_queries& queries) { queries.get_access = get_access; }));
    EXPECT_REFUSAL(prove(memory.at(), 3 * piece), errc::out_of_bounds, "shape",
                   "a view within the 65536 bytes of the driver's block",
                   "one of 196608 bytes from byte 0");
  };
  expect_refusal(nullptr);
  // As if the third piece were of another reservation.
  expect_refusal([](ze_context_handle_t, const void*, std::size_t size, int*, std::size_t*) {
    return size > 2 * piece ? 1 : 0;
  });
}

std::vector<sycl::device> tiles_of(const sycl::device& root) {
  using sycl::info::partition_affinity_domain;
  constexpr auto by_domain = sycl::info::partition_property::partition_by_affinity_domain;
  return root.create_sub_devices<by_domain>(partition_affinity_domain::next_partitionable);
}

TEST(LevelZeroTiles, AQueueOnATileIsOfTheDefaultContextAndItsMemoryIsExchanged) {
  for (std::int32_t id = 0; id < 2; ++id) {
    const sycl::device root = root_devices().at(static_cast<std::size_t>(id));
    for (const sycl::device& tile : tiles_of(root)) {
      const sycl::queue queue(tile);
      ASSERT_EQ(queue.get_context(), default_context(id));
      for (const alloc kind : {alloc::device, alloc::shared}) {
        SCOPED_TRACE(usm_dlpack::to_string(kind));
        const usm_memory memory(kind, 1000, queue);
        const bytes view(memory.as<std::uint8_t>(), 1000);
        const auto tensor = to_dlpack_tensor(view, queue);
        EXPECT_EQ(id_of(tensor), id);
        EXPECT_EQ(id_of(to_dlpack_tensor(view)), id);
        const usm_allocation proved = validate(tensor.get());
        EXPECT_EQ(proved.device(), tile);
        EXPECT_EQ(proved.root_device(), root);
        const auto wrong = to_dlpack_tensor(view, DLDevice{kDLOneAPI, 1 - id});
        EXPECT_REFUSAL(validate(wrong.get()), errc::device_mismatch, "device.device_id");
        EXPECT_REFUSAL(to_dlpack_tensor(
                           view, sycl::queue(tiles_of(root_devices().at(id == 0 ? 1 : 0))[0])),
                       errc::device_mismatch, "queue",
                       "a queue on device " + std::to_string(id) + ", where the memory is",
                       "one on device " + std::to_string(1 - id));
      }
    }
  }
}

TEST(LevelZeroTiles, APieceOfAnotherDeviceIsNotJoined) {
  const sycl::device root = root_devices().at(0);
  const std::pair<sycl::device, sycl::device> pairs[] = {
      {root, root_devices().at(1)}, {tiles_of(root).at(0), tiles_of(root).at(1)}};
  for (const auto& [device, other] : pairs) {
    reservation memory(3);
    memory.map(0, device);
    memory.map(piece, device);
    memory.map(2 * piece, other);
    expect_bounds(prove(memory.at(), 2 * piece), bounds_proof::block, memory.at(), 2 * piece);
    EXPECT_REFUSAL(prove(memory.at(), 3 * piece), errc::out_of_bounds, "shape",
                   "a view within the 131072 bytes of the driver's block",
                   "one of 196608 bytes from byte 0");
  }
}

// --- An OpenCL GPU and the CPU device beside Level Zero -------------------------------------

TEST(BackendsTogether, AnAddressThatTwoDriversGiveNeedsAContextOrAQueue) {
  // Each driver's first allocation of this size stands at the same address.
  constexpr std::int64_t size = 1 << 20;
  const sycl::queue opencl = queue_on(0);
  const sycl::queue level_zero = queue_on(2);
  const usm_memory one(alloc::device, size, opencl);
  const usm_memory other(alloc::device, size, level_zero);
  ASSERT_EQ(one.at(), other.at());
  const bytes view(one.as<std::uint8_t>(), size);
  EXPECT_REFUSAL(to_dlpack_tensor(view), errc::context_not_default, "data",
                 "an address that one platform knows",
                 "memory of device 0 (opencl) and device 2 (level_zero) at it");
  const auto by_queue = to_dlpack_tensor(view, opencl);
  EXPECT_EQ(validate(by_queue.get()).device(), root_devices().at(0));
  const auto by_context = to_dlpack_tensor(view, level_zero.get_context());
  EXPECT_EQ(validate(by_context.get()).device(), root_devices().at(2));
  EXPECT_REFUSAL(to_dlpack_tensor(view, queue_on(1)), errc::device_mismatch, "queue",
                 "a queue on device 0 or 2, where the memory is", "one on device 1");
}

}  // namespace test_level_zero
