// SPDX-License-Identifier: Apache-2.0
//
// A Python handle, as nanobind and pybind11 have it, is refused as an owner: the deleter would
// drop its reference on any thread, without the GIL.
//
// clang-format off
// expect: owner: expected one that any thread may destroy, found a Python handle
// expect: pass .*usm_dlpack::python_owner\(object\)
// clang-format on
#include <usm_dlpack/core/managed.hpp>

struct python_handle {
  void* ptr() const;
  const python_handle& inc_ref() const&;
  const python_handle& dec_ref() const&;
};
struct python_object : python_handle {
  ~python_object();
};

/// Like `usm_dlpack::python_owner`.
struct python_owner {
  explicit python_owner(const python_handle& object);
};

#if defined(USM_DLPACK_FIXED)
using owner_type = python_owner;
#else
using owner_type = python_object;
#endif

auto share(const DLTensor& tensor, const python_object& self) {
  return usm_dlpack::to_managed_tensor(tensor, owner_type(self));
}
auto share_legacy(const DLTensor& tensor, const python_object& self) {
  return usm_dlpack::to_legacy_managed_tensor(tensor, owner_type(self));
}
