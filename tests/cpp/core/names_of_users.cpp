// SPDX-License-Identifier: Apache-2.0
//
// Functions of users with the names of ours, in the namespaces of the types that we are called
// with: ours are called all the same. DLPack's types are in the global namespace.
#include <mdspan_under_test.hpp>

#include <dlpack/dlpack.h>

#include <cstdint>
#include <string>

namespace app {

struct pair {
  float x;
  float y;
};
using view = md::mdspan<pair, md::dextents<int, 2>>;

[[maybe_unused]] inline pair* origin_address(const view& v) { return v.data_handle() + 1; }
[[maybe_unused]] inline int origin_index(const view::mapping_type&) { return 1; }
template <class View, class... Others>
int describe(const View&, Others...) {
  return 1;
}

}  // namespace app

// Defined, because what is declared alone is no function that could be called.
[[maybe_unused]] static std::string to_string(DLDataType) { return "the user's"; }
[[maybe_unused]] static bool same_data_type(DLDataType, DLDataType) { return true; }
[[maybe_unused]] static bool dtype_is_known(DLDataType) { return true; }
[[maybe_unused]] static int check_structure(const DLTensor&) { return 0; }
template <class View, class... Others>
View make_view(const DLTensor&, Others&&...) {
  return View();
}
[[maybe_unused]] static void write_tensor(const DLTensor&, std::int64_t*, DLTensor&) {}

#include <valid_tensor.hpp>

template <>
struct usm_dlpack::data_type_of<app::pair> {
  static constexpr DLDataType value{kDLFloat, 32, 2};
};

namespace {

using usm_dlpack::errc;

TEST(NamesOfUsers, AreNotCalledForOurs) {
  std::array<app::pair, 6> elements{};
  const app::view view(elements.data(), 2, 3);
  const auto wrapper = usm_dlpack::to_dlpack_tensor(view, usm_dlpack_test::some_device);
  DLTensor tensor = wrapper.get();
  EXPECT_EQ(tensor.data, elements.data());
  const auto managed = usm_dlpack::to_managed_tensor(view, usm_dlpack_test::some_device,
                                                     usm_dlpack_test::no_owner{});
  EXPECT_EQ(usm_dlpack::to_mdspan<app::view>(*managed).data_handle(), elements.data());
  tensor.shape[0] = 0;  // is converted by other functions
  EXPECT_EQ(usm_dlpack::to_mdspan<app::view>(tensor).data_handle(), elements.data());
  tensor.dtype.lanes = 1;
  EXPECT_REFUSAL(usm_dlpack::to_mdspan<app::view>(tensor), errc::dtype_mismatch, "dtype",
                 "float32x2 (code 2, bits 32, lanes 2) for the view's element type",
                 "float32");
  tensor.dtype.bits = 7;
  EXPECT_REFUSAL(usm_dlpack::to_mdspan<app::view>(tensor), errc::dtype_unsupported, "dtype");
}

}  // namespace
