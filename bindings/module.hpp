// SPDX-License-Identifier: Apache-2.0
//
// What each file adds to the module and to its classes. A new file adds its function here and
// calls it in module.cpp.
#pragma once

#include "tensor/tensor.hpp"

namespace usm_dlpack::python {

void register_devices(guarded_module& module);
void register_empty(guarded_module& module);
/// Sets `__dlpack_c_exchange_api__` of DLPackTensor: a table of five C functions.
void register_exchange_api();
void register_from_dlpack(guarded_module& module);
void register_library_views(guarded_module& module);
/// Adds the table for extensions, which python/package.hpp describes.
void register_package_interface(guarded_module& module);
void register_tensor(guarded_module& module);
void register_to_dlpack_tensor(guarded_module& module);
void register_validate(guarded_module& module);

void add_copy_from(tensor_class& tensor_type);
void add_dlpack_method(tensor_class& tensor_type);

}  // namespace usm_dlpack::python
