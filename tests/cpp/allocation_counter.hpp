// SPDX-License-Identifier: Apache-2.0
//
// Counts the heap allocations of this program, and makes one fail. The `operator new` that
// does it is replaced in core/allocation_counter.cpp; it stands on malloc, so sanitizers still
// see every allocation.
#pragma once

#include <cstddef>

namespace usm_dlpack_test {

/// Calls of any `operator new` since the program started.
std::size_t allocations() noexcept;
/// Calls of any `operator delete` with a pointer since the program started.
std::size_t deallocations() noexcept;
/// Makes one of the next calls of an `operator new`, counted from 1, throw `std::bad_alloc`; 0
/// lets all succeed.
void fail_allocation(std::ptrdiff_t number) noexcept;

/// Allocations and deallocations since its construction.
class allocation_count {
 public:
  std::size_t made() const noexcept { return allocations() - made_; }
  std::size_t freed() const noexcept { return deallocations() - freed_; }

 private:
  std::size_t made_ = allocations();
  std::size_t freed_ = deallocations();
};

}  // namespace usm_dlpack_test
