// SPDX-License-Identifier: Apache-2.0
//
// A query that fails answers with the text of its failure.
#include "diagnosis.hpp"

#include "python_objects.hpp"

#include <nanobind/stl/string.h>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>

namespace usm_dlpack::python {
namespace {

/// Runs a query, and stores the text of its failure in `answers[failure]`.
template <class Query>
void ask(nb::dict& answers, const char* failure, Query&& query) {
  try {
    query();
  } catch (const sycl::exception& error) {
    answers[failure] = error.what();
  } catch (const conversion_error& error) {
    answers[failure] = error.what();
  }
}

// --- devices and contexts

/// Describes a device; its id is that of its root, or None.
nb::dict device_answer(const sycl::device& device) {
  nb::dict answers;
  answers["device_id"] = nb::none();
  answers["sub_device"] = detail::device_table::get().find(device) < 0;
  answers["name"] = nb::none();
  ask(answers, "failure", [&] { answers["device_id"] = device_id(device); });
  ask(answers, "failure",
      [&] { answers["name"] = device.get_info<sycl::info::device::name>(); });
  return answers;
}

nb::dict context_answer(const sycl::context& context) {
  nb::dict answers;
  answers["default"] = detail::device_table::get().find(context) != nullptr;
  answers["platform"] = nb::none();
  nb::list devices;
  ask(answers, "failure", [&] {
    answers["platform"] = context.get_platform().get_info<sycl::info::platform::name>();
    for (const sycl::device& device : context.get_devices()) {
      devices.append(device_answer(device));
    }
  });
  answers["devices"] = devices;
  return answers;
}

/// Describes the default context of a root device's platform.
nb::dict default_context_answer(std::int32_t id) {
  check_process();
  nb::dict answers;
  answers["available"] = false;
  answers["device_ids"] = nb::list();
  ask(answers, "failure", [&] {
    nb::list ids;
    for (const sycl::device& device : default_context(id).get_devices()) {
      ids.append(device_id(device));
    }
    answers["device_ids"] = ids;
    answers["available"] = true;
  });
  return answers;
}

const char* partition_name(sycl::info::partition_property property) {
  switch (property) {
    case sycl::info::partition_property::partition_equally: return "equally";
    case sycl::info::partition_property::partition_by_counts: return "by counts";
    case sycl::info::partition_property::partition_by_affinity_domain:
      return "by affinity domain";
    default: return "otherwise";
  }
}

/// The largest number of sub-devices of a root device, and the kinds of partition.
nb::dict partition_answer(std::int32_t id) {
  check_process();
  nb::dict answers;
  nb::list rules;
  answers["most"] = 0;
  ask(answers, "failure", [&] {
    const sycl::device device = root_device(id);
    for (const auto property : device.get_info<sycl::info::device::partition_properties>()) {
      if (property != sycl::info::partition_property::no_partition) {
        rules.append(partition_name(property));
      }
    }
    if (nb::len(rules) != 0) {
      answers["most"] = device.get_info<sycl::info::device::partition_max_sub_devices>();
    }
  });
  answers["by"] = rules;
  return answers;
}

// --- a pointer

/// Queries SYCL about a pointer in a context.
nb::dict sycl_answer(const void* pointer, const sycl::context& context) {
  nb::dict answers;
  answers["kind"] = nb::none();
  ask(answers, "failure", [&] {
    const sycl::usm::alloc kind = sycl::get_pointer_type(pointer, context);
    answers["kind"] = to_string(kind);
    if (kind != sycl::usm::alloc::unknown) {
      answers["device"] = device_answer(sycl::get_pointer_device(pointer, context));
    }
  });
  return answers;
}

/// Queries each platform's default context about a pointer, in the order of the device ids.
nb::list ask_platforms(std::uintptr_t address) {
  check_process();
  nb::list rows;
  for (const detail::platform_entry& entry : detail::device_table::get().platforms) {
    nb::dict row;
    if (entry.context) {
      row = pointer_answer(address, *entry.context);
    } else {
      row["failure"] = "no default context";
      row["devices"] = nb::list();
    }
    row["backend"] = to_string(entry.platform.get_backend());
    row["first_device"] = entry.first_device;
    rows.append(row);
  }
  return rows;
}

/// Queries one context, named by Python code, about a pointer.
nb::dict ask_context(std::uintptr_t address, nb::handle place) {
  check_process();
  const sycl::context context = to_context(place);
  return pointer_answer(address, context);
}

}  // namespace

nb::dict pointer_answer(std::uintptr_t address, const sycl::context& context) {
  const void* pointer = reinterpret_cast<const void*>(address);
  nb::dict answers = context_answer(context);
  answers["sycl"] = sycl_answer(pointer, context);
  return answers;
}

void register_diagnosis(nb::module_& module) {
  module.def("ask_platforms", &ask_platforms, nb::arg("address"),
             nb::sig("def ask_platforms(address: int) -> list[dict[str, typing.Any]]"));
  module.def("ask_context", &ask_context, nb::arg("address"), nb::arg("place").none(),
             nb::sig("def ask_context(address: int, place: typing.Any) -> "
                     "dict[str, typing.Any]"));
  module.def("ask_default_context", &default_context_answer, nb::arg("device_id"),
             nb::sig("def ask_default_context(device_id: int) -> dict[str, typing.Any]"));
  module.def("ask_partition", &partition_answer, nb::arg("device_id"),
             nb::sig("def ask_partition(device_id: int) -> dict[str, typing.Any]"));
}

}  // namespace usm_dlpack::python
