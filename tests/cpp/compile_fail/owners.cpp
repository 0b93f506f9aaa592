// SPDX-License-Identifier: Apache-2.0
//
// A Python handle, as nanobind and pybind11 have it, is refused as an owner: the deleter would
// drop its reference on any thread, without the GIL. So are a pointer, which owns nothing, a
// deleter, which nothing would call, and no owner. A wrapper that is a temporary gives no
// DLTensor, whose shape and strides would dangle, and a result that is dropped is remarked
// upon.
//
// clang-format off
// expect: owner: expected one that any thread may destroy, found a Python handle
// expect: pass .*usm_dlpack::python_owner\(object\)
// expect: owner: expected an object that keeps the memory, found a number, a pointer
// expect: or a function, which nothing calls; pass what keeps the memory itself, or std::shared
// expect[gcc]: = delete;  // add its owner
// expect[clang]: deleted function .*to_managed_tensor
// expect[gcc]: use of deleted function .*get\(\) const
// expect[gcc]: = delete;  // keep the wrapper in a variable
// expect[clang]: call to deleted (member )?function 'get'
// expect[gcc]: ignoring return value of .*get\(\).*nodiscard.*
// expect[clang]: ignoring return value of function declared with 'nodiscard' attribute
// clang-format on
#include <mdspan_under_test.hpp>

#include <usm_dlpack/core/managed.hpp>

#include <cstdlib>
#include <memory>

#if defined(__GNUC__)
#pragma GCC diagnostic error "-Wunused-result"
#endif

using view_type = md::mdspan<float, md::dextents<int, 2>>;
constexpr DLDevice some_device{kDLOneAPI, 0};

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
inline const std::shared_ptr<void> shared(std::malloc(24), std::free);
inline const auto& pointer = shared;
/// An owner whose operator reads an element is no deleter.
inline const struct matrix {
  float operator()(int i, int j) const;
} deleter;
#else
using owner_type = python_object;
inline void* const pointer = std::malloc(24);
inline const auto deleter = [](void* memory) { std::free(memory); };
#endif

auto share(const DLTensor& tensor, const python_object& self) {
  return usm_dlpack::to_managed_tensor(tensor, owner_type(self));
}
auto share_legacy(const DLTensor& tensor, const python_object& self) {
  return usm_dlpack::to_legacy_managed_tensor(tensor, owner_type(self));
}
auto share_pointer(const DLTensor& tensor) {
  return usm_dlpack::to_managed_tensor(tensor, pointer);
}
auto share_deleter(const DLTensor& tensor) {
  return usm_dlpack::to_legacy_managed_tensor(tensor, deleter);
}
auto share_alone(const view_type& view) {
#if defined(USM_DLPACK_FIXED)
  return usm_dlpack::to_managed_tensor(view, some_device, shared);
#else
  return usm_dlpack::to_managed_tensor(view, some_device);
#endif
}

void use_wrapper(const view_type& view) {
  const auto wrapper = usm_dlpack::to_dlpack_tensor(view, some_device);
#if defined(USM_DLPACK_FIXED)
  [[maybe_unused]] const DLTensor tensor = wrapper.get();
#else
  [[maybe_unused]] const DLTensor tensor =
      usm_dlpack::to_dlpack_tensor(view, some_device).get();
  wrapper.get();
#endif
}
