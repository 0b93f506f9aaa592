// SPDX-License-Identifier: Apache-2.0
//
// An element type without a dtype, and one whose specialisation is not true or no constant,
// are refused in a sentence. It is split where the header splits it, because g++ quotes the
// source.
//
// clang-format off
// expect: element_type: expected a type with a DLPack dtype, found one without;
// expect: use a type of the dtype table or specialise data_type_of for yours
// expect: data_type_of: expected bits \* lanes == 8 \* sizeof\(T\), found a value that
// expect: its object does not have; correct the specialisation
// expect: data_type_of: expected a static constexpr \w+ value, found another
// expect: value; correct the specialisation
// expect: element_type: expected packed elements, found padded ones, which a bare
// expect: DLTensor cannot declare; export a managed tensor
// clang-format on
#include <float4_types.hpp>
#include <mdspan_under_test.hpp>

#include <usm_dlpack/core/managed.hpp>

#include <cstdint>

template <int>
struct users_type {
  std::uint32_t bits;
};

#if defined(USM_DLPACK_FIXED)
template <int Number>
struct usm_dlpack::data_type_of<users_type<Number>> {
  static constexpr DLDataType value{kDLFloat, 32, 1};
};
#else
template <>
struct usm_dlpack::data_type_of<users_type<1>> {
  static constexpr DLDataType value{kDLFloat, 16, 1};
};
template <>
struct usm_dlpack::data_type_of<users_type<2>> {
  static const DLDataType value;
};
#endif

template <class Element>
using view_of = md::mdspan<Element, md::dextents<int, 2>>;
inline constexpr DLDevice some_device{kDLOneAPI, 0};

auto no_dtype(view_of<const users_type<0>> view) {
  return usm_dlpack::to_dlpack_tensor(view, some_device);
}
auto untrue_dtype(view_of<const users_type<1>> view) {
  return usm_dlpack::to_dlpack_tensor(view, some_device);
}
auto value_at_run_time(view_of<const users_type<2>> view) {
  return usm_dlpack::to_dlpack_tensor(view, some_device);
}
auto padded_bare(view_of<usm_dlpack_test::padded_float4> view) {
#if defined(USM_DLPACK_FIXED)
  return usm_dlpack::to_managed_tensor(view, some_device, 0);
#else
  return usm_dlpack::to_dlpack_tensor(view, some_device);
#endif
}
