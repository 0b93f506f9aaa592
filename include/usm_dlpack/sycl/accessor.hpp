// SPDX-License-Identifier: Apache-2.0
//
// An mdspan accessor whose type names the USM kind, so that host code that would read device
// memory does not compile. Wraps any accessor; works with any implementation of mdspan. A rule
// for which code may read a kind is decided here.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/view.hpp>
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

/// Promises the alignment that the wrapped accessor promises.
template <sycl::usm::alloc Kind, class Accessor>
inline constexpr std::size_t promised_alignment<usm_accessor<Kind, Accessor>, void, false> =
    promised_alignment<Accessor>;

/// Stores an accessor, without space if it is stateless. Not a base class, because a class
/// never converts to its base by a conversion function, which `usm_accessor` needs.
template <class Accessor,
          bool = std::is_empty_v<Accessor> && std::is_default_constructible_v<Accessor>>
struct stored_accessor {
  Accessor accessor;
  constexpr const Accessor& get() const noexcept { return accessor; }
};
template <class Accessor>
struct stored_accessor<Accessor, true> {
  constexpr stored_accessor() noexcept = default;
  constexpr explicit stored_accessor(const Accessor&) noexcept {}
  constexpr Accessor get() const noexcept { return Accessor{}; }
};

}  // namespace detail

/// An accessor policy that wraps another and names the USM kind of its elements. Interface:
/// P0009 `[mdspan.accessor.reqmts]`.
///
/// Host and shared USM can be indexed everywhere, device USM only in device code. A host
/// compiler (g++ or clang, with kernels built elsewhere) refuses to compile host code that
/// indexes device USM. A single-source compiler (`-fsycl`) cannot tell kernels from host code
/// in its host pass: there, indexing throws at run time. (If the mdspan's indexing is
/// `noexcept`, as in Kokkos, that ends the process.)
///
/// Converts to the wrapped accessor, and so to a plain view: implicitly for host and shared
/// USM, explicitly for device USM. Converts explicitly from the wrapped accessor, without
/// proof of the kind. (Kokkos' mdspan takes all these conversions implicitly in C++17.) Within
/// a kind, converts where the wrapped accessors do implicitly, such as from mutable to const
/// elements; never between kinds.
template <sycl::usm::alloc Kind, class Accessor>
class usm_accessor : private detail::stored_accessor<Accessor> {
  using storage = detail::stored_accessor<Accessor>;
  static_assert(Kind != sycl::usm::alloc::unknown,
                "usm_accessor: expected the kind device, shared or host, found unknown; "
                "use the plain accessor");

 public:
  using offset_policy = usm_accessor<Kind, typename Accessor::offset_policy>;
  using element_type = typename Accessor::element_type;
  using reference = typename Accessor::reference;
  using data_handle_type = typename Accessor::data_handle_type;

  usm_accessor() = default;

  /// Does not check the kind.
  template <class Plain, std::enable_if_t<!detail::has_usm_kind<Plain> &&
                                              std::is_convertible_v<const Plain&, Accessor>,
                                          int> = 0>
  constexpr explicit usm_accessor(const Plain& plain) : storage{Accessor(plain)} {}

  template <class Other, std::enable_if_t<std::is_convertible_v<const Other&, Accessor> &&
                                              !std::is_same_v<Other, Accessor>,
                                          int> = 0>
  constexpr usm_accessor(const usm_accessor<Kind, Other>& other)
      : storage{Accessor(other.wrapped())} {}

  /// The wrapped accessor.
  constexpr Accessor wrapped() const { return storage::get(); }

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
  /// @throws conversion_error `usm_type_not_accepted` for device USM in host code of a
  ///         single-source compiler
  constexpr reference access(data_handle_type handle, std::size_t i) const {
    constexpr bool refused = Kind == sycl::usm::alloc::device && !detail::is_device_code;
    static_assert(!refused || detail::makes_kernels,
                  "access: expected device code, found host code; "
                  "copy the elements to host or shared USM, or index in a kernel");
    if constexpr (refused) {
      detail::refuse(errc::usm_type_not_accepted, "access", "device code", "host code",
                     "copy the elements to host or shared USM, or index in a kernel");
    }
    return storage::get().access(handle, i);
  }

  constexpr typename Accessor::offset_policy::data_handle_type offset(data_handle_type handle,
                                                                      std::size_t i) const {
    return storage::get().offset(handle, i);
  }
};

/// As for the wrapped accessor: the USM kind changes no value.
template <sycl::usm::alloc Kind, class Accessor>
inline constexpr bool is_plain_accessor_v<usm_accessor<Kind, Accessor>> =
    is_plain_accessor_v<Accessor>;

}  // namespace usm_dlpack
