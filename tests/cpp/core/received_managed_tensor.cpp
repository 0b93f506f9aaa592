// SPDX-License-Identifier: Apache-2.0
//
// A managed tensor of another major version: owned first and looked at then, only its version
// is read and only its deleter called. Whatever else is touched ends the process, because it
// stands in a page that cannot be read, or points into one.
#include <mdspan_under_test.hpp>
#include <refusal.hpp>

#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

namespace {

using usm_dlpack::errc;
using usm_dlpack::managed_tensor;
using plain_view = md::mdspan<float, md::dextents<int, 2>>;

/// A managed tensor that ends in a page without access: version, context and deleter stand
/// before it, flags and the DLTensor in it.
class poisoned_tensor {
 public:
  explicit poisoned_tensor(std::uint32_t major)
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    static_assert(offsetof(DLManagedTensorVersioned, deleter) <
                  offsetof(DLManagedTensorVersioned, flags));
    pages_ =
        mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages_ == MAP_FAILED) throw std::bad_alloc();
    unsigned char* const closed = static_cast<unsigned char*>(pages_) + page_;
    DLManagedTensorVersioned filled{};
    filled.version = {major, 9};
    filled.manager_ctx = this;
    filled.deleter = [](DLManagedTensorVersioned* self) {
      ++static_cast<poisoned_tensor*>(self->manager_ctx)->deleted;
    };
    filled.flags = ~std::uint64_t{0};
    filled.dl_tensor.ndim = 2;
    filled.dl_tensor.data = closed;
    filled.dl_tensor.shape = reinterpret_cast<std::int64_t*>(closed);
    filled.dl_tensor.strides = filled.dl_tensor.shape;
    unsigned char* const start = closed - offsetof(DLManagedTensorVersioned, flags);
    std::memcpy(start, &filled, sizeof filled);
    managed = reinterpret_cast<DLManagedTensorVersioned*>(start);
    if (mprotect(closed, page_, PROT_NONE) != 0) throw std::runtime_error("mprotect");
  }
  ~poisoned_tensor() { munmap(pages_, 2 * page_); }
  poisoned_tensor(const poisoned_tensor&) = delete;
  poisoned_tensor& operator=(const poisoned_tensor&) = delete;

  DLManagedTensorVersioned* managed = nullptr;
  int deleted = 0;

 private:
  std::size_t page_;
  void* pages_ = nullptr;
};

/// What a consumer writes: own first, then look.
plain_view receive(DLManagedTensorVersioned* raw) {
  const managed_tensor received(raw);
  return usm_dlpack::to_mdspan<plain_view>(*received);
}

TEST(ReceivedManagedTensor, CallsTheDeleterOfAnotherMajorVersionAndTouchesNothingElse) {
  for (const std::uint32_t major : {0U, 2U, 7U}) {
    poisoned_tensor poisoned(major);
    EXPECT_REFUSAL(receive(poisoned.managed), errc::version_unsupported, "version.major", "1",
                   std::to_string(major));
    EXPECT_EQ(poisoned.deleted, 1);
  }
}

TEST(ReceivedManagedTensor, LetsGoOfAnotherMajorVersionWithoutALook) {
  poisoned_tensor poisoned(2);
  managed_tensor(poisoned.managed).reset();
  EXPECT_EQ(poisoned.deleted, 1);
}

using ReceivedManagedTensorDeathTest = ::testing::Test;

TEST(ReceivedManagedTensorDeathTest, TouchingAnythingElseWouldBeSeen) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  poisoned_tensor poisoned(1);
  EXPECT_DEATH(static_cast<void>(receive(poisoned.managed)), "");
}

}  // namespace
