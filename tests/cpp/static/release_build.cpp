// SPDX-License-Identifier: Apache-2.0
//
// What a program calls, emitted: also built as a release is (-O3, C++20), where compilers warn
// of more, and of headers that are included as a system's too.
#include <mdspan_under_test.hpp>

#include <usm_dlpack/core.hpp>

#include <utility>
#include <vector>

namespace usm_dlpack_test {

using strided = md::mdspan<float, md::dextents<int, 3>, md::layout_stride>;
using scalar = md::mdspan<float, md::extents<int>>;

usm_dlpack::tensor_structure structure_of(const DLTensor& tensor) {
  return usm_dlpack::check_structure(tensor);
}
strided to_strided(const DLTensor& tensor) { return usm_dlpack::to_mdspan<strided>(tensor); }
scalar to_scalar(const DLTensor& tensor) { return usm_dlpack::to_mdspan<scalar>(tensor); }
usm_dlpack::dlpack_tensor<3> to_wrapper(const strided& view, DLDevice device) {
  return usm_dlpack::to_dlpack_tensor(view, device);
}
usm_dlpack::managed_tensor to_managed(const DLTensor& tensor, std::vector<float> owner) {
  return usm_dlpack::to_managed_tensor(tensor, std::move(owner), 0);
}

}  // namespace usm_dlpack_test
