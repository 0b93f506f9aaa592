// SPDX-License-Identifier: Apache-2.0
//
// The program of docs/how-to/cmake.md: prints how many root devices there are.
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdio>
#include <sycl/sycl.hpp>

int main() {
  const auto devices = sycl::device::get_devices();
  for (const sycl::device& device : devices) {
    std::printf("device %d\n", usm_dlpack::device_id(device));
  }
  return devices.empty() ? 1 : 0;
}
