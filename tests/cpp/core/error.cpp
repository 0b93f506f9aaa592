// SPDX-License-Identifier: Apache-2.0
//
// The sentence of a refusal and its parts, and that they survive copying.
#include <allocation_counter.hpp>
#include <refusal.hpp>

#include <usm_dlpack/core/error.hpp>

#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

using usm_dlpack::conversion_error;
using usm_dlpack::errc;

conversion_error some_error() {
  return {errc::data_null, {"data", "the address of the elements", "null", "have it set"}};
}

TEST(Error, MakesOneSentenceOfItsParts) {
  EXPECT_STREQ(some_error().what(),
               "data: expected the address of the elements, found null; have it set");
}

TEST(Error, KeepsEachPartAsAnAttribute) {
  const conversion_error error = some_error();
  EXPECT_EQ(error.code(), errc::data_null);
  EXPECT_EQ(error.field(), "data");
  EXPECT_EQ(error.expected(), "the address of the elements");
  EXPECT_EQ(error.found(), "null");
  EXPECT_EQ(error.remedy(), "have it set");
}

TEST(Error, IsAnInvalidArgument) {
  try {
    throw some_error();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), some_error().what());
    return;
  }
  FAIL() << "expected to catch it by its base";
}

TEST(Error, OutlivesWhatItWasCopiedFrom) {
  auto original = std::make_unique<conversion_error>(some_error());
  const conversion_error copy = *original;
  conversion_error assigned(errc::read_only, {"flags", "a", "b", "c"});
  assigned = *original;
  assigned = static_cast<const conversion_error&>(assigned);
  original.reset();
  usm_dlpack_test::expect_same_refusal(copy, errc::data_null, "data",
                                       "the address of the elements", "null");
  usm_dlpack_test::expect_same_refusal(assigned, errc::data_null, "data",
                                       "the address of the elements", "null");
}

TEST(Error, SurvivesBeingMovedFrom) {
  conversion_error original = some_error();
  const conversion_error moved = std::move(original);
  EXPECT_EQ(moved.field(), "data");
  EXPECT_EQ(original.field(), "data") << "what() of a moved-from exception is still asked for";
}

TEST(Error, TravelsThroughAnExceptionPointer) {
  std::exception_ptr kept;
  try {
    usm_dlpack::detail::refuse(errc::ndim_out_of_range, "ndim", "0", "-1", "correct it");
  } catch (...) {
    kept = std::current_exception();
  }
  EXPECT_REFUSAL(std::rethrow_exception(kept), errc::ndim_out_of_range, "ndim", "0", "-1");
}

TEST(Error, NamesOneDimensionByItsIndex) {
  EXPECT_EQ(std::string(usm_dlpack::detail::indexed("strides", 0)), "strides[0]");
  EXPECT_EQ(std::string(usm_dlpack::detail::indexed("shape", 11)), "shape[11]");
}

TEST(Error, KeepsLongTextsWhole) {
  const std::string found(1000, 'x');
  const conversion_error error(errc::runtime_error, {"queue", "no error", found, "read it"});
  EXPECT_EQ(error.found(), found);
  EXPECT_EQ(error.what(), "queue: expected no error, found " + found + "; read it");
}

TEST(Error, KeepsNothingWhereThereIsNoMemoryForIt) {
  const std::string longer_than_a_small_string(100, 'x');
  const char* const text = longer_than_a_small_string.c_str();
  std::ptrdiff_t failed = 0;
  for (bool refused = false; !refused;) {
    const usm_dlpack_test::allocation_count count;
    usm_dlpack_test::fail_allocation(++failed);
    try {
      usm_dlpack::detail::refuse(errc::data_null, text, text, text, text);
    } catch (const conversion_error&) {
      refused = true;
    } catch (const std::bad_alloc&) {
    }
    usm_dlpack_test::fail_allocation(0);
    EXPECT_EQ(count.made(), count.freed()) << "with allocation " << failed << " failing";
  }
  EXPECT_GT(failed, 5) << "the parts and the sentence are allocated";
}

TEST(Error, TakesEachTextUpToItsFirstZero) {
  const std::string found("a\0b", 3);
  const conversion_error error(errc::runtime_error, {"queue", "no error", found, "read it"});
  EXPECT_EQ(error.found(), "a");
  EXPECT_STREQ(error.what(), "queue: expected no error, found a; read it");
}

}  // namespace
