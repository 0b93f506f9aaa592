// SPDX-License-Identifier: Apache-2.0
//
// How far shape and strides are read: to their ends and no further, whatever the layout. They
// stand at one end of a page between two that cannot be read.
#include <mdspan_under_test.hpp>
#include <valid_tensor.hpp>

#include <usm_dlpack/core/layout_relaxed.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>

namespace {

/// Numbers at the beginning or at the end of a page of their own.
class fenced_numbers {
 public:
  template <std::size_t Count>
  fenced_numbers(const std::array<std::int64_t, Count>& numbers, bool at_end)
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        pages_(mmap(nullptr, 3 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (pages_ == MAP_FAILED) throw std::bad_alloc();
    unsigned char* const open = static_cast<unsigned char*>(pages_) + page_;
    if (mprotect(open, page_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    first_ = reinterpret_cast<std::int64_t*>(at_end ? open + page_ - sizeof numbers : open);
    std::copy(numbers.begin(), numbers.end(), first_);
  }
  ~fenced_numbers() { munmap(pages_, 3 * page_); }
  fenced_numbers(const fenced_numbers&) = delete;
  fenced_numbers& operator=(const fenced_numbers&) = delete;
  std::int64_t* get() const noexcept { return first_; }

 private:
  std::size_t page_;
  void* pages_;
  std::int64_t* first_ = nullptr;
};

template <class Layout, std::size_t Rank>
void expect_read(const std::array<std::int64_t, Rank>& shape,
                 const std::array<std::int64_t, Rank>& strides, bool null_strides = false) {
  using view = md::mdspan<float, md::dextents<std::int64_t, Rank>, Layout>;
  alignas(64) static std::array<float, 1024> elements{};
  for (const bool at_end : {false, true}) {
    const fenced_numbers extents(shape, at_end);
    const fenced_numbers steps(strides, at_end);
    DLTensor tensor{};
    tensor.data = &elements[512];
    tensor.device = usm_dlpack_test::some_device;
    tensor.ndim = static_cast<std::int32_t>(Rank);
    tensor.dtype = {kDLFloat, 32, 1};
    tensor.shape = extents.get();
    tensor.strides = null_strides ? nullptr : steps.get();
    const view read = usm_dlpack::to_mdspan<view>(tensor);
    for (std::size_t r = 0; r < Rank; ++r) {
      EXPECT_EQ(read.extent(r), shape[r]);
      EXPECT_TRUE(shape[r] == 1 || read.stride(r) == strides[r]) << "stride " << r;
    }
  }
}

TEST(ReadingOfTensors, OfRowsStopsAtBothEnds) {
  expect_read<md::layout_right, 1>({7}, {1});
  expect_read<md::layout_right, 2>({2, 3}, {3, 1});
  expect_read<md::layout_right, 3>({2, 3, 4}, {12, 4, 1});
  expect_read<md::layout_right, 3>({2, 3, 4}, {12, 4, 1}, true);
  expect_read<md::layout_right, 3>({1, 3, 1}, {5, 1, 9});
}

TEST(ReadingOfTensors, OfColumnsStopsAtBothEnds) {
  expect_read<md::layout_left, 1>({7}, {1});
  expect_read<md::layout_left, 2>({2, 3}, {1, 2});
  expect_read<md::layout_left, 3>({2, 3, 4}, {1, 2, 6});
  expect_read<md::layout_left, 3>({1, 3, 1}, {5, 1, 9});
}

TEST(ReadingOfTensors, OfStridesStopsAtBothEnds) {
  expect_read<md::layout_stride, 1>({7}, {2});
  expect_read<md::layout_stride, 2>({2, 3}, {9, 2});
  expect_read<md::layout_stride, 2>({2, 3}, {2, 9});
  expect_read<md::layout_stride, 3>({2, 3, 4}, {4, 50, 1});
  expect_read<md::layout_stride, 3>({2, 1, 4}, {4, 50, 1});
}

TEST(ReadingOfTensors, OfAnyStridesStopsAtBothEnds) {
  using usm_dlpack::layout_relaxed;
  expect_read<layout_relaxed, 1>({7}, {-2});
  expect_read<layout_relaxed, 2>({2, 3}, {0, 1});
  expect_read<layout_relaxed, 3>({2, 3, 4}, {12, -4, 1});
  expect_read<layout_relaxed, 3>({2, 3, 4}, {1, 1, 1});
}

}  // namespace
