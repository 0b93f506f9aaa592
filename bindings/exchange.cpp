// SPDX-License-Identifier: Apache-2.0
//
// Memory or a capsule in, proof or a DLPackTensor out; and the map of root devices.
#include "exchange.hpp"

#include "copies.hpp"
#include "export.hpp"
#include "process.hpp"
#include "producer.hpp"
#include "python_objects.hpp"
#include "tensor.hpp"
#include "trace.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace usm_dlpack::python {
namespace {

using extents = std::vector<std::int64_t>;

DLDataType to_dtype(int code, int bits, int lanes) noexcept {
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits),
          static_cast<std::uint16_t>(lanes)};
}

/// The values of an enumeration that have the given names.
/// @throws nb::value_error for a name that none has
template <class Enum>
accepted<Enum> to_accepted(const char* field, std::initializer_list<Enum> known,
                           const std::vector<std::string>& names) {
  accepted<Enum> chosen(std::initializer_list<Enum>{});
  for (const std::string& name : names) {
    const auto* match = std::find_if(known.begin(), known.end(),
                                     [&](Enum value) { return name == to_string(value); });
    if (match == known.end()) {
      const std::string sentence = std::string(field) + ": expected " +
                                   detail::names_of(accepted<Enum>(), known) + ", found \"" +
                                   name + "\"; correct the name";
      throw nb::value_error(sentence.c_str());
    }
    chosen.insert(*match);
  }
  return chosen;
}

requirements to_requirements(const std::vector<std::string>& usm_types,
                             const std::optional<std::vector<std::string>>& backends,
                             bool writable, bool unique) {
  requirements wanted;
  wanted.usm_types = to_accepted("usm_types", detail::known_kinds, usm_types);
  if (backends) {
    wanted.backends = to_accepted("backends", detail::known_backends, *backends);
  }
  wanted.writable = writable;
  wanted.unique = unique;
  return wanted;
}

struct allocation_object {
  usm_allocation proof;
  bool readonly;
};

allocation_object validate_content(const capsule_content& content, const requirements& wanted,
                                   bool padded, trace* watching) {
  const auto* versioned = std::get_if<DLManagedTensorVersioned*>(&content);
  usm_allocation own;
  usm_allocation& proof = watching == nullptr ? own : watching->proof;
  if (watching != nullptr) {
    watching->read(content);
  }
  std::visit(
      [&](const auto* managed) { detail::import_managed(*managed, wanted, proof, watching); },
      content);
  const std::uint64_t flags = versioned != nullptr ? (*versioned)->flags : 0;
  if (padded && (flags & flag::is_subbyte_type_padded) == 0) {
    detail::begin_step(watching, "requirements");
    const std::string name = to_string(*wanted.dtype);
    detail::refuse(errc::dtype_mismatch, "dtype", name + " with a byte for each element",
                   "packed elements", "convert the array");
  }
  return {proof, (flags & flag::read_only) != 0};
}

/// Validates a capsule, which stays as it is, or what an array offers.
/// @param padded whether small elements must have a byte each
allocation_object validate_array(nb::handle x, const requirements& wanted, bool padded) {
  trace* watching = take_trace();
  check_process();
  detail::begin_step(watching, "producer");
  if (PyCapsule_CheckExact(x.ptr()) != 0) {
    detail::begin_step(watching, "capsule");
    const nb::ft_object_guard alone(x);
    return validate_content(read_capsule(x), wanted, padded, watching);
  }
  const offered_tensor offered = ask_producer(x, {});
  detail::begin_step(watching, "capsule");
  const allocation_object found =
      validate_content(offered.content(), wanted, padded, watching);
  detail::begin_step(watching, "pointer");  // again: by the queue that the producer names
  check_context(found.proof, offered);
  return found;
}

/// Where the bytes of a Python object begin and end.
using byte_range = std::pair<std::uintptr_t, std::uintptr_t>;

/// Refuses a view that reaches out of its object; an empty one may begin at the end.
void check_within(const tensor_structure& view, const byte_range& object) {
  const auto [begin, end] = object;
  const auto bytes = [&] {
    return " within the " + detail::digits(object.second - object.first) +
           " bytes of the object";
  };
  if (view.first < begin || view.first > end || (view.first == end && !view.empty)) {
    detail::refuse(errc::out_of_bounds, "byte_offset", "a first element" + bytes(),
                   "one at byte " + detail::byte_place(view.first, begin),
                   "correct byte_offset");
  }
  if (!view.empty && (view.lowest < begin || view.nbytes > end - view.lowest)) {
    const std::uintptr_t last = view.lowest + view.nbytes - 1;
    detail::refuse(errc::out_of_bounds, "shape", "a view" + bytes(),
                   "one of bytes " + detail::byte_place(view.lowest, begin) + " to " +
                       detail::byte_place(last, begin),
                   "correct shape, strides or byte_offset");
  }
}

/// Refuses an array whose offset leads out of the allocation of the address that it names, as
/// far as the backend tells. A chunk is known from that address on.
void check_offset(std::uintptr_t first, std::uintptr_t origin, DLDevice device) {
  DLTensor named{};
  named.data = reinterpret_cast<void*>(origin);
  named.device = device;
  named.dtype = {kDLUInt, 8, 1};
  const usm_allocation proof = validate(named);
  const bool is_out = first < proof.base() ? proof.bounds_proved() != bounds_proof::chunk
                                           : first - proof.base() >= proof.size();
  if (proof.size() != 0 && is_out) {
    detail::refuse(errc::out_of_bounds, "byte_offset",
                   "a first element within the allocation of the object's address",
                   "one at byte " + detail::byte_place(first, origin) + " from that address",
                   "correct the offset in the object's array interface");
  }
}

/// Refuses a queue of another context or root device than the memory's. By comparing: the
/// Level Zero driver knows a pointer in each context of its platform.
/// @param context a default context, which knows the memory
DLDevice find_device(const void* pointer, bool empty, DLDevice device,
                     const sycl::context& context, const sycl::queue& queue) {
  check_queue(queue);
  if (!empty && queue.get_context() != context) {
    detail::refuse_queue(detail::digits(device.device_id), device_id(queue.get_device()));
  }
  return detail::export_device(pointer, empty, queue);
}

/// What `to_dlpack_tensor` in Python found out about an object's memory.
/// @param origin the address that the object itself names
/// @param object the bytes behind it
/// @param place a context or queue of the object
nb::object from_memory(nb::object owner, std::uintptr_t origin, const byte_range& object,
                       std::uintptr_t data, extents shape, std::optional<extents> strides,
                       int code, int bits, int lanes, std::uint64_t flags, nb::handle place,
                       nb::handle queue) {
  trace* watching = take_trace();
  check_process();
  DLManagedTensorVersioned shown{};
  shown.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  shown.flags = flags;
  DLTensor& described = shown.dl_tensor;
  described.data = reinterpret_cast<void*>(data);
  described.ndim = static_cast<std::int32_t>(shape.size());
  described.shape = shape.data();
  described.strides = strides ? strides->data() : nullptr;
  described.dtype = to_dtype(code, bits, lanes);
  if (watching != nullptr) {
    watching->read(described);
    watching->origin = origin;
    watching->object = object;
  }
  detail::begin_step(watching, "structure");
  const tensor_structure structure = check_structure(described, detail::storage_of(flags));
  if (watching != nullptr) {
    watching->structure = structure;
  }
  detail::begin_step(watching, "context");
  const sycl::context context = to_context(place);
  if (watching != nullptr) {
    watching->context = context;
  }
  const bool empty = structure.empty;
  // What the object itself names is looked up: shape and offset may lead out of it.
  const auto* pointer = reinterpret_cast<const void*>(empty ? structure.first : origin);
  described.device =
      detail::export_device(pointer, empty, context, detail::device_table::get().find(context),
                            sycl::usm::alloc::unknown, -1, watching);
  if (watching != nullptr) {
    watching->device_id = described.device.device_id;
  }
  detail::begin_step(watching, "queue");
  if (!queue.is_none()) {
    described.device = find_device(pointer, empty, described.device, context, to_queue(queue));
  }
  detail::begin_step(watching, "bounds");
  check_within(structure, object);
  if (!empty && structure.first != origin) {
    check_offset(structure.first, origin, described.device);
  }
  const usm_allocation proof = validate(shown);
  if (watching != nullptr) {
    watching->proof = proof;
  }
  const sycl::queue* known = find_queue(queue.is_none() ? place : queue);
  nb::object made = make_tensor(described, proof, flags);
  tensor& filled = *nb::inst_ptr<tensor>(made);
  filled.own(is_tensor(owner) ? nb::inst_ptr<tensor>(owner)->owner_for_others(owner)
                              : std::move(owner));
  filled.know(known == nullptr ? std::nullopt : std::optional<sycl::queue>(*known));
  return made;
}

nb::object usm_type_of(const allocation_object& self) {
  return nb::str(to_string(self.proof.usm_type()));
}

/// A row of the device table as Python's `devices` shows it.
nb::dict device_row(std::int32_t id) {
  const detail::device_entry& entry =
      detail::device_table::get().devices[static_cast<std::size_t>(id)];
  nb::dict row;
  row["device_id"] = id;
  row["failure"] =
      entry.failure.empty() ? nb::none() : nb::object(nb::str(entry.failure.c_str()));
  row["sycl_device"] = to_dpctl(entry.device);
  return row;
}

/// Base and size of what a proof names, and lowest address, bytes and first element of the
/// view.
nb::tuple bounds_of(nb::handle x) {
  const usm_allocation& proof =
      is_tensor(x) ? nb::inst_ptr<tensor>(x)->proof() : nb::cast<allocation_object&>(x).proof;
  const tensor_structure& view = proof.structure();
  return nb::make_tuple(proof.base(), proof.size(), view.lowest, view.nbytes, view.first);
}

void register_allocation(nb::module_& module) {
  using self = allocation_object;
  nb::class_<self>(module, "UsmAllocation", nb::is_final(),
                   nb::sig("@typing.final\nclass UsmAllocation(object)"),
                   "What `validate` proved of a tensor's memory. Keeps nothing alive.")
      .def_prop_ro(
          "data",
          [](const self& a) { return reinterpret_cast<std::uintptr_t>(a.proof.data()); },
          "Address of the first element; 0 only for an empty tensor.")
      .def_prop_ro(
          "usm_type", &usm_type_of, nb::sig("def usm_type(self) -> str"),
          "\"host\", \"device\" or \"shared\"; \"unknown\" only for an empty tensor, whose\n"
          "address need not be in any allocation.")
      .def_prop_ro(
          "device_id", [](const self& a) { return a.proof.device_id(); },
          "DLPack's id of the root device.")
      .def_prop_ro(
          "sycl_device", [](const self& a) { return to_dpctl(a.proof.device()); },
          nb::sig("def sycl_device(self) -> dpctl.SyclDevice"),
          "The device that the memory was allocated on.")
      .def_prop_ro(
          "root_device", [](const self& a) { return to_dpctl(a.proof.root_device()); },
          nb::sig("def root_device(self) -> dpctl.SyclDevice"),
          "The root device that `device_id` names.")
      .def_prop_ro(
          "sycl_context", [](const self& a) { return to_dpctl(a.proof.context()); },
          nb::sig("def sycl_context(self) -> dpctl.SyclContext"),
          "The default context of the root device's platform.")
      .def_prop_ro(
          "readonly", [](const self& a) { return a.readonly; },
          "Whether the producer forbids writing.")
      .def_prop_ro(
          "nbytes", [](const self& a) { return a.proof.structure().nbytes; },
          "Bytes from the lowest to the end of the highest element of the view.")
      .def_prop_ro(
          "overlapping", [](const self& a) { return !a.proof.structure().unique; },
          "Whether elements may overlap: the strides do not prove otherwise.")
      .def_prop_ro(
          "base", [](const self& a) { return a.proof.base(); },
          "Address of what `bounds` names: the allocation, or the driver's block; the lowest\n"
          "address of the view for \"chunk\"; 0 for \"both_ends\" and \"none\".")
      .def_prop_ro(
          "size", [](const self& a) { return a.proof.size(); },
          "Bytes of it; for \"chunk\" those up to the end of the chunk.")
      .def_prop_ro(
          "bounds", [](const self& a) { return name_of(a.proof.bounds_proved()); },
          "What the view is proved to lie in: \"allocation\" (exactly SYCL's allocation),\n"
          "\"chunk\" (one of SYCL's pool on Level Zero: the allocation, rounded up), \"block\"\n"
          "(the driver's, in which other allocations may be), \"both_ends\" (only its first\n"
          "and last byte were looked at: USM of one kind and device) or \"none\" (it is empty).")
      .def_prop_ro(
          "device_proof", [](const self& a) { return name_of(a.proof.device_proved()); },
          "How the device is known: \"backend\" (it named it), \"only_device\" (the\n"
          "context has no other), \"runtime\" (the SYCL query named it) or \"none\"\n"
          "(host USM, or no memory).")
      .def("__repr__", [](const self& a) {
        const nb::object made =
            nb::module_::import_("usm_dlpack._dtypes").attr("describe_proof")(nb::find(a));
        return nb::borrow<nb::str>(made);
      });
}

}  // namespace

const char* name_of(bounds_proof bounds) {
  switch (bounds) {
    case bounds_proof::allocation: return "allocation";
    case bounds_proof::chunk: return "chunk";
    case bounds_proof::block: return "block";
    case bounds_proof::both_ends: return "both_ends";
    case bounds_proof::none: break;
  }
  return "none";
}

const char* name_of(device_proof device) {
  switch (device) {
    case device_proof::backend: return "backend";
    case device_proof::only_device: return "only_device";
    case device_proof::runtime: return "runtime";
    case device_proof::none: break;
  }
  return "none";
}

void register_exchange(nb::module_& module) {
  register_allocation(module);
  module.def(
      "validate_array",
      [](nb::handle x, const std::vector<std::string>& usm_types,
         const std::optional<std::vector<std::string>>& backends, bool writable, bool unique,
         std::optional<std::tuple<int, int, int>> dtype, bool padded,
         std::optional<std::int32_t> ndim, std::optional<std::int32_t> device_id) {
        requirements wanted = to_requirements(usm_types, backends, writable, unique);
        wanted.ndim = ndim;
        wanted.device_id = device_id;
        if (dtype) {
          const auto [code, bits, lanes] = *dtype;
          wanted.dtype = to_dtype(code, bits, lanes);
        }
        return validate_array(x, wanted, padded);
      },
      nb::arg("x").none(), nb::arg("usm_types"), nb::arg("backends").none(),
      nb::arg("writable"), nb::arg("unique"), nb::arg("dtype").none(), nb::arg("padded"),
      nb::arg("ndim").none(), nb::arg("device_id").none());
  module.def("bounds_of", &bounds_of, nb::arg("x"),
             nb::sig("def bounds_of(x: DLPackTensor | UsmAllocation) -> "
                     "tuple[int, int, int, int, int]"));
  module.def("from_memory", &from_memory, nb::arg("owner"), nb::arg("origin"),
             nb::arg("object"), nb::arg("data"), nb::arg("shape"), nb::arg("strides").none(),
             nb::arg("code"), nb::arg("bits"), nb::arg("lanes"), nb::arg("flags"),
             nb::arg("place").none(), nb::arg("queue").none(),
             nb::sig("def from_memory(owner: typing.Any, origin: int, "
                     "object: tuple[int, int], data: int, "
                     "shape: collections.abc.Sequence[int], "
                     "strides: collections.abc.Sequence[int] | None, code: int, bits: int, "
                     "lanes: int, flags: int, place: typing.Any, "
                     "queue: typing.Any) -> DLPackTensor"));
  module.def(
      "write_compact",
      [](nb::handle_t<tensor> self, std::uintptr_t to) {
        check_process();
        write_compact(source_of(*nb::inst_ptr<tensor>(self)), reinterpret_cast<void*>(to));
      },
      nb::arg("self"), nb::arg("to"),
      nb::sig("def write_compact(self: DLPackTensor, to: int) -> None"));
  module.def(
      "check_device_type",
      [](std::int32_t device_type) {
        DLTensor described{};
        described.device.device_type = static_cast<DLDeviceType>(device_type);
        detail::check_device_type(described);
      },
      nb::arg("device_type"));
  module.def(
      "device_id",
      [](nb::handle device) {
        check_process();
        return device_id(to_device(device));
      },
      nb::arg("device").none(), nb::sig("def device_id(device: dpctl.SyclDevice) -> int"));
  module.def(
      "root_device",
      [](std::int32_t id) {
        check_process();
        return to_dpctl(root_device(id));
      },
      nb::arg("device_id"), nb::sig("def root_device(device_id: int) -> dpctl.SyclDevice"));
  module.def(
      "device_rows",
      [] {
        check_process();
        nb::list rows;
        const auto count = detail::device_table::get().devices.size();
        for (std::size_t id = 0; id < count; ++id) {
          rows.append(device_row(static_cast<std::int32_t>(id)));
        }
        return rows;
      },
      nb::sig("def device_rows() -> list[dict[str, typing.Any]]"));
}

}  // namespace usm_dlpack::python
