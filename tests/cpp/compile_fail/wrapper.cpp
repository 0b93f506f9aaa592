// SPDX-License-Identifier: Apache-2.0
//
// A wrapper that is a temporary gives no DLTensor, whose shape and strides would dangle, and a
// result that is dropped is remarked upon.
//
// expect[gcc]: use of deleted function .*get\(\) const
// expect[gcc]: = delete;  // keep the wrapper in a variable
// expect[clang]: call to deleted (member )?function 'get'
// expect[gcc]: ignoring return value of .*get\(\).*nodiscard.*
// expect[clang]: ignoring return value of function declared with 'nodiscard' attribute
#include <mdspan_under_test.hpp>

#include <usm_dlpack/core/to_dlpack.hpp>

#if defined(__GNUC__)
#pragma GCC diagnostic error "-Wunused-result"
#endif

using view_type = md::mdspan<float, md::dextents<int, 2>>;
constexpr DLDevice some_device{kDLOneAPI, 0};

void consume(const view_type& view) {
  const auto wrapper = usm_dlpack::to_dlpack_tensor(view, some_device);
#if defined(USM_DLPACK_FIXED)
  [[maybe_unused]] const DLTensor tensor = wrapper.get();
#else
  [[maybe_unused]] const DLTensor tensor =
      usm_dlpack::to_dlpack_tensor(view, some_device).get();
  wrapper.get();
#endif
}
