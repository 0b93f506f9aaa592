// SPDX-License-Identifier: Apache-2.0
//
// A module and a class of nanobind whose functions hold an `inside_module` while they run.
// Every function for Python must be defined by them.
#pragma once

#include "order/process.hpp"

namespace usm_dlpack::python {

class guarded_module : public nb::module_ {
 public:
  explicit guarded_module(const nb::module_& module) : nb::module_(module) {}

  template <class Function, class... Extra>
  guarded_module& def(const char* name, Function&& function, const Extra&... extra) {
    nb::module_::def(name, std::forward<Function>(function), extra...,
                     nb::call_guard<inside_module>());
    return *this;
  }
};

template <class T>
class guarded_class : public nb::class_<T> {
 public:
  using nb::class_<T>::class_;

  template <class Function, class... Extra>
  guarded_class& def(const char* name, Function&& function, const Extra&... extra) {
    nb::class_<T>::def(name, std::forward<Function>(function), extra...,
                       nb::call_guard<inside_module>());
    return *this;
  }
  template <class Getter, class... Extra>
  guarded_class& def_prop_ro(const char* name, Getter&& getter, const Extra&... extra) {
    nb::class_<T>::def_prop_ro(name, std::forward<Getter>(getter), extra...,
                               nb::call_guard<inside_module>());
    return *this;
  }
};

}  // namespace usm_dlpack::python
