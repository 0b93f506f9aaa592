// SPDX-License-Identifier: Apache-2.0
//
// Each question is put to the runtime or to the backend by itself, and not through the
// validator, so that an explanation shows what they say and not what was made of it. A
// question that fails has its failure for an answer.
#include "diagnosis.hpp"

#include "from_memory.hpp"
#include "process.hpp"
#include "python_objects.hpp"

#include <nanobind/stl/string.h>
#include <usm_dlpack/opencl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace usm_dlpack::python {
namespace {

/// Asks, and keeps the text of a failure in `answers[failure]`.
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

/// A device by the id of its root, as far as it has one.
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

/// The default context of the platform of a root device.
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

const char* name_of(sycl::info::partition_property property) {
  switch (property) {
    case sycl::info::partition_property::partition_equally: return "equally";
    case sycl::info::partition_property::partition_by_counts: return "by counts";
    case sycl::info::partition_property::partition_by_affinity_domain:
      return "by affinity domain";
    default: return "otherwise";
  }
}

/// Into how many sub-devices a root device parts, and by which rules.
nb::dict partition_answer(std::int32_t id) {
  check_process();
  nb::dict answers;
  nb::list rules;
  answers["most"] = 0;
  ask(answers, "failure", [&] {
    const sycl::device device = root_device(id);
    for (const auto property : device.get_info<sycl::info::device::partition_properties>()) {
      if (property != sycl::info::partition_property::no_partition) {
        rules.append(name_of(property));
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

/// What SYCL's own queries say of a pointer in a context.
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

void describe_by_opencl(nb::dict& answers, const void* pointer,
                        const detail::opencl_platform& native) {
  answers["query"] = "clGetMemAllocInfoINTEL";
  cl_unified_shared_memory_type_intel type = CL_MEM_TYPE_UNKNOWN_INTEL;
  cl_device_id device = nullptr;
  std::uintptr_t base = 0;
  std::size_t size = 0;
  const bool known = native.get(pointer, CL_MEM_ALLOC_TYPE_INTEL, type);
  answers["kind"] = to_string(known ? detail::kind_of(type) : sycl::usm::alloc::unknown);
  if (native.get(pointer, CL_MEM_ALLOC_DEVICE_INTEL, device) && device != nullptr) {
    const std::int32_t id = detail::root_id_of(native, device);
    answers["device_id"] = id < 0 ? nb::none() : nb::object(nb::int_(id));
    answers["sub_device"] = id < 0 || native.devices[static_cast<std::size_t>(id)] != device;
  }
  if (native.get_range(pointer, base, size)) {
    answers["base"] = base;
    answers["size"] = size;
  }
}

/// What the backend says of the same; empty where it is not asked.
nb::dict backend_answer(const void* pointer, const sycl::context& context) {
  nb::dict answers;
  ask(answers, "failure", [&] {
    const auto& platforms = detail::device_table::get().platforms;
    const sycl::platform platform = context.get_platform();
    const auto entry =
        std::find_if(platforms.begin(), platforms.end(),
                     [&](const auto& other) { return other.platform == platform; });
    if (entry == platforms.end() || !entry->context) {
      return;
    }
    if (entry->opencl.query != nullptr) {
      const opencl_handle<cl_context> handle = opencl_context(context);
      detail::opencl_platform same = entry->opencl;
      same.context = handle.get();
      describe_by_opencl(answers, pointer, same);
    }
    std::uintptr_t base = 0;
    std::size_t size = 0;
    if (entry->level_zero.query != nullptr && *entry->context == context) {
      answers["query"] = "zeMemGetAddressRange";
      if (entry->level_zero.get_range(pointer, base, size)) {
        answers["base"] = base;
        answers["size"] = size;
      }
    }
  });
  return answers;
}

nb::dict pointer_answer(std::uintptr_t address, const sycl::context& context) {
  const void* pointer = reinterpret_cast<const void*>(address);
  nb::dict answers = context_answer(context);
  answers["sycl"] = sycl_answer(pointer, context);
  answers["backend_answer"] = backend_answer(pointer, context);
  return answers;
}

/// What each platform's default context knows of a pointer, in the order of the device ids.
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

/// The same of one context, which Python code named.
nb::dict ask_context(std::uintptr_t address, nb::handle place) {
  check_process();
  const sycl::context context = to_context(resolve_syclobj(place));
  return pointer_answer(address, context);
}

/// The device that a queue works on.
nb::object ask_queue(nb::handle queue) {
  check_process();
  return find_queue(queue) == nullptr
             ? nb::none()
             : nb::object(device_answer(to_queue(queue).get_device()));
}

}  // namespace

void register_diagnosis(nb::module_& module) {
  module.def("ask_platforms", &ask_platforms, nb::arg("address"),
             nb::sig("def ask_platforms(address: int) -> list[dict[str, typing.Any]]"));
  module.def("ask_context", &ask_context, nb::arg("address"), nb::arg("place").none(),
             nb::sig("def ask_context(address: int, place: typing.Any) -> "
                     "dict[str, typing.Any]"));
  module.def("ask_queue", &ask_queue, nb::arg("queue").none(),
             nb::sig("def ask_queue(queue: typing.Any) -> dict[str, typing.Any] | None"));
  module.def("ask_default_context", &default_context_answer, nb::arg("device_id"),
             nb::sig("def ask_default_context(device_id: int) -> dict[str, typing.Any]"));
  module.def("ask_partition", &partition_answer, nb::arg("device_id"),
             nb::sig("def ask_partition(device_id: int) -> dict[str, typing.Any]"));
}

}  // namespace usm_dlpack::python
