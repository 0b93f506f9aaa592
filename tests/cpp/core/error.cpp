// SPDX-License-Identifier: Apache-2.0
//
// The sentence of a refusal and its parts, and that they survive copying and a lack of memory.
#include <allocation_counter.hpp>
#include <valid_tensor.hpp>

#include <stdexcept>

namespace test_error {

using namespace usm_dlpack_test;

conversion_error some_error() {
  return {errc::invalid_tensor,
          {"data", "the address of the elements", "null", "have it set"}};
}

void expect_some_error(const conversion_error& error) {
  EXPECT_EQ(error.code(), errc::invalid_tensor);
  EXPECT_EQ(error.field(), "data");
  EXPECT_EQ(error.expected(), "the address of the elements");
  EXPECT_EQ(error.found(), "null");
  EXPECT_EQ(error.remedy(), "have it set");
  const std::invalid_argument& base = error;
  EXPECT_STREQ(base.what(),
               "data: expected the address of the elements, found null; have it set");
}

static_assert(std::is_nothrow_copy_constructible_v<conversion_error>);

TEST(Error, OutlivesWhatItWasCopiedFromAndBeingMovedFrom) {
  auto original = std::make_unique<conversion_error>(some_error());
  expect_some_error(*original);
  const conversion_error copy = *original;
  conversion_error assigned(errc::read_only, {"flags", "a", "b", "c"});
  assigned = *original;
  assigned = static_cast<const conversion_error&>(assigned);
  const conversion_error moved = std::move(*original);
  expect_some_error(*original);
  original.reset();
  expect_some_error(moved);
  expect_some_error(copy);
  expect_some_error(assigned);
}

TEST(Error, NamesOneDimensionByItsIndex) {
  EXPECT_EQ(detail::indexed("shape", 11), "shape[11]");
}

TEST(Error, KeepsNothingWhereThereIsNoMemoryForIt) {
  const std::string text(100, 'x');  // longer than a string that needs no memory
  std::ptrdiff_t failed = 0;
  for (bool refused = false; !refused;) {
    const allocation_count count;
    fail_allocation(++failed);
    try {
      detail::refuse(errc::invalid_tensor, text, text, text, text);
    } catch (const conversion_error&) {
      refused = true;
    } catch (const std::bad_alloc&) {
    }
    fail_allocation(0);
    EXPECT_EQ(count.made(), count.freed()) << "with allocation " << failed << " failing";
  }
  EXPECT_GT(failed, 5) << "the parts and the sentence are allocated";
}

}  // namespace test_error
