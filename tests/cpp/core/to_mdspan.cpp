// SPDX-License-Identifier: Apache-2.0
//
// What `to_mdspan` takes and refuses where the oracle of tests/fuzz/ does not look: layouts,
// accessors and element types of users, fields of refusals, and the ends of index types.
#include <float4_types.hpp>
#include <odd_views.hpp>
#include <view_elements.hpp>

#include <tuple>

namespace test_to_mdspan {
struct no_dlpack_number {
  unsigned char byte;
};
}  // namespace test_to_mdspan
template <>
struct usm_dlpack::data_type_of<test_to_mdspan::no_dlpack_number> {
  static constexpr DLDataType value{kDLFloat, 8, 1};
};

namespace test_to_mdspan {

using namespace usm_dlpack_test;

constexpr std::int64_t two_to_61 = std::int64_t{1} << 61;

template <class Layout, class Index = int, class Element = float, std::size_t Rank = 2>
using view = md::mdspan<Element, md::dextents<Index, Rank>, Layout>;
using plain_view = view<md::layout_right>;

template <class View>
void expect_refused(errc code, const std::string& field, std::vector<std::int64_t> shape,
                    std::vector<std::int64_t> strides) {
  const strided_tensor sample(std::move(shape), std::move(strides));
  EXPECT_REFUSAL(to_mdspan<View>(sample.tensor), code, field);
}

// --- Layouts, elements and accessors -------------------------------------------------------

TEST(ToMdspan, RefusesADtypeThatDlpackLacksAlsoAsTheElementType) {
  using view_of_it = view<md::layout_right, int, no_dlpack_number>;
  valid_tensor valid;
  valid.tensor.dtype = data_type_v<no_dlpack_number>;
  EXPECT_REFUSAL(to_mdspan<view_of_it>(valid.tensor), errc::dtype_unsupported, "dtype");
}

TEST(ToMdspan, TakesSubbyteElementsAsATypeStoredSoAlone) {
  using padded_view = view<md::layout_right, int, padded_float4>;
  using packed_view = view<md::layout_right, int, packed_float4>;
  valid_managed_tensor valid;
  DLTensor& tensor = valid.managed.dl_tensor;
  tensor.dtype = {type_code::float4_e2m1fn, 4, 1};
  EXPECT_REFUSAL(to_mdspan<padded_view>(valid.managed), errc::dtype_mismatch, "flags");
  EXPECT_REFUSAL(to_mdspan<padded_view>(tensor), errc::dtype_mismatch, "flags");
  valid.managed.flags = flag::is_subbyte_type_padded;
  EXPECT_EQ(static_cast<void*>(to_mdspan<padded_view>(valid.managed).data_handle()),
            tensor.data);
  tensor.dtype.lanes = 2;
  EXPECT_REFUSAL(to_mdspan<packed_view>(valid.managed), errc::dtype_mismatch, "flags");
  valid.managed.flags = 0;
  EXPECT_EQ(to_mdspan<packed_view>(valid.managed).mapping().stride(0), 3);
}

TEST(ToMdspan, RefusesMemoryThatIsNotAlignedAsTheAccessorPromises) {
  using extents = md::dextents<int, 2>;
  using right = md::mdspan<float, extents, md::layout_right, odd::aligned_accessor<float>>;
  using stride = md::mdspan<float, extents, md::layout_stride, odd::aligned_accessor<float>>;
  strided_tensor sample({2, 3}, {3, 1});
  expect_taken<right>(sample.tensor);
  expect_taken<stride>(sample.tensor);
  sample.tensor.byte_offset = 4;
  EXPECT_REFUSAL(to_mdspan<right>(sample.tensor), errc::data_misaligned, "byte_offset",
                 "elements aligned to 64 bytes, as the view's accessor says",
                 "4 bytes past such an address");
  EXPECT_REFUSAL(to_mdspan<stride>(sample.tensor), errc::data_misaligned, "byte_offset");
  sample.shape[0] = 0;
  EXPECT_EQ(to_mdspan<right>(sample.tensor).extent(0), 0);
}

// --- Layouts of users ----------------------------------------------------------------------

/// Has other strides than it is given: the next even ones.
struct layout_of_even_steps {
  template <class Extents>
  struct mapping : odd::layout_stepped<>::mapping<Extents> {
    using base = odd::layout_stepped<>::mapping<Extents>;
    constexpr mapping() noexcept = default;
    constexpr mapping(const Extents& extents,
                      const typename base::strides_array& strides) noexcept
        : base(extents, strides) {
      for (auto& stride : this->all_strides) {
        stride += stride % 2;
      }
    }
  };
};
/// Takes strides as an object that is made of one integer for each dimension, and the index of
/// the first element; strided, it says, if that index is 0. As CCCL's `layout_stride_relaxed`.
template <bool Unique>
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
  struct mapping : odd::strided_mapping<Extents, layout_of_made_steps, short> {
    using base = odd::strided_mapping<Extents, layout_of_made_steps, short>;
    constexpr mapping() noexcept = default;
    mapping(const Extents& extents, const steps<Extents::rank()>& given,
            std::ptrdiff_t offset = 0) noexcept
        : base(extents, given.all, offset) {}
    constexpr steps<Extents::rank()> strides() const noexcept {
      return std::apply([](auto... all) { return steps<Extents::rank()>(all...); },
                        this->all_strides);
    }
    static constexpr bool is_always_unique() noexcept { return Unique; }
    static constexpr bool is_always_strided() noexcept { return false; }
    constexpr bool is_strided() const noexcept { return this->first == 0; }
  };
};

TEST(ToMdspan, GivesAMappingItsStridesAsTheTypeThatItTakes) {
  for (const std::vector<std::int64_t>& strides :
       {std::vector<std::int64_t>{9, 2}, {1, 2}, {3, 1}}) {
    expect_taken<view<odd::layout_stepped<>>>({2, 3}, strides);
    expect_taken<view<odd::layout_signed>>({2, 3}, strides);
    expect_taken<view<layout_of_made_steps<true>>>({2, 3}, strides);
    expect_taken<view<layout_of_made_steps<false>>>({2, 3}, strides);
  }
  expect_taken<view<layout_of_made_steps<false>, int, float, 0>>({}, {});
  expect_taken<view<layout_of_made_steps<false>>>({0, 3}, {-9, 2});
}

/// Is made from extents alone, and orders the dimensions as it says: the last index is the
/// slowest one.
template <std::size_t... Order>
struct layout_of_dimensions {
  template <class Extents>
  struct mapping : odd::mapping_base<Extents, layout_of_dimensions> {
    using index_type = typename Extents::index_type;
    using odd::mapping_base<Extents, layout_of_dimensions>::mapping_base;
    static constexpr bool is_always_exhaustive() noexcept { return true; }
    constexpr index_type stride(std::size_t r) const noexcept {
      index_type product = 1;
      for (const std::size_t faster : {Order...}) {
        if (faster == r) break;
        product = static_cast<index_type>(product * this->all_extents.extent(faster));
      }
      return product;
    }
    template <class... Indices>
    constexpr index_type operator()(Indices... indices) const noexcept {
      index_type at = 0;
      std::size_t r = 0;
      ((at = static_cast<index_type>(at + indices * stride(r++))), ...);
      return at;
    }
  };
};
using rows_of_a_user = view<layout_of_dimensions<2, 1, 0>, int, float, 3>;
using columns_of_a_user = view<layout_of_dimensions<0, 1, 2>, std::int8_t, float, 3>;
using planes_of_a_user = view<layout_of_dimensions<1, 0, 2>, int, float, 3>;
/// Rows that are padded if they are long, which no member says.
struct layout_of_pitch {
  template <class Extents>
  struct mapping : odd::mapping_base<Extents, layout_of_pitch> {
    using odd::mapping_base<Extents, layout_of_pitch>::mapping_base;
    constexpr int stride(std::size_t r) const noexcept {
      const int length = static_cast<int>(this->all_extents.extent(1));
      return r == 1 ? 1 : length > 4 ? (length + 3) / 4 * 4 : length;
    }
    constexpr int operator()(int i, int j) const noexcept { return i * stride(0) + j; }
  };
};
/// The longest dimension is contiguous.
struct layout_of_longest {
  template <class Extents>
  struct mapping : odd::mapping_base<Extents, layout_of_longest> {
    using odd::mapping_base<Extents, layout_of_longest>::mapping_base;
    static constexpr bool is_always_exhaustive() noexcept { return true; }
    constexpr int stride(std::size_t r) const noexcept {
      const auto& all = this->all_extents;
      const std::size_t longest = all.extent(0) > all.extent(1) ? 0 : 1;
      return r == longest ? 1 : static_cast<int>(all.extent(longest));
    }
    constexpr int operator()(int i, int j) const noexcept {
      return i * stride(0) + j * stride(1);
    }
  };
};
static_assert(!detail::made_from_extents<view<layout_of_pitch>::mapping_type> &&
              !detail::made_from_extents<view<layout_of_longest>::mapping_type>);
static_assert(detail::made_from_extents<rows_of_a_user::mapping_type> &&
              detail::made_from_extents<columns_of_a_user::mapping_type> &&
              !detail::made_from_extents<planes_of_a_user::mapping_type>);

TEST(ToMdspan, TakesAUsersLayoutOfRowsOrColumns) {
  expect_taken<rows_of_a_user>({2, 3, 4}, {12, 4, 1});
  expect_taken<columns_of_a_user>({2, 3, 4}, {1, 2, 6});
  expect_refused<rows_of_a_user>(errc::layout_mismatch, "strides[0]", {2, 3, 4}, {1, 2, 6});
  expect_refused<columns_of_a_user>(errc::layout_mismatch, "strides[0]", {2, 3, 4},
                                    {12, 4, 1});
}

TEST(ToMdspan, RefusesStridesThatALayoutDoesNotHave) {
  const strided_tensor padded({3, 3}, {4, 1});
  EXPECT_REFUSAL(to_mdspan<plain_view>(padded.tensor), errc::layout_mismatch, "strides[0]",
                 "3 elements for the view's layout", "4");
  EXPECT_REFUSAL(
      to_mdspan<view<md::layout_left>>(padded.tensor), errc::layout_mismatch, "strides[0]",
      "1 elements for the view's layout", "4",
      "numpy.asfortranarray(usm_dlpack.from_dlpack(x).numpy()), device=x), or in C++ "
      "use layout_stride");
  const strided_tensor reversed({3, 3}, {-3, 1});
  EXPECT_REFUSAL(to_mdspan<plain_view>(reversed.tensor), errc::layout_mismatch, "strides[0]",
                 "3 elements for the view's layout", "-3", "use usm_dlpack::layout_relaxed");
  const strided_tensor interleaved({4, 3}, {7, 3});  // which layout_stride refuses
  EXPECT_REFUSAL(to_mdspan<plain_view>(interleaved.tensor), errc::layout_mismatch,
                 "strides[0]", "3 elements for the view's layout", "7",
                 "use usm_dlpack::layout_relaxed");
  const strided_tensor broadcast({3, 3}, {0, 1});
  EXPECT_REFUSAL(to_mdspan<view<md::layout_stride>>(broadcast.tensor), errc::layout_mismatch,
                 "strides[0]", {}, "0",
                 "make the array contiguous, in Python by usm_dlpack.from_dlpack(x, "
                 "order=\"C\"), or in C++ use usm_dlpack::layout_relaxed with const elements");
  expect_taken<view<layout_of_even_steps>>({2, 3}, {12, 4});
  expect_refused<view<layout_of_even_steps>>(errc::layout_mismatch, "strides[1]", {2, 3},
                                             {4, 1});
}

TEST(ToMdspan, GivesNoStrideToALayoutWhoseIntegersCutItOff) {
  const strided_tensor wide({2, 3}, {40000, 1});
  EXPECT_REFUSAL(to_mdspan<view<layout_of_made_steps<true>>>(wide.tensor),
                 errc::index_type_too_small, "strides[0]",
                 "a value that the view's index type int16_t holds", "40000");
  // In front of a stride that overlaps, but behind a negative one.
  expect_refused<view<layout_of_made_steps<true>>>(errc::index_type_too_small, "strides[1]",
                                                   {2, 3}, {0, 65536});
  expect_refused<view<layout_of_made_steps<true>>>(errc::layout_mismatch, "strides[1]", {2, 3},
                                                   {3, -65536});
  expect_taken<view<layout_of_made_steps<true>>>({2, 1}, {7, 65536});
}

TEST(ToMdspan, GivesALayoutOfNegativeStridesTheOffsetThatItTakes) {
  for (const std::vector<std::int64_t>& strides :
       {std::vector<std::int64_t>{-9, 2}, {9, -2}, {-9, -2}, {0, -1}, {0, 2}}) {
    const strided_tensor sample({2, 3}, strides);
    expect_taken<view<layout_of_made_steps<false>>>(sample.tensor);
    expect_taken<view<layout_of_made_steps<false>, std::uint8_t>>(sample.tensor);
    expect_taken<view<layout_relaxed, unsigned>>(sample.tensor);
  }
  expect_taken<view<layout_of_made_steps<false>>>({1, 3}, {7, -1});
  const strided_tensor reversed({2, 3}, {-3, -1});
  const auto made = to_mdspan<view<layout_relaxed, unsigned>>(reversed.tensor);
  EXPECT_EQ(made.data_handle(), &reversed.elements[507]);
  EXPECT_EQ(made.mapping().element_offset(), 5);
}

TEST(ToMdspan, RefusesNegativeIndicesOfAnUnsignedIndexType) {
  expect_taken<view<odd::layout_stepped<0, false>>>({2, 3}, {-4, 1});
  expect_refused<view<odd::layout_stepped<0, false>, unsigned>>(errc::index_type_too_small,
                                                                "strides[0]", {2, 3}, {-4, 1});
  expect_taken<view<odd::layout_signed>>({3, 2}, {-2, 1});
  expect_refused<view<odd::layout_signed, unsigned>>(errc::index_type_too_small, "strides",
                                                     {3, 2}, {-2, 1});
  expect_refused<view<odd::layout_signed, std::size_t>>(errc::index_type_too_small, "strides",
                                                        {3, 2}, {-2, 1});
  expect_taken<view<odd::layout_signed, unsigned>>({1, 2}, {-2, 1});
  expect_taken<view<odd::layout_signed, unsigned>>({3, 2}, {0, 1});
  const strided_tensor reversed({3, 2}, {-2, 1});
  EXPECT_REFUSAL((to_mdspan<view<odd::layout_signed, unsigned>>(reversed.tensor)),
                 errc::index_type_too_small, "strides", {}, "-4",
                 "use extents of a signed index type");
}

TEST(ToMdspan, StartsAtTheFirstElementWhateverItsIndex) {
  using late = view<odd::layout_stepped<200>, std::uint8_t>;
  expect_taken<late>({2, 3}, {3, 1});
  expect_taken<late>({3, 2}, {27, 1});  // the last index is 255
  expect_refused<late>(errc::index_type_too_small, "strides", {3, 2}, {28, 1});
  const strided_tensor empty({0, 3}, {3, 1});
  EXPECT_EQ(to_mdspan<late>(empty.tensor).data_handle(), empty.tensor.data);
}

// --- Open strides, and empty tensors -----------------------------------------------------

TEST(ToMdspan, GivesAnOpenStrideAStepPastAllOthersWhereItFits) {
  using bytes = view<md::layout_stride, std::uint8_t>;
  const strided_tensor near({1, 5}, {0, 2});
  const strided_tensor far({1, 2}, {0, 128});
  EXPECT_EQ(to_mdspan<bytes>(near.tensor).mapping().stride(0), 10);
  EXPECT_EQ(to_mdspan<bytes>(far.tensor).mapping().stride(0), 1);
}

// By the standard these are mappings too; libc++ aborts where it checks preconditions.
TEST(ToMdspan, CountsTheIndicesOfAnEmptyTensorUpToTheFirstEmptyDimension) {
  const strided_tensor first({0, 70000, 70000}, {0, 0, 0});
  const strided_tensor last({70000, 70000, 0}, {0, 0, 0});
  // Their strides overflow if they are asked for.
  EXPECT_EQ((to_mdspan<view<md::layout_right, int, float, 3>>(first.tensor).extent(1)), 70000);
  EXPECT_EQ((to_mdspan<view<md::layout_left, int, float, 3>>(first.tensor).extent(1)), 70000);
  expect_taken<view<md::layout_stride, int, float, 3>>(first.tensor);
  expect_taken<view<md::layout_stride, std::int64_t, float, 3>>(last.tensor);
  // The first two reach index 127 by rows, and by columns the last stride is 128.
  expect_refused<view<md::layout_stride, std::int8_t, float, 3>>(
      errc::index_type_too_small, "shape", {2, 64, 0}, {0, 0, 0});
  expect_refused<view<md::layout_stride, std::int64_t, float, 3>>(
      errc::index_type_too_small, "shape", {2, two_to_61 * 2, 0}, {0, 0, 0});
  const strided_tensor wide({5, two_to_61, 0}, {0, 0, 1});  // only an unsigned type counts it
  expect_taken<view<md::layout_right, std::uint64_t, float, 3>>(wide.tensor);
}

TEST(ToMdspan, TakesWhatTheIndexTypeHoldsAndNoMore) {
  const errc code = errc::index_type_too_small;
  expect_taken<view<md::layout_stride, std::int8_t>>({2, 2}, {125, 1});
  const strided_tensor wide({2, 2}, {126, 1});
  EXPECT_REFUSAL((to_mdspan<view<md::layout_stride, std::int8_t>>(wide.tensor)), code, "shape",
                 "a value that the view's index type int8_t holds", "128",
                 "use extents of a wider index type");
  expect_refused<view<layout_relaxed, std::int8_t>>(code, "shape", {16, 8}, {-8, 1});
  expect_refused<view<layout_relaxed, std::int8_t>>(code, "shape[1]", {2, 128}, {128, 1});
}

// Tensors are taken at one glance only if these sums and products do not wrap.
TEST(ToMdspan, RefusesMemoryThatNoViewCanHave) {
  using rows = view<md::layout_right, std::int64_t>;
  strided_tensor sample({3, 2}, {2, 1});
  sample.tensor.data = reinterpret_cast<void*>(~std::uintptr_t{15});
  EXPECT_REFUSAL(to_mdspan<rows>(sample.tensor), errc::out_of_range, "strides");
  sample.tensor.data = reinterpret_cast<void*>(std::uintptr_t{64});
  sample.shape[0] = two_to_61;
  EXPECT_REFUSAL(to_mdspan<rows>(sample.tensor), errc::out_of_range, "strides");
}

TEST(ToMdspan, TakesReadOnlyMemoryForAViewThatCannotWriteAlone) {
  using reading =
      md::mdspan<float, md::dextents<int, 2>, md::layout_right, odd::reading_accessor<float>>;
  valid_managed_tensor valid;
  valid.managed.flags = flag::read_only | flag::is_copied;
  expect_taken<reading>(valid.managed.dl_tensor);
  EXPECT_EQ(to_mdspan<reading>(valid.managed).data_handle(), valid.valid.elements.data());
  EXPECT_REFUSAL((to_mdspan<view<md::layout_right, int, volatile float>>(valid.managed)),
                 errc::read_only, "flags");
}

}  // namespace test_to_mdspan
