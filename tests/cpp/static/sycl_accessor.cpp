// SPDX-License-Identifier: Apache-2.0
//
// What the types of views that name their USM kind are, over each implementation of mdspan,
// and which of them convert to which.
#include <odd_views.hpp>

#include <usm_dlpack/usm_dlpack.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace static_sycl_accessor {

using namespace usm_dlpack;
using alloc = sycl::usm::alloc;

using extents = md::dextents<int, 2>;
using view = md::mdspan<float, extents>;
using const_view = md::mdspan<const float, extents>;
using left_view = md::mdspan<float, extents, md::layout_left>;
using accessor = md::default_accessor<float>;
using const_accessor = md::default_accessor<const float>;
using on_device = usm_accessor<alloc::device, accessor>;
using on_shared = usm_accessor<alloc::shared, accessor>;
using on_host = usm_accessor<alloc::host, accessor>;
using const_on_device = usm_accessor<alloc::device, const_accessor>;

template <class From, class To>
inline constexpr bool only_explicit =
    std::is_constructible_v<To, From> && !std::is_convertible_v<From, To>;
template <class One, class Other>
inline constexpr bool unrelated =
    !std::is_constructible_v<One, Other> && !std::is_constructible_v<Other, One>;

// --- The accessor ---------------------------------------------------------------------------

static_assert(std::is_same_v<on_device::reference, float&>);
static_assert(std::is_same_v<on_device::offset_policy, on_device>);
static_assert(std::is_empty_v<on_device> && std::is_trivially_copyable_v<on_device>);

struct accessor_made_of_a_number : accessor {
  explicit accessor_made_of_a_number(int) {}
};
static_assert(
    !std::is_default_constructible_v<usm_accessor<alloc::host, accessor_made_of_a_number>>);

constexpr float four_numbers[] = {1, 2, 3, 4};
constexpr usm_accessor<alloc::host, const_accessor> constant{const_accessor{}};
static_assert(constant.access(four_numbers, 2) == 3);
static_assert(*constant.offset(four_numbers, 3) == 4);

// Plain exactly if the wrapped one is, and as aligned as that one promises.
template <template <class> class Accessor>
inline constexpr bool is_plain =
    is_plain_accessor_v<usm_accessor<alloc::device, Accessor<float>>>;
static_assert(is_plain<md::default_accessor> && is_plain<odd::vetted_accessor>);
static_assert(!is_plain<odd::doubling_accessor>);
static_assert(detail::promised_alignment<on_shared> == 1);
static_assert(
    detail::promised_alignment<usm_accessor<alloc::shared, odd::aligned_accessor<float>>> ==
    64);

// Out of the kind: implicitly where the host may index anyway. Into it: explicitly.
static_assert(std::is_convertible_v<on_shared, accessor>);
static_assert(std::is_convertible_v<on_host, const_accessor>);
static_assert(only_explicit<on_device, accessor>);
static_assert(only_explicit<accessor, on_device> && only_explicit<accessor, on_shared> &&
              only_explicit<accessor, on_host>);

// From mutable to const elements, not back; never between kinds.
static_assert(std::is_convertible_v<on_device, const_on_device>);
static_assert(!std::is_constructible_v<on_device, const_on_device>);
static_assert(unrelated<on_device, on_shared> && unrelated<on_device, on_host> &&
              unrelated<on_shared, on_host> && unrelated<const_on_device, on_shared>);

// --- The views ------------------------------------------------------------------------------

static_assert(std::is_same_v<host_mdspan<left_view>,
                             md::mdspan<float, extents, md::layout_left, on_host>>);
static_assert(std::is_same_v<device_mdspan<shared_mdspan<view>>, device_mdspan<view>>);
static_assert(std::is_same_v<plain_mdspan<device_mdspan<view>>, view>);
static_assert(usm_kind_v<device_mdspan<view>> == alloc::device);
static_assert(usm_kind_v<host_mdspan<const_view>> == alloc::host);
static_assert(usm_kind_v<view> == alloc::unknown);

// A kernel's argument like a plain view.
static_assert(sizeof(device_mdspan<view>) == sizeof(view));
static_assert(std::is_trivially_copyable_v<device_mdspan<view>>);

// Views convert as their accessors do.
static_assert(std::is_convertible_v<host_mdspan<view>, const_view>);
static_assert(std::is_convertible_v<device_mdspan<view>, device_mdspan<const_view>>);
static_assert(unrelated<device_mdspan<view>, shared_mdspan<view>>);

// Kokkos' mdspan of C++17 has no explicit conversions.
#if !defined(USM_DLPACK_TEST_MDSPAN_KOKKOS) || __cplusplus > 201703L
static_assert(only_explicit<device_mdspan<view>, view>);
static_assert(only_explicit<view, device_mdspan<view>>);
#endif

// --- Compiled, and linked by the tests on devices -------------------------------------------

[[maybe_unused]] float read(const shared_mdspan<view>& shared) {
  return shared[md_array<int, 2>{1, 2}];
}
[[maybe_unused]] auto exported(const device_mdspan<view>& on, const sycl::queue& queue) {
  return to_dlpack_tensor(on, queue);
}
[[maybe_unused]] auto imported(const DLManagedTensorVersioned& managed) {
  return to_mdspan<device_mdspan<view>>(managed);
}
[[maybe_unused]] auto made(const sycl::queue& queue) {
  return to_managed_tensor(usm_array<device_mdspan<view>>(queue, extents(2, 3)));
}

// --- Arrays ---------------------------------------------------------------------------------

using array = usm_array<shared_mdspan<view>>;
static_assert(std::is_nothrow_move_constructible_v<array> &&
              std::is_nothrow_move_assignable_v<array>);
static_assert(!std::is_copy_constructible_v<array> && !std::is_copy_assignable_v<array>);
static_assert(std::is_same_v<decltype(std::declval<array&>().view()), shared_mdspan<view>>);
static_assert(std::is_constructible_v<array, sycl::queue, extents>);
// The kind is that of the type, unless it names none.
static_assert(!std::is_constructible_v<array, sycl::queue, extents, alloc>);
static_assert(std::is_constructible_v<usm_array<view>, sycl::queue, extents, alloc>);
// Extents are not enough for strides.
using strided_view = md::mdspan<float, extents, md::layout_stride>;
static_assert(!std::is_constructible_v<usm_array<strided_view>, sycl::queue, extents>);
static_assert(
    std::is_constructible_v<usm_array<strided_view>, sycl::queue, strided_view::mapping_type>);

}  // namespace static_sycl_accessor
