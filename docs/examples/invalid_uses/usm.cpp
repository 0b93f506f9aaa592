// SPDX-License-Identifier: Apache-2.0
//
// Invalid uses of the part of the library that asks the SYCL runtime: memory that is not where
// it is said to be. Called with `two_devices`, the uses that need as many root devices.
#include "print_refusals.hpp"

#include <mdspan/mdspan.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace {

using extents = Kokkos::dextents<std::int64_t, 1>;
using vector = Kokkos::mdspan<float, extents>;
using usm_dlpack::to_dlpack_tensor;
using usm_dlpack::validate;

// USM of a queue, for as long as it lives.
struct memory_of {
  sycl::queue queue;
  float* elements;
  explicit memory_of(const sycl::queue& by)
      : queue(by), elements(sycl::malloc_device<float>(12, queue)) {}
  ~memory_of() { sycl::free(elements, queue); }
  vector view() const { return vector(elements, 12); }
};

sycl::queue queue_on(std::int32_t device_id) {
  return sycl::queue(usm_dlpack::root_device(device_id));
}

// --- Export -------------------------------------------------------------------------------

const use view_of_no_platforms_usm("view_of_no_platforms_usm", [] {
  std::array<float, 12> elements{};
  const vector view(elements.data(), 12);
  static_cast<void>(to_dlpack_tensor(view));
});

const use view_of_a_failed_allocation("view_of_a_failed_allocation", [] {
  sycl::queue queue;
  float* elements = sycl::malloc_device<float>(std::size_t{1} << 60, queue);  // null
  static_cast<void>(to_dlpack_tensor(vector(elements, 12), queue));
});

const use shared_view_of_device_usm("shared_view_of_device_usm", [] {
  const memory_of memory{sycl::queue()};  // device USM
  const usm_dlpack::shared_mdspan<vector> view(memory.elements, 12);
  static_cast<void>(to_dlpack_tensor(view, memory.queue));
});

const use array_of_no_kind("array_of_no_kind", [] {
  const sycl::queue queue;
  const usm_dlpack::usm_array<vector> array(queue, extents(12), sycl::usm::alloc::unknown);
});

const use array_larger_than_memory("array_larger_than_memory", [] {
  const sycl::queue queue;
  const usm_dlpack::usm_array<vector> array(queue, extents(std::int64_t{1} << 58));
});

const use array_beyond_all_addresses("array_beyond_all_addresses", [] {
  const sycl::queue queue;
  const usm_dlpack::usm_array<vector> array(queue, extents(std::int64_t{1} << 62));
});

// --- Import -------------------------------------------------------------------------------

const use tensor_of_the_stack("tensor_of_the_stack", [] {
  std::array<float, 12> elements{};
  const auto wrapper = to_dlpack_tensor(vector(elements.data(), 12), DLDevice{kDLOneAPI, 0});
  validate(wrapper.get());
});

const use tensor_larger_than_its_memory("tensor_larger_than_its_memory", [] {
  const memory_of memory{queue_on(0)};  // of 12 elements
  const vector view(memory.elements, 1 << 20);
  const auto wrapper = to_dlpack_tensor(view, memory.queue);  // takes the caller's word
  validate(wrapper.get());
});

// --- With two root devices ----------------------------------------------------------------

const in_process two("two_devices");

const use tensor_with_the_id_of_another_device("tensor_with_the_id_of_another_device", [] {
  const memory_of memory{queue_on(0)};
  const auto wrapper = to_dlpack_tensor(memory.view(), DLDevice{kDLOneAPI, 1});
  validate(wrapper.get());
});

}  // namespace
