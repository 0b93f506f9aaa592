// SPDX-License-Identifier: Apache-2.0
//
// Root devices and their ids, for Python. Which id a device has is decided in
// sycl/devices.hpp.
#include "arguments/dtypes.hpp"
#include "arguments/places.hpp"
#include "module.hpp"

#include <nanobind/stl/string.h>

namespace usm_dlpack::python {
namespace {

/// The root devices, for `python -m usm_dlpack`.
nb::list device_rows() {
  check_process();
  nb::list rows;
  for (const detail::device_entry& entry : detail::device_table::get().devices) {
    nb::dict row;
    row["device_id"] = nb::len(rows);
    row["failure"] =
        entry.failure.empty() ? nb::none() : nb::object(nb::str(entry.failure.c_str()));
    row["sycl_device"] = to_dpctl(entry.device);
    rows.append(row);
  }
  return rows;
}

}  // namespace

void register_devices(guarded_module& module) {
  module.def("dtype_name", [](std::uint8_t code, std::uint8_t bits, std::uint16_t lanes) {
    return dtype_name({code, bits, lanes});
  });
  module.def(
      "device_id",
      [](nb::handle place) {
        check_process();
        const std::int32_t id = read_place(place).device_id;
        if (static_cast<std::size_t>(id) >= detail::device_table::get().devices.size()) {
          static_cast<void>(root_device(id));  // refuses
        }
        return id;
      },
      nb::arg("place").none(), nb::sig("def device_id(place: typing.Any) -> int"));
  module.def(
      "root_device",
      [](nb::handle id) {
        const std::int64_t number = read_integer("device_id", id);
        if (number < INT32_MIN || number > INT32_MAX) {
          detail::refuse(errc::no_device, "device.device_id", "an int32_t", text_of(id),
                         "pass an id of usm_dlpack.device_id");
        }
        check_process();
        return to_dpctl(root_device(static_cast<std::int32_t>(number)));
      },
      nb::arg("device_id").none(), nb::sig("def root_device(device_id: int) -> SyclDevice"));
  module.def("device_rows", &device_rows,
             nb::sig("def device_rows() -> list[dict[str, typing.Any]]"));
}

}  // namespace usm_dlpack::python
