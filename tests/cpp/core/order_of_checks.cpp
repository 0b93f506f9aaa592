// SPDX-License-Identifier: Apache-2.0
//
// The lists of docs/checks.md that need no device: of any two broken rules the earlier is
// refused.
#include <rules_in_order.hpp>

namespace test_order_of_checks {

/// 32 elements of 4 bits, packed, in a type that is aligned to more than they are.
struct alignas(16) packed_x32 {
  std::array<std::uint8_t, 16> bytes;
};

}  // namespace test_order_of_checks

template <>
struct usm_dlpack::data_type_of<test_order_of_checks::packed_x32> {
  static constexpr DLDataType value{type_code::float4_e2m1fn, 4, 32};
};

namespace test_order_of_checks {

using namespace usm_dlpack_test;

struct exported_view {
  breakable_view<float> view;
};

TEST(OrderOfChecks, OfTwoBrokenRulesOfAViewTheEarlierIsRefused) {
  expect_order([](const exported_view& e) { return to_dlpack_tensor(e.view, some_device); },
               view_rules<exported_view>);
}

TEST(OrderOfChecks, OfTwoBrokenRulesOfCheckStructureTheEarlierIsRefused) {
  expect_order([](const valid_tensor& v) { check_structure(v.tensor); },
               structure_rules<valid_tensor>);
}

/// A managed tensor that is the view below, or the same with `layout_right`.
struct convertible_tensor {
  alignas(64) std::array<packed_x32, 16> elements{};
  std::array<std::int64_t, 2> shape{5, 3};
  std::array<std::int64_t, 2> strides{3, 1};
  DLManagedTensorVersioned managed{};
  DLTensor& tensor = managed.dl_tensor;
  bool rows = false;  ///< ask for `layout_right`

  convertible_tensor() {
    managed.version = {1, 0};
    tensor = tensor_of(elements.data(), shape, strides, data_type_v<packed_x32>);
  }
  convertible_tensor(const convertible_tensor&) = delete;
  convertible_tensor& operator=(const convertible_tensor&) = delete;
};

using narrow_extents = md::extents<std::int8_t, static_cast<std::size_t>(-1), 3>;
using strided_view = md::mdspan<packed_x32, narrow_extents, md::layout_stride>;
using row_view = md::mdspan<packed_x32, narrow_extents, md::layout_right>;
using unsigned_extents = md::extents<std::uint8_t, static_cast<std::size_t>(-1), 3>;
using reversed_view = md::mdspan<packed_x32, unsigned_extents, odd::layout_signed>;
constexpr DLDataType int32{kDLInt, 32, 1};

constexpr breakable_rule<convertible_tensor> to_mdspan_rules[] = {
    {errc::version_unsupported, "version.major",
     [](convertible_tensor& c) { c.managed.version.major = 2; }, "1", "2"},
    {errc::version_unsupported, "flags", [](convertible_tensor& c) { c.managed.flags |= 8; },
     "bits of DLPACK_FLAG_BITMASK_* only", "8"},
    {errc::read_only, "flags",
     [](convertible_tensor& c) { c.managed.flags |= flag::read_only; },
     "writable memory for a view of mutable elements", "read-only memory"},
    {errc::invalid_tensor, "ndim", [](convertible_tensor& c) { c.tensor.ndim = -1; },
     "0 or more dimensions", "-1"},
    {errc::shape_mismatch, "ndim", [](convertible_tensor& c) { c.tensor.ndim = 1; },
     "2 for the view's rank", "1"},
    {errc::invalid_tensor, "shape", [](convertible_tensor& c) { c.tensor.shape = nullptr; },
     "an array of ndim extents", "null with ndim 2"},
    {errc::dtype_unsupported, "dtype", [](convertible_tensor& c) { c.tensor.dtype.code = 18; },
     "a dtype of DLPack 1.3", "unknownx32 (code 18, bits 4, lanes 32)"},
    {errc::invalid_tensor, "shape[0]", [](convertible_tensor& c) { c.shape[0] = -3; },
     "an extent of 0 or more elements", "-3"},
    {errc::invalid_tensor, "data", [](convertible_tensor& c) { c.tensor.data = nullptr; },
     "the address of the elements", "null"},
    {errc::out_of_range, "strides", [](convertible_tensor& c) { c.strides[0] = farthest; },
     "a view that the address space can hold", "offsets beyond it"},
    {errc::data_misaligned, "byte_offset",
     [](convertible_tensor& c) { c.tensor.dtype = int32, c.tensor.byte_offset = 2; },
     "data + byte_offset aligned to 4 bytes", "2 bytes past such an address"},
    {errc::dtype_mismatch, "dtype", [](convertible_tensor& c) { c.tensor.dtype = int32; },
     "float4_e2m1fnx32 (code 17, bits 4, lanes 32) for the view's element type", "int32"},
    {errc::dtype_mismatch, "flags",
     [](convertible_tensor& c) { c.managed.flags |= flag::is_subbyte_type_padded; },
     "packed elements for the view's element type", "padded ones"},
    {errc::shape_mismatch, "shape[1]", [](convertible_tensor& c) { c.shape[1] = 4; },
     "3 for the view's static extent", "4"},
    {errc::data_misaligned, "byte_offset",
     [](convertible_tensor& c) { c.tensor.byte_offset = 8; },
     "data + byte_offset aligned to 16 bytes, as the element type",
     "8 bytes past such an address"},
    {errc::index_type_too_small, "shape[0]", [](convertible_tensor& c) { c.shape[0] = 300; },
     "a value that the view's index type int8_t holds", "300"},
    {errc::index_type_too_small, "shape", [](convertible_tensor& c) { c.strides[0] = 40; },
     "a value that the view's index type int8_t holds", "163"},
    {errc::index_type_too_small, "shape",
     [](convertible_tensor& c) { c.rows = true, c.shape[0] = 50, c.strides = {0, 0}; },
     "a product that the view's index type int8_t holds", "a larger one"},
    {errc::layout_mismatch, "strides[0]", [](convertible_tensor& c) { c.strides[0] = 0; },
     "a stride above 0, as a precondition of the view's layout", "0"},
    {errc::layout_mismatch, "strides", [](convertible_tensor& c) { c.strides = {1, 1}; },
     "strides of which each is at least the next smaller one times its extent",
     "one that is less"},
    {errc::index_type_too_small, "strides", [](convertible_tensor& c) { c.strides[0] = -3; },
     "a value that the view's index type uint8_t holds", "-12"},
};

TEST(OrderOfChecks, OfTwoBrokenRulesOfToMdspanTheEarlierIsRefused) {
  const auto convert = [](const convertible_tensor& c) {
    if (c.rows) {
      static_cast<void>(to_mdspan<row_view>(c.managed));
    } else if (c.strides[0] < 0) {
      static_cast<void>(to_mdspan<reversed_view>(c.managed));
    } else {
      static_cast<void>(to_mdspan<strided_view>(c.managed));
    }
  };
  expect_order(convert, to_mdspan_rules);
}

struct owned_tensor : valid_tensor {
  std::uint64_t flags = 0;
};

constexpr breakable_rule<owned_tensor> legacy_rules[] = {
    {errc::version_unsupported, "flags", [](owned_tensor& o) { o.flags |= 8; },
     "bits of DLPACK_FLAG_BITMASK_* only", "8"},
    {errc::read_only, "flags", [](owned_tensor& o) { o.flags |= flag::read_only; },
     "writable memory, as a legacy managed tensor implies", "read-only memory"},
    {errc::dtype_unsupported, "flags",
     [](owned_tensor& o) { o.flags |= flag::is_subbyte_type_padded; },
     "packed elements, as a legacy managed tensor implies",
     "padded elements of fewer than 8 bits"},
};

TEST(OrderOfChecks, OfTwoBrokenRulesOfALegacyManagedTensorTheEarlierIsRefused) {
  expect_order(
      [](const owned_tensor& o) {
        return to_legacy_managed_tensor(o.tensor, no_owner{}, o.flags);
      },
      legacy_rules, structure_rules<owned_tensor>);
}

struct exported_const_view {
  breakable_view<const float> view;
};

TEST(OrderOfChecks, ALegacyManagedTensorRefusesConstElementsBeforeItLooksAtTheView) {
  for (const auto& rule : view_rules<exported_const_view>) {
    exported_const_view broken;
    rule.break_it(broken);
    EXPECT_REFUSAL(to_legacy_managed_tensor(broken.view, some_device, no_owner{}),
                   errc::read_only, "flags");
  }
}

}  // namespace test_order_of_checks
