// SPDX-License-Identifier: Apache-2.0
//
// What `to_mdspan` takes and refuses: each rule by its code, field, expected and found, the
// order of the rules, and the strides that DLPack leaves open.
#include <allocation_counter.hpp>
#include <odd_views.hpp>
#include <padded_float4.hpp>
#include <refusal.hpp>
#include <valid_tensor.hpp>
#include <view_elements.hpp>

#include <usm_dlpack/core/layout_relaxed.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace {

/// Four floats that a kernel reads at once.
struct alignas(16) float_x4 {
  float lanes[4];
};
/// Two elements of 4 bits in one byte.
struct packed_float4_x2 {
  std::uint8_t bits;
};

}  // namespace

template <>
struct usm_dlpack::data_type_of<float_x4> {
  static constexpr DLDataType value{kDLFloat, 32, 4};
};
template <>
struct usm_dlpack::data_type_of<packed_float4_x2> {
  static constexpr DLDataType value{type_code::float4_e2m1fn, 4, 2};
};

namespace {

using usm_dlpack::errc;
using usm_dlpack::layout_relaxed;
using usm_dlpack::to_mdspan;
using usm_dlpack_test::padded_float4;
using usm_dlpack_test::valid_managed_tensor;
using usm_dlpack_test::valid_tensor;

/// Strides of any sign, as far as the index type holds them; and a first index that is not 0.
struct layout_of_any_steps {
  template <class Extents>
  struct mapping : odd::layout_stepped::mapping<Extents> {
    using odd::layout_stepped::mapping<Extents>::mapping;
    static constexpr bool is_always_unique() noexcept { return false; }
  };
};
/// Takes strides, and has twice as many.
struct layout_of_twice_the_steps {
  template <class Extents>
  struct mapping : odd::layout_stepped::mapping<Extents> {
    using base = odd::layout_stepped::mapping<Extents>;
    using base::base;
    constexpr typename base::index_type stride(std::size_t r) const noexcept {
      return 2 * base::stride(r);
    }
  };
};
/// Shows its strides in a type that does not hold all of them.
struct layout_of_short_steps {
  template <class Extents>
  struct mapping : odd::layout_stepped::mapping<Extents> {
    using base = odd::layout_stepped::mapping<Extents>;
    using base::base;
    constexpr short stride(std::size_t r) const noexcept {
      return static_cast<short>(base::stride(r));
    }
  };
};
int negative_strides_given = 0;
/// Takes strides as `Numbers` alone, which `strides()` of the mapping shows, or does not.
template <class Extents, class Numbers>
struct mapping_of : odd::layout_stepped::mapping<Extents> {
  using base = odd::layout_stepped::mapping<Extents>;
  using index_type = typename base::index_type;

  constexpr mapping_of() noexcept = default;
  mapping_of(const Extents& extents, const Numbers& numbers) noexcept
      : base(extents, to_strides(numbers)) {}

 private:
  static typename base::strides_type to_strides(const Numbers& numbers) noexcept {
    typename base::strides_type strides{};
    for (std::size_t r = 0; r < Extents::rank(); ++r) {
      negative_strides_given += numbers[r] < 0 ? 1 : 0;
      strides[r] = static_cast<index_type>(numbers[r]);
    }
    return strides;
  }
};
struct layout_of_own_numbers {
  template <std::size_t Rank>
  struct numbers {
    short all[Rank];
    constexpr short& operator[](std::size_t r) noexcept { return all[r]; }
    constexpr short operator[](std::size_t r) const noexcept { return all[r]; }
  };
  template <class Extents>
  struct mapping : mapping_of<Extents, numbers<Extents::rank()>> {
    using layout_type = layout_of_own_numbers;
    using mapping_of<Extents, numbers<Extents::rank()>>::mapping_of;
    constexpr numbers<Extents::rank()> strides() const noexcept {
      numbers<Extents::rank()> all{};
      for (std::size_t r = 0; r < Extents::rank(); ++r) {
        all[r] = static_cast<short>(this->stride(r));
      }
      return all;
    }
  };
};
struct layout_of_long_numbers {
  template <class Extents>
  struct mapping : mapping_of<Extents, std::array<std::int64_t, Extents::rank()>> {
    using layout_type = layout_of_long_numbers;
    using mapping_of<Extents, std::array<std::int64_t, Extents::rank()>>::mapping_of;
  };
};
int negative_indices_made = 0;
/// Takes strides as an object that is made of one integer for each dimension, and the index of
/// the first element, without which it has indices below 0; strided, it says, if that is 0.
/// `Bent` ones have twice the steps then.
template <bool Unique, bool Bent = false>
struct layout_of_made_steps {
  template <std::size_t Rank>
  struct steps {
    std::array<short, Rank> all{};
    template <class... Steps, std::enable_if_t<sizeof...(Steps) == Rank &&
                                                   (std::is_convertible_v<Steps, int> && ...),
                                               int> = 0>
    constexpr explicit steps(Steps... given) noexcept : all{static_cast<short>(given)...} {}
    constexpr short operator[](std::size_t r) const noexcept { return all[r]; }
  };
  template <class Extents>
  struct mapping : odd::mapping_base<Extents, layout_of_made_steps> {
    using base = odd::mapping_base<Extents, layout_of_made_steps>;
    using index_type = typename base::index_type;

    constexpr mapping() noexcept = default;
    mapping(const Extents& extents, const steps<Extents::rank()>& strides,
            std::ptrdiff_t offset = 0) noexcept
        : base(extents), strides_(strides.all), offset_(offset) {
      std::ptrdiff_t lowest = offset;
      for (std::size_t r = 0; r < Extents::rank(); ++r) {
        const auto last = static_cast<std::ptrdiff_t>(extents.extent(r)) - 1;
        lowest += strides_[r] < 0 && last > 0 ? last * strides_[r] : 0;
      }
      negative_indices_made += lowest < 0 ? 1 : 0;
    }
    template <class... Indices>
    constexpr index_type operator()(Indices... indices) const noexcept {
      std::ptrdiff_t at = offset_;
      [[maybe_unused]] std::size_t r = 0;
      ((at +=
        static_cast<std::ptrdiff_t>(indices) * strides_[r++] * (Bent && offset_ != 0 ? 2 : 1)),
       ...);
      return static_cast<index_type>(at);
    }
    constexpr index_type required_span_size() const noexcept { return index_type{512}; }
    constexpr steps<Extents::rank()> strides() const noexcept {
      return std::apply([](auto... all) { return steps<Extents::rank()>(all...); }, strides_);
    }
    constexpr int stride(std::size_t r) const noexcept { return strides_[r]; }
    static constexpr bool is_always_unique() noexcept { return Unique; }
    static constexpr bool is_always_strided() noexcept { return false; }
    constexpr bool is_strided() const noexcept { return offset_ == 0; }

   private:
    std::array<short, Extents::rank()> strides_{};
    std::ptrdiff_t offset_ = 0;
  };
};
/// Begins at an index other than 0.
template <int First>
struct layout_from {
  template <class Extents>
  struct mapping : odd::layout_stepped::mapping<Extents> {
    using base = odd::layout_stepped::mapping<Extents>;
    using base::base;
    template <class... Indices>
    constexpr typename base::index_type operator()(Indices... indices) const noexcept {
      return static_cast<typename base::index_type>(base::operator()(indices...) + First);
    }
  };
};

constexpr auto int64_max = std::numeric_limits<std::int64_t>::max();
constexpr auto int64_min = std::numeric_limits<std::int64_t>::min();

template <class Layout, class Index = int, class Element = float, std::size_t Rank = 2>
using view = md::mdspan<Element, md::dextents<Index, Rank>, Layout>;
using plain_view = view<md::layout_right>;

/// A tensor of float32 in the middle of live memory.
template <std::size_t Rank>
struct strided_tensor {
  alignas(64) std::array<float, 1024> elements{};
  std::array<std::int64_t, Rank> shape;
  std::array<std::int64_t, Rank> strides;
  DLTensor tensor{};

  strided_tensor(const std::array<std::int64_t, Rank>& all_extents,
                 const std::array<std::int64_t, Rank>& all_strides)
      : shape(all_extents), strides(all_strides) {
    tensor.data = &elements[512];
    tensor.device = usm_dlpack_test::some_device;
    tensor.ndim = static_cast<std::int32_t>(Rank);
    tensor.dtype = {kDLFloat, 32, 1};
    tensor.shape = shape.data();
    tensor.strides = strides.data();
  }
  strided_tensor(const strided_tensor&) = delete;
  strided_tensor& operator=(const strided_tensor&) = delete;
};

/// Expects of a view all that its tensor says: extents, the strides of dimensions with
/// neighbours, and the address of every element.
void expect_view_of(const DLTensor& tensor, const usm_dlpack_test::view_facts& facts) {
  ASSERT_EQ(facts.rank, static_cast<std::size_t>(tensor.ndim));
  for (std::size_t r = 0; r < facts.rank; ++r) {
    EXPECT_EQ(facts.extents[r], tensor.shape[r]) << "dimension " << r;
    if (tensor.shape[r] > 1 && !facts.addresses().empty()) {
      EXPECT_EQ(facts.strides[r], tensor.strides[r]) << "dimension " << r;
    }
  }
  EXPECT_EQ(facts.addresses(), usm_dlpack_test::addresses_of(tensor));
}

/// Expects that a tensor is taken without the heap, and shown as it is.
template <class View>
void expect_taken(const DLTensor& tensor) {
  const usm_dlpack_test::allocation_count count;
  const View result = to_mdspan<View>(tensor);
  EXPECT_EQ(count.made(), 0U);
  expect_view_of(tensor, usm_dlpack_test::facts_of(result));
}

// --- What is taken
// --------------------------------------------------------------------------------------

TEST(ToMdspan, TakesAValidTensorWithEveryLayoutThatHoldsItsStrides) {
  const valid_tensor valid;
  expect_taken<view<md::layout_right>>(valid.tensor);
  expect_taken<view<md::layout_stride>>(valid.tensor);
  expect_taken<view<layout_relaxed>>(valid.tensor);
  expect_taken<view<odd::layout_stepped>>(valid.tensor);
  expect_taken<md::mdspan<float, md::extents<int, 2, 3>>>(valid.tensor);
}

TEST(ToMdspan, TakesColumnsThatAreNext) {
  valid_tensor valid;
  valid.strides = {1, 2};
  expect_taken<view<md::layout_left>>(valid.tensor);
  expect_taken<view<md::layout_stride>>(valid.tensor);
  expect_taken<view<layout_relaxed>>(valid.tensor);
  expect_taken<view<odd::layout_stepped>>(valid.tensor);
}

TEST(ToMdspan, TakesConstAndVolatileElements) {
  const valid_tensor valid;
  expect_taken<view<md::layout_right, int, const float>>(valid.tensor);
  expect_taken<view<md::layout_stride, int, volatile float>>(valid.tensor);
  expect_taken<view<layout_relaxed, int, const volatile float>>(valid.tensor);
}

TEST(ToMdspan, TakesAPlainAccessorAndARestrictPointer) {
  const valid_tensor valid;
  using extents = md::dextents<int, 2>;
  expect_taken<md::mdspan<float, extents, md::layout_right, odd::plain_accessor<float>>>(
      valid.tensor);
  expect_taken<md::mdspan<float, extents, md::layout_right, odd::restrict_accessor<float>>>(
      valid.tensor);
}

TEST(ToMdspan, RefusesMemoryThatIsNotAlignedAsTheAccessorPromises) {
  using extents = md::dextents<int, 2>;
  using right = md::mdspan<float, extents, md::layout_right, odd::aligned_accessor<float>>;
  using stride = md::mdspan<float, extents, md::layout_stride, odd::aligned_accessor<float>>;
  alignas(64) std::array<float, 32> elements{};
  strided_tensor<2> sample({2, 3}, {3, 1});
  sample.tensor.data = elements.data();
  expect_taken<right>(sample.tensor);
  expect_taken<stride>(sample.tensor);
  sample.tensor.byte_offset = 4;
  constexpr const char* rule = "elements aligned to 64 bytes, as the view's accessor says";
  constexpr const char* found = "4 bytes past such an address";
  EXPECT_REFUSAL(to_mdspan<right>(sample.tensor), errc::data_misaligned, "byte_offset", rule,
                 found);
  EXPECT_REFUSAL(to_mdspan<stride>(sample.tensor), errc::data_misaligned, "byte_offset", rule,
                 found);
  sample.shape[0] = 0;
  EXPECT_EQ(to_mdspan<right>(sample.tensor).extent(0), 0);
}

TEST(ToMdspan, AddsTheByteOffset) {
  valid_tensor valid;
  valid.tensor.byte_offset = 8;
  valid.shape = {2, 2};
  valid.strides = {2, 1};
  EXPECT_EQ(to_mdspan<plain_view>(valid.tensor).data_handle(), &valid.elements[2]);
}

TEST(ToMdspan, TakesNullStridesAsCompactRowMajor) {
  valid_tensor valid;
  valid.tensor.strides = nullptr;
  EXPECT_EQ(to_mdspan<plain_view>(valid.tensor).mapping().stride(0), 3);
  EXPECT_EQ(to_mdspan<view<md::layout_stride>>(valid.tensor).mapping().stride(0), 3);
  EXPECT_EQ(to_mdspan<view<layout_relaxed>>(valid.tensor).mapping().stride(0), 3);
  EXPECT_REFUSAL(to_mdspan<view<md::layout_left>>(valid.tensor), errc::layout_mismatch,
                 "strides[0]", "1 elements for the view's layout", "3");
}

TEST(ToMdspan, TakesRankZeroWithNullShapeAndStrides) {
  valid_tensor valid;
  valid.tensor.ndim = 0;
  valid.tensor.shape = nullptr;
  valid.tensor.strides = nullptr;
  using extents = md::extents<int>;
  const auto right = to_mdspan<md::mdspan<float, extents>>(valid.tensor);
  const auto left = to_mdspan<md::mdspan<float, extents, md::layout_left>>(valid.tensor);
  const auto stride = to_mdspan<md::mdspan<float, extents, md::layout_stride>>(valid.tensor);
  const auto relaxed = to_mdspan<md::mdspan<float, extents, layout_relaxed>>(valid.tensor);
  for (const float* handle : {right.data_handle(), left.data_handle(), stride.data_handle(),
                              relaxed.data_handle()}) {
    EXPECT_EQ(handle, valid.elements.data());
  }
  EXPECT_EQ(relaxed.mapping().required_span_size(), 1);
}

TEST(ToMdspan, TakesRankEight) {
  strided_tensor<8> sample({2, 1, 2, 3, 1, 2, 1, 2}, {24, 9, 12, 4, 0, 2, -1, 1});
  expect_taken<view<md::layout_right, int, float, 8>>(sample.tensor);
  expect_taken<view<md::layout_stride, int, float, 8>>(sample.tensor);
  expect_taken<view<layout_relaxed, int, float, 8>>(sample.tensor);
  sample.strides = {1, 9, 2, 4, 0, 12, -1, 24};
  expect_taken<view<md::layout_left, int, float, 8>>(sample.tensor);
  expect_taken<view<md::layout_stride, int, float, 8>>(sample.tensor);
}

TEST(ToMdspan, TakesPaddedElementsAsATypeStoredSo) {
  valid_managed_tensor valid;
  valid.managed.dl_tensor.dtype = {usm_dlpack::type_code::float4_e2m1fn, 4, 1};
  valid.managed.flags = usm_dlpack::flag::is_subbyte_type_padded;
  using padded_view = view<md::layout_right, int, padded_float4>;
  EXPECT_EQ(static_cast<const void*>(to_mdspan<padded_view>(valid.managed).data_handle()),
            static_cast<const void*>(valid.valid.elements.data()));
}

TEST(ToMdspan, TakesPackedElementsAsATypeStoredSo) {
  valid_tensor valid;
  valid.tensor.dtype = {usm_dlpack::type_code::float4_e2m1fn, 4, 2};
  using packed_view = view<md::layout_right, int, packed_float4_x2>;
  EXPECT_EQ(to_mdspan<packed_view>(valid.tensor).mapping().stride(0), 3);
}

TEST(ToMdspan, TakesLanesAsOneElement) {
  strided_tensor<2> sample({2, 3}, {4, 1});
  sample.tensor.dtype = {kDLFloat, 32, 4};
  expect_taken<view<md::layout_stride, int, float_x4>>(sample.tensor);
}

// --- Strides that DLPack leaves open
// --------------------------------------------------------------------

template <class View>
void expect_open_strides_taken(std::size_t open, bool live_data) {
  for (const std::int64_t stride : {int64_min, std::int64_t{-7}, std::int64_t{0},
                                    std::int64_t{1}, std::int64_t{40}, int64_max}) {
    strided_tensor<3> sample({2, 2, 2}, {4, 2, 1});
    sample.shape[open] = live_data ? 1 : 0;
    sample.strides = {2, 2, 1};
    if (open == 2) sample.strides = {2, 1, 1};
    sample.strides[open] = stride;
    if (std::is_same_v<typename View::layout_type, md::layout_left>) {
      sample.strides = {1, 2, 2};
      if (open == 0) sample.strides = {1, 1, 2};
      sample.strides[open] = stride;
    }
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, std::to_string(stride));
    expect_taken<View>(sample.tensor);
  }
}

template <class Layout, class Index>
void expect_open_strides_taken_anywhere() {
  for (std::size_t r = 0; r < 3; ++r) {
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, "dimension " + std::to_string(r));
    expect_open_strides_taken<view<Layout, Index, float, 3>>(r, true);
    expect_open_strides_taken<view<Layout, Index, float, 3>>(r, false);
  }
}

TEST(ToMdspan, TakesAnyStrideOfAnExtentOfOneAndOfAnEmptyTensor) {
  expect_open_strides_taken_anywhere<md::layout_right, std::int8_t>();
  expect_open_strides_taken_anywhere<md::layout_left, std::uint64_t>();
  expect_open_strides_taken_anywhere<md::layout_stride, std::uint8_t>();
  expect_open_strides_taken_anywhere<md::layout_stride, std::int64_t>();
  expect_open_strides_taken_anywhere<layout_relaxed, std::int8_t>();
  expect_open_strides_taken_anywhere<odd::layout_stepped, int>();
}

TEST(ToMdspan, GivesAnOpenStrideWhatTheIndexTypeHolds) {
  strided_tensor<3> sample({1, 3, 1}, {int64_max, 100, -3});  // a step past all would be 300
  expect_taken<view<md::layout_stride, std::uint8_t, float, 3>>(sample.tensor);
  expect_taken<view<odd::layout_stepped, std::uint8_t, float, 3>>(sample.tensor);
}

TEST(ToMdspan, GivesAnOpenStrideAStepPastAllOthersWhereItFits) {
  strided_tensor<2> sample({1, 5}, {0, 2});
  EXPECT_EQ(to_mdspan<view<md::layout_stride>>(sample.tensor).mapping().stride(0), 10);
  for (const std::int64_t open : {int64_min, std::int64_t{-4}, std::int64_t{0},
                                  std::int64_t{2}}) {  // the others are compact
    strided_tensor<3> compact({3, 1, 4}, {4, open, 1});
    const auto made =
        to_mdspan<view<md::layout_stride, std::int64_t, float, 3>>(compact.tensor);
    EXPECT_EQ(made.mapping().stride(1), 12) << open;
  }
}

TEST(ToMdspan, KeepsAnOpenStrideThatStepsPastThoseBeforeOrAfterIt) {
  const auto kept = [](std::int64_t first, std::int64_t open, std::int64_t last) {
    strided_tensor<3> sample({3, 1, 4}, {first, open, last});
    return to_mdspan<view<md::layout_stride, std::int64_t, float, 3>>(sample.tensor)
               .mapping()
               .stride(1) == open;
  };
  EXPECT_TRUE(kept(4, 4, 1));
  EXPECT_TRUE(kept(9, 8, 2));
  EXPECT_TRUE(kept(2, 7, 8));
  EXPECT_FALSE(kept(9, 7, 2));
  EXPECT_FALSE(kept(2, 5, 8));
}

TEST(ToMdspan, TakesAnEmptyTensorWithoutAndWithData) {
  strided_tensor<2> sample({0, 3}, {-7, int64_min});
  for (void* data : {static_cast<void*>(nullptr), sample.tensor.data}) {
    sample.tensor.data = data;
    expect_taken<view<md::layout_right>>(sample.tensor);
    expect_taken<view<md::layout_left>>(sample.tensor);
    expect_taken<view<md::layout_stride>>(sample.tensor);
    expect_taken<view<layout_relaxed>>(sample.tensor);
    expect_taken<view<odd::layout_stepped>>(sample.tensor);
    EXPECT_EQ(to_mdspan<plain_view>(sample.tensor).data_handle(), data);
    EXPECT_EQ(to_mdspan<view<layout_relaxed>>(sample.tensor).data_handle(), data);
  }
}

TEST(ToMdspan, TakesAnEmptyTensorOfExtentsWhoseProductNoIndexTypeHolds) {
  strided_tensor<3> sample({0, int64_max, int64_max}, {0, 0, 0});
  expect_taken<view<md::layout_right, std::uint64_t, float, 3>>(sample.tensor);
  expect_taken<view<layout_relaxed, std::int64_t, float, 3>>(sample.tensor);
}

// --- Zero and negative strides
// --------------------------------------------------------------------------

TEST(ToMdspan, TakesZeroAndNegativeStridesWithTheRelaxedLayoutOfEveryIndexType) {
  for (const std::array<std::int64_t, 3>& strides :
       {std::array<std::int64_t, 3>{-12, 4, -1}, std::array<std::int64_t, 3>{0, -5, 0},
        std::array<std::int64_t, 3>{0, 0, 0}, std::array<std::int64_t, 3>{2, 2, -2}}) {
    strided_tensor<3> sample({2, 3, 4}, strides);
    expect_taken<view<layout_relaxed, std::int8_t, float, 3>>(sample.tensor);
    expect_taken<view<layout_relaxed, std::uint8_t, float, 3>>(sample.tensor);
    expect_taken<view<layout_relaxed, std::int16_t, float, 3>>(sample.tensor);
    expect_taken<view<layout_relaxed, std::uint32_t, float, 3>>(sample.tensor);
    expect_taken<view<layout_relaxed, std::int64_t, float, 3>>(sample.tensor);
    expect_taken<view<layout_relaxed, std::uint64_t, float, 3>>(sample.tensor);
  }
}

TEST(ToMdspan, StartsTheRelaxedLayoutAtTheLowestElement) {
  strided_tensor<2> sample({2, 3}, {-3, -1});
  const auto reversed = to_mdspan<view<layout_relaxed, unsigned>>(sample.tensor);
  EXPECT_EQ(reversed.data_handle(), static_cast<float*>(sample.tensor.data) - 5);
  EXPECT_EQ(reversed.mapping().element_offset(), 5);
  EXPECT_EQ(reversed.mapping().required_span_size(), 6U);
}

TEST(ToMdspan, RefusesZeroAndNegativeStridesOfAUniqueLayout) {
  constexpr const char* rule = "a stride above 0, as a precondition of the view's layout";
  strided_tensor<2> sample({2, 3}, {0, 1});
  EXPECT_REFUSAL(to_mdspan<view<md::layout_stride>>(sample.tensor), errc::layout_mismatch,
                 "strides[0]", rule, "0");
  EXPECT_REFUSAL(to_mdspan<view<odd::layout_stepped>>(sample.tensor), errc::layout_mismatch,
                 "strides[0]", rule, "0");
  sample.strides = {3, -1};
  EXPECT_REFUSAL(to_mdspan<view<md::layout_stride>>(sample.tensor), errc::layout_mismatch,
                 "strides[1]", rule, "-1");
}

TEST(ToMdspan, NamesTheRelaxedLayoutInTheRefusal) {
  const strided_tensor<2> sample({2, 3}, {0, 1});
  try {
    static_cast<void>(to_mdspan<view<md::layout_stride>>(sample.tensor));
    ADD_FAILURE() << "expected a refusal";
  } catch (const usm_dlpack::conversion_error& error) {
    EXPECT_EQ(error.remedy(), "use usm_dlpack::layout_relaxed");
  }
}

TEST(ToMdspan, RefusesOverlappingAndInterleavedStridesOfAUniqueLayout) {
  constexpr const char* rule =
      "strides of which each is at least the next smaller one times its extent";
  constexpr const char* found = "one that is less";
  strided_tensor<2> sample({2, 3}, {1, 1});
  for (const std::array<std::int64_t, 2>& strides :
       {std::array<std::int64_t, 2>{1, 1}, std::array<std::int64_t, 2>{2, 1},
        std::array<std::int64_t, 2>{3, 2}, std::array<std::int64_t, 2>{5, 2}}) {
    sample.strides = strides;
    EXPECT_REFUSAL(to_mdspan<view<md::layout_stride>>(sample.tensor), errc::layout_mismatch,
                   "strides", rule, found);
    expect_taken<view<layout_relaxed>>(sample.tensor);
  }
  sample.strides = {6, 2};
  expect_taken<view<md::layout_stride>>(sample.tensor);
}

TEST(ToMdspan, RefusesStridesThatAUsersLayoutWasGivenAndDoesNotHave) {
  strided_tensor<2> sample({2, 3}, {4, 1});
  EXPECT_REFUSAL(to_mdspan<view<odd::layout_numbered>>(sample.tensor), errc::layout_mismatch,
                 "strides[0]", "3 elements for the view's layout", "4");
  sample.strides = {3, 1};
  EXPECT_EQ(to_mdspan<view<odd::layout_numbered>>(sample.tensor).mapping().stride(0), 3);
}

TEST(ToMdspan, RefusesReadOnlyMemoryForAMutableHandleOnly) {
  valid_managed_tensor valid;
  valid.managed.flags = usm_dlpack::flag::read_only;
  using reading =
      md::mdspan<float, md::dextents<int, 2>, md::layout_right, odd::reading_accessor<float>>;
  EXPECT_EQ(to_mdspan<reading>(valid.managed).data_handle(), valid.valid.elements.data());
}

TEST(ToMdspan, RefusesStridesThatAreNotThoseOfLayoutRightOrLeft) {
  strided_tensor<2> sample({2, 3}, {4, 1});
  EXPECT_REFUSAL(to_mdspan<plain_view>(sample.tensor), errc::layout_mismatch, "strides[0]",
                 "3 elements for the view's layout", "4");
  EXPECT_REFUSAL(to_mdspan<view<md::layout_left>>(sample.tensor), errc::layout_mismatch,
                 "strides[0]", "1 elements for the view's layout", "4");
  sample.strides = {3, 2};
  EXPECT_REFUSAL(to_mdspan<plain_view>(sample.tensor), errc::layout_mismatch, "strides[1]",
                 "1 elements for the view's layout", "2");
  sample.strides = {1, 3};
  EXPECT_REFUSAL(to_mdspan<view<md::layout_left>>(sample.tensor), errc::layout_mismatch,
                 "strides[1]", "2 elements for the view's layout", "3");
  sample.strides = {-3, 1};
  EXPECT_REFUSAL(to_mdspan<plain_view>(sample.tensor), errc::layout_mismatch, "strides[0]",
                 "3 elements for the view's layout", "-3");
}

TEST(ToMdspan, GivesAMappingItsStridesAsTheTypeThatItTakes) {
  const strided_tensor<2> sample({2, 3}, {9, 2});
  expect_taken<view<layout_of_own_numbers>>(sample.tensor);
  expect_taken<view<layout_of_long_numbers>>(sample.tensor);
}

TEST(ToMdspan, MakesStridesOfOneIntegerForEachDimension) {
  const strided_tensor<2> gapped({2, 3}, {9, 2});
  expect_taken<view<layout_of_made_steps<true>>>(gapped.tensor);
  expect_taken<view<layout_of_made_steps<false>>>(gapped.tensor);
  const strided_tensor<2> columns({2, 3}, {1, 2});
  expect_taken<view<layout_of_made_steps<true>>>(columns.tensor);
  const strided_tensor<0> one({}, {});
  expect_taken<view<layout_of_made_steps<false>, int, float, 0>>(one.tensor);
  const strided_tensor<2> empty({0, 3}, {-9, 2});
  expect_taken<view<layout_of_made_steps<false>>>(empty.tensor);
  const strided_tensor<2> wide({2, 3}, {40000, 1});
  EXPECT_REFUSAL(to_mdspan<view<layout_of_made_steps<true>>>(wide.tensor),
                 errc::index_type_too_small, "strides[0]",
                 "a value that the view's index type int16_t holds", "40000");
}

TEST(ToMdspan, GivesALayoutOfNegativeStridesTheOffsetThatItTakes) {
  negative_indices_made = 0;
  for (const auto& strides :
       {std::array<std::int64_t, 2>{-9, 2}, {9, -2}, {-9, -2}, {0, -1}, {0, 2}}) {
    const strided_tensor<2> sample({2, 3}, strides);
    expect_taken<view<layout_of_made_steps<false>>>(sample.tensor);
    expect_taken<view<layout_of_made_steps<false>, std::uint8_t>>(sample.tensor);
  }
  EXPECT_EQ(negative_indices_made, 0);
  const strided_tensor<1> open({1}, {-9});
  expect_taken<view<layout_of_made_steps<false>, int, float, 1>>(open.tensor);
}

TEST(ToMdspan, RefusesStridesThatALayoutWithAnOffsetDoesNotHave) {
  using bent = view<layout_of_made_steps<false, true>>;
  constexpr const char* rule = "extents for which the view's layout has strides";
  for (const auto& strides : {std::array<std::int64_t, 2>{-9, 0}, {0, -2}}) {
    const strided_tensor<2> sample({2, 3}, strides);
    EXPECT_REFUSAL(to_mdspan<bent>(sample.tensor), errc::layout_mismatch, "strides", rule,
                   "others");
  }
  const strided_tensor<2> positive({2, 3}, {9, 2});
  expect_taken<bent>(positive.tensor);
}

TEST(ToMdspan, RefusesRowsForColumnsAndColumnsForRows) {
  strided_tensor<2> sample({2, 3}, {1, 2});
  EXPECT_REFUSAL(to_mdspan<plain_view>(sample.tensor), errc::layout_mismatch, "strides[0]",
                 "3 elements for the view's layout", "1");
  sample.strides = {3, 1};
  EXPECT_REFUSAL(to_mdspan<view<md::layout_left>>(sample.tensor), errc::layout_mismatch,
                 "strides[0]", "1 elements for the view's layout", "3");
}

TEST(ToMdspan, RefusesALayoutThatTakesStridesForOthers) {
  const strided_tensor<2> sample({2, 3}, {9, 2});
  using doubling = view<layout_of_twice_the_steps>;
  EXPECT_REFUSAL(to_mdspan<doubling>(sample.tensor), errc::layout_mismatch, "strides[0]",
                 "18 elements for the view's layout", "9");
  const strided_tensor<2> columns({2, 3}, {1, 2});
  EXPECT_REFUSAL(to_mdspan<doubling>(columns.tensor), errc::layout_mismatch, "strides[0]",
                 "2 elements for the view's layout", "1");
}

TEST(ToMdspan, RefusesStridesThatALayoutDoesNotShowAsTheyAre) {
  using shortening = view<layout_of_short_steps>;
  const strided_tensor<2> rows({2, 3}, {65539, 1});
  EXPECT_REFUSAL(to_mdspan<shortening>(rows.tensor), errc::layout_mismatch, "strides[0]",
                 "3 elements for the view's layout", "65539");
  const strided_tensor<2> columns({3, 2}, {1, 65539});
  EXPECT_REFUSAL(to_mdspan<shortening>(columns.tensor), errc::layout_mismatch, "strides[1]",
                 "3 elements for the view's layout", "65539");
  const strided_tensor<2> small({2, 3}, {9, 2});
  expect_taken<shortening>(small.tensor);
}

TEST(ToMdspan, GivesNoStrideToALayoutWhoseIntegersCutItOff) {
  const strided_tensor<2> wide({2, 3}, {40000, 1});
  negative_strides_given = 0;
  EXPECT_REFUSAL(to_mdspan<view<layout_of_own_numbers>>(wide.tensor),
                 errc::index_type_too_small, "strides[0]",
                 "a value that the view's index type int16_t holds", "40000");
  EXPECT_EQ(negative_strides_given, 0);
}

TEST(ToMdspan, RefusesAStrideBeyondTheLayoutsIntegersBeforeOneThatOverlaps) {
  constexpr const char* rule = "a value that the view's index type int16_t holds";
  for (const std::int64_t other : {std::int64_t{0}, std::int64_t{65536}, std::int64_t{-1}}) {
    const strided_tensor<2> wide({2, 3}, {other, 65536});
    EXPECT_REFUSAL(to_mdspan<view<layout_of_own_numbers>>(wide.tensor),
                   errc::index_type_too_small, other == 65536 ? "strides[0]" : "strides[1]",
                   rule, "65536");
  }
  const strided_tensor<2> negative({2, 3}, {-65536, 1});
  EXPECT_REFUSAL(to_mdspan<view<layout_of_own_numbers>>(negative.tensor),
                 errc::layout_mismatch, "strides[0]",
                 "a stride above 0, as a precondition of the view's layout", "-65536");
  EXPECT_REFUSAL((to_mdspan<view<md::layout_stride, std::uint64_t>>(negative.tensor)),
                 errc::layout_mismatch, "strides[0]",
                 "a stride above 0, as a precondition of the view's layout", "-65536");
  const strided_tensor<2> open({2, 1}, {7, 65536});
  expect_taken<view<layout_of_own_numbers>>(open.tensor);
}

TEST(ToMdspan, StartsAtTheFirstElementWhateverItsIndex) {
  for (const auto& strides : {std::array<std::int64_t, 2>{3, 1}, {9, 2}, {1, 2}}) {
    const strided_tensor<2> sample({2, 3}, strides);
    expect_taken<view<layout_from<1>>>(sample.tensor);
  }
}

/// Rows, made from extents, or from extents and strides, which have strides up to two columns:
/// then and only then may they be asked for.
template <bool FromStrides>
struct layout_of_narrow_rows {
  template <class Extents>
  struct mapping : odd::layout_numbered::mapping<Extents> {
    using base = odd::layout_numbered::mapping<Extents>;
    using numbers = std::array<typename base::index_type, Extents::rank()>;

    constexpr mapping() noexcept = default;
    template <bool Made = !FromStrides, std::enable_if_t<Made, int> = 0>
    constexpr explicit mapping(const Extents& extents) noexcept : base(extents, numbers{}) {}
    template <bool Made = FromStrides, std::enable_if_t<Made, int> = 0>
    constexpr mapping(const Extents& extents, const numbers& given) noexcept
        : base(extents, given) {}
    static constexpr bool is_always_strided() noexcept { return false; }
    constexpr bool is_strided() const noexcept { return this->all_extents.extent(1) <= 2; }
  };
};

TEST(ToMdspan, RefusesIndicesThatTheIndexTypeDoesNotHoldFromTheFirstOne) {
  using late = view<layout_from<200>, std::uint8_t>;
  const strided_tensor<2> fits({3, 2}, {27, 1});
  expect_taken<late>(fits.tensor);
  for (const std::int64_t stride : {28, 30}) {
    const strided_tensor<2> wide({3, 2}, {stride, 1});
    EXPECT_REFUSAL(to_mdspan<late>(wide.tensor), errc::index_type_too_small, "strides",
                   "a value that the view's index type uint8_t holds",
                   std::to_string(200 + 2 * stride + 1));
  }
}

TEST(ToMdspan, RefusesExtentsForWhichALayoutHasNoStrides) {
  const strided_tensor<2> narrow({3, 2}, {2, 1});
  expect_taken<view<layout_of_narrow_rows<false>>>(narrow.tensor);
  expect_taken<view<layout_of_narrow_rows<true>>>(narrow.tensor);
  const strided_tensor<2> wide({3, 3}, {3, 1});
  constexpr const char* rule = "extents for which the view's layout has strides";
  EXPECT_REFUSAL(to_mdspan<view<layout_of_narrow_rows<false>>>(wide.tensor),
                 errc::layout_mismatch, "strides", rule, "others");
  EXPECT_REFUSAL(to_mdspan<view<layout_of_narrow_rows<true>>>(wide.tensor),
                 errc::layout_mismatch, "strides", rule, "others");
  const strided_tensor<2> empty({0, 3}, {3, 1});
  EXPECT_EQ(to_mdspan<view<layout_of_narrow_rows<false>>>(empty.tensor).extent(1), 3);
}

/// Expects that tensors in order, which one pass looks at, are refused as all others are.
template <class View>
void expect_refusals_of_memory() {
  constexpr const char* no_room = "a view that the address space can hold";
  constexpr const char* beyond = "offsets beyond it";
  strided_tensor<1> sample({8}, {1});
  sample.tensor.data = nullptr;
  sample.tensor.byte_offset = 64;
  EXPECT_REFUSAL(to_mdspan<View>(sample.tensor), errc::data_null, "data",
                 "the address of the elements", "null");
  sample.tensor.data = reinterpret_cast<void*>(std::uintptr_t{3});
  sample.tensor.byte_offset = 0;
  EXPECT_REFUSAL(to_mdspan<View>(sample.tensor), errc::data_misaligned, "byte_offset",
                 "data + byte_offset aligned to 4 bytes", "3 bytes past such an address");
  sample.tensor.data = reinterpret_cast<void*>(~std::uintptr_t{15});
  EXPECT_REFUSAL(to_mdspan<View>(sample.tensor), errc::span_overflow, "strides", no_room,
                 beyond);
  sample.tensor.data = sample.elements.data();
  sample.tensor.byte_offset = ~std::uint64_t{3};
  EXPECT_REFUSAL(to_mdspan<View>(sample.tensor), errc::span_overflow, "strides", no_room,
                 beyond);
  sample.tensor.byte_offset = 0;
  for (const std::int64_t extent : {int64_max / 4 + 1, int64_max / 2 + 1}) {
    sample.shape = {extent};
    EXPECT_REFUSAL(to_mdspan<View>(sample.tensor), errc::span_overflow, "strides", no_room,
                   beyond);
  }
}

TEST(ToMdspan, RefusesMemoryOfTensorsInOrderAsOfOthers) {
  expect_refusals_of_memory<view<md::layout_right, std::int64_t, float, 1>>();
  expect_refusals_of_memory<view<md::layout_left, std::int64_t, float, 1>>();
  expect_refusals_of_memory<view<md::layout_stride, std::int64_t, float, 1>>();
  expect_refusals_of_memory<view<layout_relaxed, std::int64_t, float, 1>>();
}

TEST(ToMdspan, RefusesMoreThanAStaticExtentOfATensorInOrder) {
  using fixed = md::mdspan<float, md::extents<int, 2, 3>>;
  EXPECT_REFUSAL(to_mdspan<fixed>(strided_tensor<2>({3, 3}, {3, 1}).tensor),
                 errc::extent_mismatch, "shape[0]", "2 for the view's static extent", "3");
  EXPECT_REFUSAL(to_mdspan<fixed>(strided_tensor<2>({2, 4}, {4, 1}).tensor),
                 errc::extent_mismatch, "shape[1]", "3 for the view's static extent", "4");
  using row = md::mdspan<float, md::extents<int, 3>>;
  EXPECT_REFUSAL(to_mdspan<row>(strided_tensor<1>({4}, {1}).tensor), errc::extent_mismatch,
                 "shape[0]", "3 for the view's static extent", "4");
}

// What is too large in one number must not be taken back by another one.
template <class View>
void expect_refusals_of_large_numbers() {
  constexpr const char* no_room = "a view that the address space can hold";
  constexpr const char* beyond = "offsets beyond it";
  constexpr std::uint64_t half = std::uint64_t{1} << 63U;
  strided_tensor<2> sample({3, 2}, {2, 1});
  const auto at = [&](std::uint64_t data, std::uint64_t offset) -> const DLTensor& {
    sample.tensor.data = reinterpret_cast<void*>(data);
    sample.tensor.byte_offset = offset;
    return sample.tensor;
  };
  EXPECT_REFUSAL(to_mdspan<View>(at(half + 16, half)), errc::span_overflow, "strides", no_room,
                 beyond);
  EXPECT_REFUSAL(to_mdspan<View>(at((std::uint64_t{1} << 60U) + 1, 0)), errc::data_misaligned,
                 "byte_offset", "data + byte_offset aligned to 4 bytes",
                 "1 bytes past such an address");
  sample.shape = {std::int64_t{1} << 62U, 2};
  EXPECT_REFUSAL(to_mdspan<View>(at(16, half - 16)), errc::span_overflow, "strides", no_room,
                 beyond);
}

TEST(ToMdspan, RefusesLargeNumbersThatWouldCancelEachOther) {
  expect_refusals_of_large_numbers<view<md::layout_right, std::uint64_t, float, 2>>();
  expect_refusals_of_large_numbers<view<md::layout_stride, std::uint64_t, float, 2>>();
}

// --- dtype
// ----------------------------------------------------------------------------------------------

TEST(ToMdspan, RefusesAnotherCodeOtherBitsAndOtherLanes) {
  constexpr const char* rule =
      "float32 (code 2, bits 32, lanes 1) for the view's element type";
  valid_tensor valid;
  valid.tensor.dtype = {kDLInt, 32, 1};
  EXPECT_REFUSAL(to_mdspan<plain_view>(valid.tensor), errc::dtype_mismatch, "dtype", rule,
                 "int32 (code 0, bits 32, lanes 1)");
  valid.tensor.dtype = {kDLFloat, 16, 1};
  EXPECT_REFUSAL(to_mdspan<plain_view>(valid.tensor), errc::dtype_mismatch, "dtype", rule,
                 "float16 (code 2, bits 16, lanes 1)");
  valid.tensor.dtype = {kDLFloat, 32, 2};
  EXPECT_REFUSAL(to_mdspan<plain_view>(valid.tensor), errc::dtype_mismatch, "dtype", rule,
                 "float32x2 (code 2, bits 32, lanes 2)");
}

TEST(ToMdspan, RefusesPackedElementsForATypeThatPadsThem) {
  valid_managed_tensor valid;
  valid.managed.dl_tensor.dtype = {usm_dlpack::type_code::float4_e2m1fn, 4, 1};
  using padded_view = view<md::layout_right, int, padded_float4>;
  constexpr const char* rule = "padded elements for the view's element type";
  EXPECT_REFUSAL(to_mdspan<padded_view>(valid.managed), errc::dtype_mismatch, "flags", rule,
                 "packed ones");
  EXPECT_REFUSAL(to_mdspan<padded_view>(valid.managed.dl_tensor), errc::dtype_mismatch,
                 "flags", rule, "packed ones");
}

TEST(ToMdspan, RefusesPaddedElementsForATypeThatPacksThem) {
  valid_managed_tensor valid;
  valid.managed.dl_tensor.dtype = {usm_dlpack::type_code::float4_e2m1fn, 4, 2};
  valid.managed.flags = usm_dlpack::flag::is_subbyte_type_padded;
  using packed_view = view<md::layout_right, int, packed_float4_x2>;
  EXPECT_REFUSAL(to_mdspan<packed_view>(valid.managed), errc::dtype_mismatch, "flags",
                 "packed elements for the view's element type", "padded ones");
}

TEST(ToMdspan, IgnoresThePaddingFlagForElementsOfWholeBytes) {
  valid_managed_tensor valid;
  valid.managed.flags = usm_dlpack::flag::is_subbyte_type_padded;
  EXPECT_EQ(to_mdspan<plain_view>(valid.managed).data_handle(), valid.valid.elements.data());
}

// --- Rank, extents, index type
// --------------------------------------------------------------------------

TEST(ToMdspan, RefusesAnotherRank) {
  const valid_tensor valid;
  using rank_1 = view<md::layout_right, int, float, 1>;
  using rank_3 = view<layout_relaxed, int, float, 3>;
  using rank_0 = md::mdspan<float, md::extents<int>>;
  EXPECT_REFUSAL(to_mdspan<rank_1>(valid.tensor), errc::rank_mismatch, "ndim",
                 "1 for the view's rank", "2");
  EXPECT_REFUSAL(to_mdspan<rank_3>(valid.tensor), errc::rank_mismatch, "ndim",
                 "3 for the view's rank", "2");
  EXPECT_REFUSAL(to_mdspan<rank_0>(valid.tensor), errc::rank_mismatch, "ndim",
                 "0 for the view's rank", "2");
}

TEST(ToMdspan, RefusesAnotherRankBeforeTheShapeIsRead) {
  valid_tensor valid;
  const auto two_extents = std::make_unique<std::int64_t[]>(2);
  valid.tensor.shape = two_extents.get();
  valid.tensor.strides = two_extents.get();
  for (const std::int32_t ndim : {3, 1000, std::numeric_limits<std::int32_t>::max()}) {
    valid.tensor.ndim = ndim;
    EXPECT_REFUSAL(to_mdspan<plain_view>(valid.tensor), errc::rank_mismatch, "ndim",
                   "2 for the view's rank", std::to_string(ndim));
    EXPECT_REFUSAL(to_mdspan<view<layout_relaxed>>(valid.tensor), errc::rank_mismatch, "ndim",
                   "2 for the view's rank", std::to_string(ndim));
  }
}

TEST(ToMdspan, RefusesAnotherStaticExtent) {
  const valid_tensor valid;
  using first = md::mdspan<float, md::extents<int, 3, 3>>;
  using second = md::mdspan<float, md::extents<int, static_cast<std::size_t>(-1), 4>>;
  EXPECT_REFUSAL(to_mdspan<first>(valid.tensor), errc::extent_mismatch, "shape[0]",
                 "3 for the view's static extent", "2");
  EXPECT_REFUSAL(to_mdspan<second>(valid.tensor), errc::extent_mismatch, "shape[1]",
                 "4 for the view's static extent", "3");
}

TEST(ToMdspan, RefusesAnExtentThatTheIndexTypeDoesNotHold) {
  strided_tensor<2> sample({2, 128}, {128, 1});
  EXPECT_REFUSAL((to_mdspan<view<layout_relaxed, std::int8_t>>(sample.tensor)),
                 errc::index_type_too_small, "shape[1]",
                 "a value that the view's index type int8_t holds", "128");
  sample.shape = {256, 0};
  EXPECT_REFUSAL((to_mdspan<view<md::layout_right, std::uint8_t>>(sample.tensor)),
                 errc::index_type_too_small, "shape[0]",
                 "a value that the view's index type uint8_t holds", "256");
  sample.shape = {0, 256};  // no elements, and strides as the compact layout's
  sample.strides = {256, 1};
  EXPECT_REFUSAL((to_mdspan<view<md::layout_right, std::uint8_t>>(sample.tensor)),
                 errc::index_type_too_small, "shape[1]",
                 "a value that the view's index type uint8_t holds", "256");
}

TEST(ToMdspan, RefusesASpanThatTheIndexTypeDoesNotHold) {
  constexpr const char* rule = "a value that the view's index type int8_t holds";
  strided_tensor<2> sample({16, 8}, {8, 1});
  EXPECT_REFUSAL((to_mdspan<view<md::layout_right, std::int8_t>>(sample.tensor)),
                 errc::index_type_too_small, "shape", rule, "128");
  sample.strides = {-8, 1};
  EXPECT_REFUSAL((to_mdspan<view<layout_relaxed, std::int8_t>>(sample.tensor)),
                 errc::index_type_too_small, "shape", rule, "128");
  sample.shape = {127, 1};
  sample.strides = {1, 1};
  expect_taken<view<md::layout_right, std::int8_t>>(sample.tensor);
  expect_taken<view<md::layout_stride, std::int8_t>>(sample.tensor);
}

TEST(ToMdspan, RefusesAStrideThatTheIndexTypeDoesNotHold) {
  const strided_tensor<2> sample({2, 2}, {200, 1});
  EXPECT_REFUSAL((to_mdspan<view<md::layout_stride, std::int8_t>>(sample.tensor)),
                 errc::index_type_too_small, "shape",
                 "a value that the view's index type int8_t holds", "202");
}

TEST(ToMdspan, RefusesANegativeStrideThatAnUnsignedIndexTypeDoesNotHold) {
  const strided_tensor<2> sample({2, 3}, {-4, 1});
  expect_taken<view<layout_of_any_steps, int>>(sample.tensor);
  EXPECT_REFUSAL((to_mdspan<view<layout_of_any_steps, unsigned>>(sample.tensor)),
                 errc::index_type_too_small, "strides[0]",
                 "a value that the view's index type uint32_t holds", "-4");
}

TEST(ToMdspan, RefusesNegativeStridesOfSignedIntegersWithAnUnsignedIndexTypeAndNoOffset) {
  const strided_tensor<2> sample({3, 2}, {-2, 1});
  expect_taken<view<odd::layout_signed<false>>>(sample.tensor);
  EXPECT_REFUSAL((to_mdspan<view<odd::layout_signed<false>, unsigned>>(sample.tensor)),
                 errc::index_type_too_small, "strides",
                 "a value that the view's index type uint32_t holds", "-4");
  EXPECT_REFUSAL((to_mdspan<view<odd::layout_signed<false>, std::size_t>>(sample.tensor)),
                 errc::index_type_too_small, "strides",
                 "a value that the view's index type uint64_t holds", "-4");
  const strided_tensor<2> of_one({1, 2}, {-2, 1});
  expect_taken<view<odd::layout_signed<false>, unsigned>>(of_one.tensor);
  const strided_tensor<2> broadcast({3, 2}, {0, 1});
  expect_taken<view<odd::layout_signed<false>, unsigned>>(broadcast.tensor);
}

TEST(ToMdspan, RefusesNegativeStridesOfALayoutWhoseThirdArgumentIsNoOffset) {
  const strided_tensor<2> sample({3, 2}, {-2, 1});
  expect_taken<view<odd::layout_signed<true>>>(sample.tensor);
  EXPECT_REFUSAL((to_mdspan<view<odd::layout_signed<true>, unsigned>>(sample.tensor)),
                 errc::index_type_too_small, "strides",
                 "a value that the view's index type uint32_t holds", "-4");
}

TEST(ToMdspan, GivesAnEmptyViewItsDataWhateverTheFirstIndex) {
  const strided_tensor<2> empty({0, 3}, {3, 1});
  EXPECT_EQ((to_mdspan<view<layout_from<1>>>(empty.tensor).data_handle()), empty.tensor.data);
  const strided_tensor<2> sample({2, 3}, {3, 1});
  expect_taken<view<layout_from<1>>>(sample.tensor);
}

TEST(ToMdspan, TakesAnEmptyTensorWhoseCompactStridesTheIndexTypeDoesNotHold) {
  for (const std::array<std::int64_t, 3>& shape :
       {std::array<std::int64_t, 3>{0, 70000, 70000}, {70000, 0, 70000}}) {
    strided_tensor<3> sample(shape, {int64_min, 0, int64_max});
    for (std::int64_t* const strides : {sample.strides.data(), {}}) {
      sample.tensor.strides = strides;
      expect_taken<view<md::layout_stride, int, float, 3>>(sample.tensor);
      expect_taken<view<layout_relaxed, int, float, 3>>(sample.tensor);
      // Their own strides an int does not hold: nobody may ask for them.
      EXPECT_EQ((to_mdspan<view<md::layout_right, int, float, 3>>(sample.tensor).extent(0)),
                shape[0]);
      EXPECT_EQ((to_mdspan<view<md::layout_left, int, float, 3>>(sample.tensor).extent(0)),
                shape[0]);
      expect_taken<view<odd::layout_stepped, int, float, 3>>(sample.tensor);
    }
  }
}

// By the standard these are mappings too; libc++ aborts where it checks preconditions.
TEST(ToMdspan, RefusesAnEmptyTensorWhoseIndicesBeforeTheFirstEmptyDimensionAreTooMany) {
  constexpr const char* rule = "a product that the view's index type int32_t holds";
  const strided_tensor<3> sample({70000, 70000, 0}, {0, 0, 0});
  EXPECT_REFUSAL((to_mdspan<view<md::layout_stride, int, float, 3>>(sample.tensor)),
                 errc::index_type_too_small, "shape", rule, "a larger one");
  EXPECT_REFUSAL((to_mdspan<view<md::layout_right, int, float, 3>>(sample.tensor)),
                 errc::index_type_too_small, "shape", rule, "a larger one");
  EXPECT_REFUSAL((to_mdspan<view<md::layout_left, int, float, 3>>(sample.tensor)),
                 errc::index_type_too_small, "shape", rule, "a larger one");
  expect_taken<view<layout_relaxed, int, float, 3>>(sample.tensor);
  expect_taken<view<md::layout_stride, std::int64_t, float, 3>>(sample.tensor);
}

TEST(ToMdspan, TakesAnEmptyTensorOfIndicesThatOnlyAnUnsignedIndexTypeCounts) {
  const strided_tensor<3> sample({5, std::int64_t{1} << 61, 0}, {0, 0, 1});
  expect_taken<view<md::layout_right, std::uint64_t, float, 3>>(sample.tensor);
  expect_taken<view<md::layout_left, std::uint64_t, float, 3>>(sample.tensor);
  EXPECT_REFUSAL((to_mdspan<view<md::layout_right, std::int64_t, float, 3>>(sample.tensor)),
                 errc::index_type_too_small, "shape",
                 "a product that the view's index type int64_t holds", "a larger one");
}

TEST(ToMdspan, GivesAnEmptyViewCompactStridesOfRowsOrElseOfColumns) {
  const auto strides_of = [](const std::array<std::int64_t, 3>& shape) {
    const strided_tensor<3> sample(shape, {-1, -1, -1});
    const auto made = to_mdspan<view<md::layout_stride, std::int8_t, float, 3>>(sample.tensor);
    const auto& mapping = made.mapping();
    return std::array<int, 3>{mapping.stride(0), mapping.stride(1), mapping.stride(2)};
  };
  EXPECT_EQ(strides_of({5, 0, 3}), (std::array<int, 3>{3, 3, 1}));
  EXPECT_EQ(strides_of({0, 100, 100}), (std::array<int, 3>{1, 1, 100}));
  EXPECT_EQ(strides_of({100, 0, 2}), (std::array<int, 3>{1, 100, 100}));
  EXPECT_EQ(strides_of({3, 0, 42}), (std::array<int, 3>{42, 42, 1}));
  EXPECT_EQ(strides_of({0, 0, 127}), (std::array<int, 3>{127, 127, 1}));
}

TEST(ToMdspan, RefusesAnEmptyShapeForWhichAUniqueLayoutHasNoStrides) {
  strided_tensor<4> sample({0, 100, 100, 100}, {1, 1, 1, 1});
  EXPECT_REFUSAL((to_mdspan<view<md::layout_stride, std::int8_t, float, 4>>(sample.tensor)),
                 errc::index_type_too_small, "shape",
                 "a product that the view's index type int8_t holds", "a larger one");
  expect_taken<view<layout_relaxed, std::int8_t, float, 4>>(sample.tensor);
  expect_taken<view<md::layout_stride, std::int16_t, float, 4>>(sample.tensor);
  sample.shape = {int64_max, int64_max, 0, int64_max};
  EXPECT_REFUSAL((to_mdspan<view<md::layout_stride, std::uint64_t, float, 4>>(sample.tensor)),
                 errc::index_type_too_small, "shape",
                 "a product that the view's index type uint64_t holds", "a larger one");
  expect_taken<view<layout_relaxed, std::uint64_t, float, 4>>(sample.tensor);
}

template <class Layout, class Index>
void expect_too_many_indices(std::int64_t extent, const char* name) {
  const strided_tensor<3> sample({2, extent, extent}, {0, 0, 0});
  EXPECT_REFUSAL((to_mdspan<view<Layout, Index, float, 3>>(sample.tensor)),
                 errc::index_type_too_small, "shape",
                 std::string("a product that the view's index type ") + name + " holds",
                 "a larger one");
}

TEST(ToMdspan, RefusesABroadcastOfMoreIndicesThanTheIndexTypeCountsWithLayoutRightOrLeft) {
  expect_too_many_indices<md::layout_right, std::int32_t>(65536, "int32_t");
  expect_too_many_indices<md::layout_left, std::int32_t>(65536, "int32_t");
  expect_too_many_indices<md::layout_right, std::int64_t>(std::int64_t{1} << 40, "int64_t");
  expect_too_many_indices<md::layout_left, std::uint64_t>(std::int64_t{1} << 40, "uint64_t");
}

TEST(ToMdspan, RefusesASpanThatInt64DoesNotHold) {
  std::array<std::int64_t, 2> shape{2, 2};
  std::array<std::int64_t, 2> strides{int64_min + 1, int64_max - 1};
  DLTensor tensor{};
  tensor.data = reinterpret_cast<void*>(std::uintptr_t{1} << 63);
  tensor.ndim = 2;
  tensor.dtype = {kDLUInt, 8, 1};
  tensor.shape = shape.data();
  tensor.strides = strides.data();
  using bytes = view<layout_relaxed, std::uint64_t, unsigned char>;
  EXPECT_REFUSAL(to_mdspan<bytes>(tensor), errc::span_overflow, "strides",
                 "a view that the address space can hold", "offsets beyond it");
}

// --- Alignment
// ------------------------------------------------------------------------------------------

TEST(ToMdspan, RefusesAFirstElementThatIsNotAlignedToTheElementType) {
  strided_tensor<2> sample({2, 3}, {3, 1});
  sample.tensor.dtype = {kDLFloat, 32, 4};
  sample.tensor.byte_offset = 4;
  EXPECT_REFUSAL((to_mdspan<view<md::layout_right, int, float_x4>>(sample.tensor)),
                 errc::data_misaligned, "byte_offset",
                 "data + byte_offset aligned to 16 bytes, as the element type",
                 "4 bytes past such an address");
}

TEST(ToMdspan, RefusesAMisalignedByteOffset) {
  valid_tensor valid;
  valid.tensor.byte_offset = 2;
  EXPECT_REFUSAL(to_mdspan<plain_view>(valid.tensor), errc::data_misaligned, "byte_offset",
                 "data + byte_offset aligned to 4 bytes", "2 bytes past such an address");
}

TEST(ToMdspan, TakesMisalignedDataWithoutElements) {
  strided_tensor<2> sample({0, 3}, {3, 1});
  sample.tensor.byte_offset = 2;
  EXPECT_TRUE(to_mdspan<plain_view>(sample.tensor).extent(0) == 0);
}

// --- Structure, version and flags
// -----------------------------------------------------------------------

TEST(ToMdspan, RefusesWhatCheckStructureRefuses) {
  const auto expect_code = [](void (*spoil)(valid_tensor&), errc code) {
    valid_tensor valid;
    spoil(valid);
    try {
      static_cast<void>(to_mdspan<plain_view>(valid.tensor));
      ADD_FAILURE() << "expected " << usm_dlpack::to_string(code) << ", found no refusal";
    } catch (const usm_dlpack::conversion_error& error) {
      EXPECT_STREQ(usm_dlpack::to_string(error.code()), usm_dlpack::to_string(code));
    }
  };
  expect_code([](valid_tensor& v) { v.tensor.ndim = -1; }, errc::ndim_out_of_range);
  expect_code([](valid_tensor& v) { v.tensor.shape = nullptr; }, errc::shape_null);
  expect_code([](valid_tensor& v) { v.tensor.dtype.lanes = 0; }, errc::dtype_unsupported);
  expect_code([](valid_tensor& v) { v.shape[1] = -3; }, errc::shape_negative);
  expect_code(
      [](valid_tensor& v) {  // whose product is positive, with the strides of a compact layout
        v.shape[0] = -1;
        v.shape[1] = -3;
        v.strides[0] = -3;
        v.strides[1] = 1;
      },
      errc::shape_negative);
  expect_code([](valid_tensor& v) { v.tensor.data = nullptr; }, errc::data_null);
  expect_code([](valid_tensor& v) { v.strides[0] = int64_max; }, errc::span_overflow);
  expect_code([](valid_tensor& v) { v.tensor.byte_offset = 1; }, errc::data_misaligned);
}

TEST(ToMdspan, RefusesAnotherMajorVersion) {
  valid_managed_tensor valid;
  valid.managed.version.major = 2;
  EXPECT_REFUSAL(to_mdspan<plain_view>(valid.managed), errc::version_unsupported,
                 "version.major", "1", "2");
  EXPECT_EQ(valid.deleted, 0) << "the tensor stays the caller's";
}

TEST(ToMdspan, RefusesUnknownFlags) {
  valid_managed_tensor valid;
  valid.managed.flags = 0x11;
  EXPECT_REFUSAL(to_mdspan<plain_view>(valid.managed), errc::flags_unknown, "flags",
                 "bits of DLPACK_FLAG_BITMASK_* only", "16");
}

TEST(ToMdspan, RefusesReadOnlyMemoryForMutableElements) {
  valid_managed_tensor valid;
  valid.managed.flags = usm_dlpack::flag::read_only | usm_dlpack::flag::is_copied;
  constexpr const char* rule = "writable memory for a view of mutable elements";
  EXPECT_REFUSAL(to_mdspan<plain_view>(valid.managed), errc::read_only, "flags", rule,
                 "read-only memory");
  EXPECT_REFUSAL((to_mdspan<view<md::layout_right, int, volatile float>>(valid.managed)),
                 errc::read_only, "flags", rule, "read-only memory");
  using const_view = view<md::layout_right, int, const float>;
  EXPECT_EQ(to_mdspan<const_view>(valid.managed).data_handle(), valid.valid.elements.data());
}

TEST(ToMdspan, TakesAManagedTensorWithoutTheHeapAndWithoutItsDeleter) {
  valid_managed_tensor valid;
  const usm_dlpack_test::allocation_count count;
  const auto result = to_mdspan<plain_view>(valid.managed);
  EXPECT_EQ(count.made(), 0U);
  EXPECT_EQ(valid.deleted, 0);
  expect_view_of(valid.managed.dl_tensor, usm_dlpack_test::facts_of(result));
}

// --- Legacy managed tensors
// -----------------------------------------------------------------------------

TEST(ToMdspan, TakesALegacyManagedTensorAsItsDlTensor) {
  usm_dlpack_test::foreign_tensor<DLManagedTensor> legacy;
  expect_view_of(legacy.managed.dl_tensor,
                 usm_dlpack_test::facts_of(to_mdspan<plain_view>(legacy.managed)));
  legacy.valid.shape[1] = -3;
  EXPECT_REFUSAL(to_mdspan<plain_view>(legacy.managed), errc::shape_negative, "shape[1]",
                 "an extent of 0 or more elements", "-3");
  EXPECT_EQ(legacy.deleted, 0);
}

// --- The order of the rules
// -----------------------------------------------------------------------------

TEST(ToMdspan, ChecksTheRulesInTheDocumentedOrder) {
  using strict_view =
      md::mdspan<float_x4, md::extents<std::int8_t, 3, static_cast<std::size_t>(-1)>,
                 md::layout_stride>;
  valid_managed_tensor valid;
  DLTensor& tensor = valid.managed.dl_tensor;
  valid.managed.version.major = 2;
  valid.managed.flags = 0x11;
  tensor.ndim = 1;
  tensor.byte_offset = 2;
  tensor.dtype = {kDLInt, 32, 1};
  valid.valid.shape = {2, 100};
  valid.valid.strides = {0, 100};
  const auto code = [&] {
    try {
      static_cast<void>(to_mdspan<strict_view>(valid.managed));
    } catch (const usm_dlpack::conversion_error& error) {
      return std::string(usm_dlpack::to_string(error.code())) + " " + error.field();
    }
    return std::string("taken");
  };
  EXPECT_EQ(code(), "version_unsupported version.major");
  valid.managed.version.major = 1;
  EXPECT_EQ(code(), "flags_unknown flags");
  valid.managed.flags = usm_dlpack::flag::read_only;
  EXPECT_EQ(code(), "read_only flags");
  valid.managed.flags = 0;
  EXPECT_EQ(code(), "rank_mismatch ndim");
  tensor.ndim = 2;
  EXPECT_EQ(code(), "data_misaligned byte_offset");
  tensor.byte_offset = 4;
  EXPECT_EQ(code(), "dtype_mismatch dtype");
  tensor.dtype = {kDLFloat, 32, 4};
  EXPECT_EQ(code(), "extent_mismatch shape[0]");
  valid.valid.shape[0] = 3;
  valid.valid.shape[1] = 128;
  EXPECT_EQ(code(), "data_misaligned byte_offset");
  tensor.byte_offset = 0;
  EXPECT_EQ(code(), "index_type_too_small shape[1]");
  valid.valid.shape[1] = 2;
  valid.valid.strides = {0, 127};
  EXPECT_EQ(code(), "index_type_too_small shape");
  valid.valid.strides = {0, 1};
  EXPECT_EQ(code(), "layout_mismatch strides[0]");
  valid.valid.strides = {1, 1};
  EXPECT_EQ(code(), "layout_mismatch strides");
  valid.valid.strides = {2, 1};
  EXPECT_EQ(code(), "taken");
}

}  // namespace
