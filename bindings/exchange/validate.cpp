// SPDX-License-Identifier: Apache-2.0
//
// Python's `validate` and UsmAllocation. A new requirement also needs a field of
// `requirements` in sycl/validate.hpp.
#include "arguments/arguments.hpp"
#include "arguments/dtypes.hpp"
#include "arguments/places.hpp"
#include "exchange/capsule.hpp"
#include "exchange/producer.hpp"
#include "module.hpp"
#include "order/process.hpp"

namespace usm_dlpack::python {
namespace {

/// The values of an enumeration with the given names.
/// @throws nb::value_error for an unknown name
template <class Enum>
accepted<Enum> to_accepted(const char* field, std::initializer_list<Enum> values,
                           const std::vector<nb::object>& names) {
  accepted<Enum> chosen(std::initializer_list<Enum>{});
  for (const nb::object& name : names) {
    const auto* match = std::find_if(values.begin(), values.end(), [&](Enum value) {
      return PyUnicode_CompareWithASCIIString(name.ptr(), to_string(value)) == 0;
    });
    if (match == values.end()) {
      refuse_argument(nb::exception_type::value_error, field,
                      detail::names_of(accepted<Enum>(), values), text_of(name),
                      "correct the name");
    }
    chosen.insert(*match);
  }
  return chosen;
}

/// The names of proofs in Python.
const char* name_of(bounds_proof bounds) {
  static constexpr const char* names[] = {"allocation", "block", "both_ends", "none"};
  return names[static_cast<std::size_t>(bounds)];
}
const char* name_of(device_proof device) {
  static constexpr const char* names[] = {"backend", "only_device", "runtime", "none"};
  return names[static_cast<std::size_t>(device)];
}

struct allocation_object {
  const usm_allocation& proof() const noexcept { return proved; }
  bool readonly() const noexcept { return is_readonly; }

  usm_allocation proved;
  bool is_readonly;
};

allocation_object validate_content(const capsule_content& content, const requirements& wanted,
                                   bool padded) {
  const usm_allocation proof = std::visit(
      [&](const auto* managed) { return validate(*managed, wanted); }, content.managed());
  const std::uint64_t flags = content.flags();
  if (padded && (flags & flag::is_subbyte_type_padded) == 0) {
    const std::string name = to_string(*wanted.dtype);
    detail::refuse(errc::dtype_mismatch, "dtype", name + " with a byte for each element",
                   "packed elements", "have the producer give each element a byte");
  }
  return {proof, (flags & flag::read_only) != 0};
}

/// Python's `validate`, for an array or a capsule, which is not consumed.
allocation_object validate_array(nb::handle x, nb::handle usm_types, nb::handle backends,
                                 nb::handle dtype, nb::handle ndim, nb::handle readonly,
                                 nb::handle overlapping, nb::handle device) {
  check_process();
  requirements wanted;
  wanted.usm_types =
      to_accepted("usm_types", detail::known_kinds, read_names("usm_types", usm_types));
  if (!backends.is_none()) {
    wanted.backends =
        to_accepted("backends", detail::known_backends, read_names("backends", backends));
  }
  wanted.writable = read_flag("readonly", readonly) == false;
  wanted.unique = read_flag("overlapping", overlapping) == false;
  bool padded = false;
  if (!dtype.is_none()) {
    const element_type element = read_dtype(dtype);
    wanted.dtype = element.dtype;
    padded = element.storage == subbyte::padded;
  }
  if (!ndim.is_none()) {
    wanted.ndim = read_int32("ndim", ndim);
  }
  if (!device.is_none()) {
    wanted.device_id = read_place(device).device_id;
  }
  const bool is_capsule = PyCapsule_CheckExact(x.ptr()) != 0;
  const offered_capsule offered =
      is_capsule ? offered_capsule{nb::borrow(x), {}} : export_array(x, {});
  const nb::ft_object_guard alone(offered.capsule);
  const allocation_object allocation =
      validate_content(read_capsule(offered.capsule), wanted, padded);
  if (offered.queue) {
    detail::check_context(allocation.proof(), *offered.queue);
  }
  return allocation;
}

void register_allocation(guarded_module& module) {
  using self = allocation_object;
  guarded_class<self> allocation_class(
      module, "UsmAllocation", nb::is_final(),
      nb::sig("@typing.final\nclass UsmAllocation(object)"),
      "What `validate` proved of a tensor's memory. Keeps nothing alive.");
  add_memory_properties(allocation_class)
      .def_prop_ro(
          "device_id", [](const self& a) { return a.proof().device_id(); },
          "DLPack's id of the root device.")
      .def_prop_ro(
          "root_device", [](const self& a) { return to_dpctl(a.proof().root_device()); },
          nb::sig("def root_device(self) -> SyclDevice"),
          "The root device that `device_id` names.")
      .def_prop_ro(
          "nbytes", [](const self& a) { return a.proof().structure().nbytes; },
          "Bytes from the lowest element of the view to the end of the highest.")
      .def_prop_ro(
          "overlapping", [](const self& a) { return !a.proof().structure().unique; },
          "Whether elements may overlap, as far as the strides show.")
      .def_prop_ro(
          "base", [](const self& a) { return a.proof().base(); },
          "Address of the allocation or block that `bounds` names; 0 for \"both_ends\" and\n"
          "\"none\".")
      .def_prop_ro(
          "size", [](const self& a) { return a.proof().size(); },
          "Bytes from `base` to the end of what `bounds` names, or 0.")
      .def_prop_ro(
          "bounds", [](const self& a) { return name_of(a.proof().bounds_proved()); },
          "What the view is proved to lie in.\n\n"
          "\"allocation\" is exactly SYCL's allocation. \"block\" is an allocation of the driver,\n"
          "in which other allocations may be (on Level Zero always), or adjacent pieces of memory\n"
          "that are mapped in one reservation. \"both_ends\": only the first and last byte were\n"
          "looked at, and are USM of one kind and device. \"none\": the view is empty.")
      .def_prop_ro(
          "device_proof", [](const self& a) { return name_of(a.proof().device_proved()); },
          "How the device is known.\n\n"
          "\"backend\": the backend named it. \"only_device\": the context has no other.\n"
          "\"runtime\": SYCL's query named it. \"none\": host USM, or no memory.")
      .def(
          "__repr__",
          [](const self& a) {
            return "UsmAllocation(usm_type='" + std::string(to_string(a.proof().usm_type())) +
                   "', device_id=" + std::to_string(a.proof().device_id()) +
                   ", nbytes=" + std::to_string(a.proof().structure().nbytes) +
                   ", size=" + std::to_string(a.proof().size()) + ", bounds='" +
                   name_of(a.proof().bounds_proved()) + "', device_proof='" +
                   name_of(a.proof().device_proved()) + "'" +
                   (a.readonly() ? ", read-only)" : ")");
          },
          nb::sig("def __repr__(self) -> str"));
}

}  // namespace

void register_validate(guarded_module& module) {
  register_allocation(module);
  module.def(
      "validate", &validate_array, nb::arg("x").none(), nb::arg("usm_types").none(),
      nb::arg("backends").none(), nb::arg("dtype").none(), nb::arg("ndim").none(),
      nb::arg("readonly").none(), nb::arg("overlapping").none(), nb::arg("device").none(),
      nb::sig("def validate(x: typing.Any, usm_types: typing.Any, backends: typing.Any, "
              "dtype: typing.Any, ndim: typing.Any, readonly: typing.Any, "
              "overlapping: typing.Any, device: typing.Any) -> UsmAllocation"));
}

}  // namespace usm_dlpack::python
