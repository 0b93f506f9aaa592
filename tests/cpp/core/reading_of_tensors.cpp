// SPDX-License-Identifier: Apache-2.0
//
// How far the memory of a foreign tensor is read: shape and strides to their ends, and of a
// managed tensor of another major version only what every version has. What must not be read
// stands in a page without access, so that reading it ends the process.
#include <mdspan_under_test.hpp>
#include <refusal.hpp>
#include <valid_tensor.hpp>

#include <usm_dlpack/core/layout_relaxed.hpp>
#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>

namespace {

using usm_dlpack::managed_tensor;

/// A page that can be read, between two that cannot.
class fenced_page {
 public:
  fenced_page()
      : size_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        pages_(mmap(nullptr, 3 * size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (pages_ == MAP_FAILED || mprotect(begin(), size_, PROT_READ | PROT_WRITE) != 0) {
      throw std::bad_alloc();
    }
  }
  ~fenced_page() { munmap(pages_, 3 * size_); }
  fenced_page(const fenced_page&) = delete;
  fenced_page& operator=(const fenced_page&) = delete;
  unsigned char* begin() const { return static_cast<unsigned char*>(pages_) + size_; }
  unsigned char* end() const { return begin() + size_; }

 private:
  std::size_t size_;
  void* pages_;
};

template <class Layout>
void expect_read(const std::array<std::int64_t, 3>& shape,
                 const std::array<std::int64_t, 3>& strides) {
  using view = md::mdspan<float, md::dextents<std::int64_t, 3>, Layout>;
  const fenced_page page;
  for (const bool at_end : {false, true}) {
    usm_dlpack_test::strided_tensor sample({0, 0, 0}, {});
    unsigned char* const place = at_end ? page.end() - sizeof shape : page.begin();
    sample.tensor.shape = reinterpret_cast<std::int64_t*>(place);
    std::memcpy(place, shape.data(), sizeof shape);
    sample.tensor.strides = nullptr;
    EXPECT_FALSE(usm_dlpack::check_structure(sample.tensor).empty);
    const fenced_page other;
    unsigned char* const steps = at_end ? other.end() - sizeof strides : other.begin();
    sample.tensor.strides = reinterpret_cast<std::int64_t*>(steps);
    std::memcpy(steps, strides.data(), sizeof strides);
    EXPECT_EQ(usm_dlpack::to_mdspan<view>(sample.tensor).extent(2), shape[2]);
    EXPECT_FALSE(usm_dlpack::check_structure(sample.tensor).empty);
  }
}

TEST(ReadingOfTensors, StopsAtBothEndsOfShapeAndStrides) {
  expect_read<md::layout_right>({2, 3, 4}, {12, 4, 1});
  expect_read<md::layout_right>({1, 3, 1}, {5, 1, 9});
  expect_read<md::layout_left>({2, 3, 4}, {1, 2, 6});
  expect_read<md::layout_stride>({2, 3, 4}, {4, 50, 1});
  expect_read<usm_dlpack::layout_relaxed>({2, 3, 4}, {12, -4, 1});
}

/// A managed tensor of which version, context and deleter can be read, and nothing behind
/// them.
struct tensor_of_major {
  fenced_page page;
  int deleted = 0;
  DLManagedTensorVersioned* managed = nullptr;

  explicit tensor_of_major(std::uint32_t major) {
    DLManagedTensorVersioned filled{};
    filled.version = {major, 9};
    filled.manager_ctx = this;
    filled.deleter = [](DLManagedTensorVersioned* self) {
      ++static_cast<tensor_of_major*>(self->manager_ctx)->deleted;
    };
    constexpr std::size_t readable = offsetof(DLManagedTensorVersioned, flags);
    static_assert(offsetof(DLManagedTensorVersioned, deleter) < readable);
    std::memcpy(page.end() - readable, &filled, readable);
    managed = reinterpret_cast<DLManagedTensorVersioned*>(page.end() - readable);
  }
};

TEST(ReadingOfTensors, OfAnotherMajorVersionIsThatOfItsVersionAndDeleter) {
  using view = md::mdspan<float, md::dextents<int, 2>>;
  for (const std::uint32_t major : {0U, 2U, 7U}) {
    tensor_of_major other(major);
    const auto receive = [&] {
      const managed_tensor received(other.managed);
      return usm_dlpack::to_mdspan<view>(*received);
    };
    EXPECT_REFUSAL(receive(), usm_dlpack::errc::version_unsupported, "version.major", "1",
                   std::to_string(major));
    EXPECT_EQ(other.deleted, 1);
    managed_tensor(other.managed).reset();
    EXPECT_EQ(other.deleted, 2);
  }
}

}  // namespace
