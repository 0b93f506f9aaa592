// SPDX-License-Identifier: Apache-2.0
//
// mdspan types that name the USM kind of their elements, and the validated import of a tensor
// as a view, which proves that kind. The rules are those of validate.hpp and
// core/to_mdspan.hpp: add none here.
#pragma once

#include <usm_dlpack/core/dtype.hpp>
#include <usm_dlpack/core/structure.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>
#include <usm_dlpack/core/view.hpp>
#include <usm_dlpack/sycl/accessor.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/validate.hpp>

#include <initializer_list>
#include <type_traits>

namespace usm_dlpack {
namespace detail {

template <class Accessor>
auto without_kind(const Accessor&) -> Accessor;
template <sycl::usm::alloc Kind, class Accessor>
auto without_kind(const usm_accessor<Kind, Accessor>&) -> Accessor;

/// A view type with another accessor: one that names a USM kind, or the plain one.
template <class View>
struct rebound_view;
template <template <class, class, class, class> class Mdspan, class Element, class Extents,
          class Layout, class Accessor>
struct rebound_view<Mdspan<Element, Extents, Layout, Accessor>> {
  using plain_accessor_type = decltype(detail::without_kind(std::declval<const Accessor&>()));
  using plain = Mdspan<Element, Extents, Layout, plain_accessor_type>;
  template <sycl::usm::alloc Kind>
  using of_kind = Mdspan<Element, Extents, Layout, usm_accessor<Kind, plain_accessor_type>>;
};

template <class View, sycl::usm::alloc Kind>
using view_of_kind = typename rebound_view<View>::template of_kind<Kind>;

/// Narrows requirements to those of the view type.
template <class View>
requirements require_kind(requirements needs) {
  constexpr sycl::usm::alloc kind = usm_kind_of<accessor_of<View>>;
  if constexpr (kind != sycl::usm::alloc::unknown) {
    needs.usm_types =
        needs.usm_types.contains(kind)
            ? accepted<sycl::usm::alloc>{kind}
            : accepted<sycl::usm::alloc>(std::initializer_list<sycl::usm::alloc>{});
  }
  needs.writable = needs.writable || !has_const_elements<View>;
  return needs;
}

template <class View>
View import_view(const DLTensor& tensor, const requirements& needs, subbyte storage) {
  static_cast<void>(detail::id_named_by(tensor.device));
  detail::check_ndim(tensor);
  detail::check_rank<View>(tensor);  // before `shape` is read, which has `ndim` entries
  const usm_allocation proof = detail::import_tensor(tensor, needs, storage);
  return detail::make_view<View>(tensor, proof.structure(), storage);
}

}  // namespace detail

/// The mdspan type `View` for elements in device USM: host code that indexes it does not
/// compile, or throws if built by a single-source compiler (see `usm_accessor`).
///
/// Its constructor from a handle and extents does not check the kind; `to_mdspan` and
/// `usm_array` ensure it.
template <class View>
using device_mdspan = detail::view_of_kind<View, sycl::usm::alloc::device>;
/// The mdspan type `View` for elements in shared USM.
template <class View>
using shared_mdspan = detail::view_of_kind<View, sycl::usm::alloc::shared>;
/// The mdspan type `View` for elements in host USM.
template <class View>
using host_mdspan = detail::view_of_kind<View, sycl::usm::alloc::host>;
/// The mdspan type without a kind; a plain `View` itself.
template <class View>
using plain_mdspan = typename detail::rebound_view<View>::plain;

/// The USM kind that a view type names; unknown if it names none.
template <class View>
inline constexpr sycl::usm::alloc usm_kind_v = detail::usm_kind_of<detail::accessor_of<View>>;

/// Validates a tensor by the import protocol (`validate`) and makes a view of it
/// (`to_mdspan`). If the view's type names a USM kind, the memory must be of that kind.
/// @throws conversion_error of the first broken rule: those of `validate`, with
///         `shape_mismatch` before `shape` is read, then those of `to_mdspan`
template <class View, class = detail::required_view<View>>
[[nodiscard]] View to_mdspan(const DLTensor& tensor, const requirements& needs) {
  return detail::import_view<View>(tensor, detail::require_kind<View>(needs), subbyte::packed);
}

/// Validates a managed tensor and makes a view of it. The tensor must be writable if the view
/// has mutable elements. Never calls the deleter.
template <class View, class = detail::required_view<View>>
[[nodiscard]] View to_mdspan(const DLManagedTensorVersioned& managed,
                             const requirements& needs) {
  const requirements narrowed = detail::require_kind<View>(needs);
  detail::check_managed(managed, narrowed);
  return detail::import_view<View>(managed.dl_tensor, narrowed,
                                   detail::storage_of(managed.flags));
}

/// Validates a legacy managed tensor, as its DLTensor, and makes a view of it.
template <class View, class = detail::required_view<View>>
[[nodiscard]] View to_mdspan(const DLManagedTensor& managed, const requirements& needs) {
  return usm_dlpack::to_mdspan<View>(managed.dl_tensor, needs);
}

/// Validates a tensor, or a managed one, against the USM kind of the view's type, and makes a
/// view of it. For types without a kind there are overloads in core/ that query no device.
template <class View, class Tensor, class = detail::required_view<View>,
          std::enable_if_t<!detail::has_no_usm_kind<View>, int> = 0>
[[nodiscard]] auto to_mdspan(const Tensor& tensor)
    -> decltype(usm_dlpack::to_mdspan<View>(tensor, requirements{})) {
  return usm_dlpack::to_mdspan<View>(tensor, requirements{});
}

}  // namespace usm_dlpack
