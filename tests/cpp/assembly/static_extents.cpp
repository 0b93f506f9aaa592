// SPDX-License-Identifier: Apache-2.0
//
// Exports whose shape and strides are known at compile time: check.py reads their assembly.
#include <mdspan_under_test.hpp>

#include <usm_dlpack/to_dlpack.hpp>

#include <cstddef>

namespace {

template <class Layout, std::size_t... Extents>
[[gnu::always_inline]] inline void export_to(void (*consumer)(const DLTensor&),
                                             float* elements) {
  const md::mdspan<float, md::extents<int, Extents...>, Layout> view(elements);
  const auto wrapper = usm_dlpack::to_dlpack_tensor(view, DLDevice{kDLOneAPI, 0});
  const DLTensor tensor = wrapper.get();
  consumer(tensor);
}

}  // namespace

extern "C" void folded_right_3(void (*consumer)(const DLTensor&), float* elements) {
  export_to<md::layout_right, 2, 3, 4>(consumer, elements);
}
extern "C" void folded_left_3(void (*consumer)(const DLTensor&), float* elements) {
  export_to<md::layout_left, 2, 3, 4>(consumer, elements);
}
extern "C" void folded_right_8(void (*consumer)(const DLTensor&), float* elements) {
  export_to<md::layout_right, 2, 3, 4, 2, 3, 2, 3, 2>(consumer, elements);
}
extern "C" void folded_left_8(void (*consumer)(const DLTensor&), float* elements) {
  export_to<md::layout_left, 2, 3, 4, 2, 3, 2, 3, 2>(consumer, elements);
}
#ifdef USM_DLPACK_TEST_TWIN
// The twin that shows what the test sees where extents are not static.
extern "C" void not_folded(void (*consumer)(const DLTensor&),
                           const md::mdspan<float, md::dextents<int, 3>>& view) {
  const auto wrapper = usm_dlpack::to_dlpack_tensor(view, DLDevice{kDLOneAPI, 0});
  const DLTensor tensor = wrapper.get();
  consumer(tensor);
}
#endif
