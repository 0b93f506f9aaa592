// SPDX-License-Identifier: Apache-2.0
//
// An mdspan accessor whose type says which kind of USM the elements are in, so that host code
// which would read device memory does not compile. Works around any other accessor, and with
// any implementation of mdspan.
#pragma once

#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/view.hpp>

#include <sycl/sycl.hpp>
#include <usm_dlpack/sycl/config.hpp>

#include <cstddef>
#include <type_traits>

namespace usm_dlpack {

template <sycl::usm::alloc Kind, class Accessor>
class usm_accessor;

namespace detail {

template <sycl::usm::alloc Kind, class Accessor>
inline constexpr bool has_usm_kind<usm_accessor<Kind, Accessor>> = true;

/// The USM kind that an accessor's type names; unknown for every other accessor.
template <class Accessor>
inline constexpr sycl::usm::alloc usm_kind_of = sycl::usm::alloc::unknown;
template <sycl::usm::alloc Kind, class Accessor>
inline constexpr sycl::usm::alloc usm_kind_of<usm_accessor<Kind, Accessor>> = Kind;

/// What is around an accessor promises what that one does.
template <sycl::usm::alloc Kind, class Accessor>
inline constexpr std::size_t promised_alignment<usm_accessor<Kind, Accessor>> =
    promised_alignment<Accessor>;

/// Keeps an accessor, in no space if it has no state. It is no base class: a class does not
/// convert to its base by a conversion function, which is how `usm_accessor` converts.
template <class Accessor,
          bool = std::is_empty_v<Accessor> && std::is_default_constructible_v<Accessor>>
struct kept_accessor {
  Accessor accessor;
  constexpr const Accessor& get() const noexcept { return accessor; }
};
template <class Accessor>
struct kept_accessor<Accessor, true> {
  constexpr kept_accessor() noexcept = default;
  constexpr explicit kept_accessor(const Accessor&) noexcept {}
  constexpr Accessor get() const noexcept { return Accessor{}; }
};

/// Whether host code may not touch memory of the kind; code of kernels is not the host's.
template <sycl::usm::alloc Kind>
inline constexpr bool is_out_of_reach =
    Kind == sycl::usm::alloc::device && this_pass != compiled_code::device;

}  // namespace detail

/// An accessor policy around another one, whose type says which kind of USM the elements are
/// in. Source of the interface: P0009 `[mdspan.accessor.reqmts]`.
///
/// Elements of host and shared USM are indexed everywhere, those of device USM in device code.
/// Indexing device USM in host code is refused when it is compiled, by a compiler that makes
/// host code alone (g++ or clang beside kernels that are built elsewhere). A single-source
/// compiler (`-fsycl`) sees the bodies of kernels in its host pass too, where nothing tells
/// them from host code: there the same is refused at run time, when it is done, by an
/// exception (with which an mdspan whose indexing is `noexcept`, as Kokkos' is, ends the
/// process).
///
/// Converts to the wrapped accessor, and so a view to a plain view: implicitly for host and
/// shared USM, explicitly for device USM. From the wrapped accessor explicitly: the caller
/// vouches for the kind. (Kokkos' mdspan has explicit conversions since C++20; in C++17 it
/// takes all of these implicitly.) Between two of the same kind as the wrapped accessors do,
/// from mutable to const elements for example; never from one kind to another.
template <sycl::usm::alloc Kind, class Accessor>
class usm_accessor : private detail::kept_accessor<Accessor> {
  using kept = detail::kept_accessor<Accessor>;
  static_assert(Kind != sycl::usm::alloc::unknown,
                "usm_accessor: expected the kind device, shared or host, found unknown; "
                "use the plain accessor");
  static_assert(!detail::has_usm_kind<Accessor>,
                "usm_accessor: expected a plain accessor, found one that names a USM kind; "
                "wrap the accessor within it");

 public:
  using offset_policy = usm_accessor<Kind, typename Accessor::offset_policy>;
  using element_type = typename Accessor::element_type;
  using reference = typename Accessor::reference;
  using data_handle_type = typename Accessor::data_handle_type;

  usm_accessor() = default;

  /// Takes the caller's word that the memory is of the kind.
  template <class Plain, std::enable_if_t<!detail::has_usm_kind<Plain> &&
                                              std::is_convertible_v<const Plain&, Accessor>,
                                          int> = 0>
  constexpr explicit usm_accessor(const Plain& plain) : kept{Accessor(plain)} {}

  template <class Other, std::enable_if_t<std::is_convertible_v<const Other&, Accessor> &&
                                              !std::is_same_v<Other, Accessor>,
                                          int> = 0>
  constexpr usm_accessor(const usm_accessor<Kind, Other>& other)
      : kept{Accessor(other.wrapped())} {}

  /// The accessor that this one is around.
  constexpr Accessor wrapped() const { return kept::get(); }

  template <class Plain, std::enable_if_t<Kind != sycl::usm::alloc::device &&
                                              !detail::has_usm_kind<Plain> &&
                                              std::is_convertible_v<const Accessor&, Plain>,
                                          int> = 0>
  constexpr operator Plain() const {
    return wrapped();
  }
  template <class Plain, std::enable_if_t<Kind == sycl::usm::alloc::device &&
                                              !detail::has_usm_kind<Plain> &&
                                              std::is_convertible_v<const Accessor&, Plain>,
                                          int> = 0>
  constexpr explicit operator Plain() const {
    return wrapped();
  }

  /// The element at `i`.
  /// @throws conversion_error `usm_type_not_accepted` in host code that a single-source
  ///         compiler made, if the elements are in device USM
  constexpr reference access(data_handle_type handle, std::size_t i) const {
    constexpr bool refused = detail::is_out_of_reach<Kind>;
    static_assert(!refused || detail::this_pass != detail::compiled_code::host,
                  "access: expected device code, found host code; "
                  "copy the elements to host or shared USM, or index in a kernel");
    if constexpr (refused) {
      detail::refuse(errc::usm_type_not_accepted, "access", "device code", "host code",
                     "copy the elements to host or shared USM, or index in a kernel");
    }
    return kept::get().access(handle, i);
  }

  constexpr typename Accessor::offset_policy::data_handle_type offset(data_handle_type handle,
                                                                      std::size_t i) const {
    return kept::get().offset(handle, i);
  }
};

/// As the wrapped accessor: the USM kind changes no value.
template <sycl::usm::alloc Kind, class Accessor>
inline constexpr bool is_plain_accessor_v<usm_accessor<Kind, Accessor>> =
    is_plain_accessor_v<Accessor>;

}  // namespace usm_dlpack
