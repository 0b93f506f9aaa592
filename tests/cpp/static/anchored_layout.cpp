// SPDX-License-Identifier: Apache-2.0
//
// A strided layout whose first element is not at index 0 keeps that index as `layout_relaxed`.
#include <mdspan_under_test.hpp>
#include <odd_views.hpp>

#include <usm_dlpack/core/layout_relaxed.hpp>

namespace {

using rows = md::dextents<int, 2>;
using anchored = odd::layout_anchored::mapping<rows>;
using relaxed = usm_dlpack::layout_relaxed::mapping<rows>;

constexpr anchored given(rows(2, 3), {4, 1}, 5, 12);
constexpr relaxed taken(given);
static_assert(taken.element_offset() == 5 && taken(0, 0) == 5 && taken(1, 2) == given(1, 2));
static_assert(taken == given && taken != anchored(rows(2, 3), {4, 1}, 4, 12));

}  // namespace
