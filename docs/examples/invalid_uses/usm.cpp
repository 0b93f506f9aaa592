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
#include <string>

namespace {

using extents = Kokkos::dextents<std::int64_t, 1>;
using vector = Kokkos::mdspan<float, extents>;
using usm_dlpack::to_dlpack_tensor;
using usm_dlpack::validate;

// [begin memory_of]
// USM of a queue, for as long as it lives.
struct memory_of {
  sycl::queue queue;
  float* elements;
  explicit memory_of(const sycl::queue& by)
      : queue(by), elements(sycl::malloc_device<float>(12, queue)) {}
  ~memory_of() { sycl::free(elements, queue); }
  vector view() const { return vector(elements, 12); }
};
// [end memory_of]

sycl::queue queue_on(std::int32_t device_id) {
  return sycl::queue(usm_dlpack::root_device(device_id));
}

// --- Export -------------------------------------------------------------------------------

void view_of_the_stack() {
  // [begin view_of_the_stack]
  std::array<float, 12> elements{};
  const vector view(elements.data(), 12);
  static_cast<void>(to_dlpack_tensor(view, sycl::queue()));
  // [end view_of_the_stack]
}

void view_of_no_platforms_usm() {
  // [begin view_of_no_platforms_usm]
  std::array<float, 12> elements{};
  const vector view(elements.data(), 12);
  static_cast<void>(to_dlpack_tensor(view));
  // [end view_of_no_platforms_usm]
}

void view_of_a_failed_allocation() {
  // [begin view_of_a_failed_allocation]
  sycl::queue queue;
  float* elements = sycl::malloc_device<float>(std::size_t{1} << 60, queue);  // null
  static_cast<void>(to_dlpack_tensor(vector(elements, 12), queue));
  // [end view_of_a_failed_allocation]
}

void context_of_ones_own() {
  // [begin context_of_ones_own]
  const sycl::device device = usm_dlpack::root_device(0);
  const memory_of memory{sycl::queue(sycl::context(device), device)};
  static_cast<void>(to_dlpack_tensor(memory.view(), memory.queue));
  // [end context_of_ones_own]
}

void queue_of_another_context() {
  // [begin queue_of_another_context]
  const sycl::device device = usm_dlpack::root_device(0);
  const memory_of memory{sycl::queue(device)};
  const sycl::queue queue(sycl::context(device), device);
  usm_dlpack::check_queue(queue, memory.view());
  // [end queue_of_another_context]
}

void shared_view_of_device_usm() {
  // [begin shared_view_of_device_usm]
  const memory_of memory{sycl::queue()};  // device USM
  const usm_dlpack::shared_mdspan<vector> view(memory.elements, 12);
  static_cast<void>(to_dlpack_tensor(view, memory.queue));
  // [end shared_view_of_device_usm]
}

void array_of_no_kind() {
  // [begin array_of_no_kind]
  const sycl::queue queue;
  const usm_dlpack::usm_array<vector> array(queue, extents(12), sycl::usm::alloc::unknown);
  // [end array_of_no_kind]
}

void array_larger_than_memory() {
  // [begin array_larger_than_memory]
  const sycl::queue queue;
  const usm_dlpack::usm_array<vector> array(queue, extents(std::int64_t{1} << 58));
  // [end array_larger_than_memory]
}

void array_beyond_all_addresses() {
  // [begin array_beyond_all_addresses]
  const sycl::queue queue;
  const usm_dlpack::usm_array<vector> array(queue, extents(std::int64_t{1} << 62));
  // [end array_beyond_all_addresses]
}

// --- Import -------------------------------------------------------------------------------

void tensor_of_the_stack() {
  // [begin tensor_of_the_stack]
  std::array<float, 12> elements{};
  const auto wrapper = to_dlpack_tensor(vector(elements.data(), 12), DLDevice{kDLOneAPI, 0});
  validate(wrapper.get());
  // [end tensor_of_the_stack]
}

void tensor_larger_than_its_memory() {
  // [begin tensor_larger_than_its_memory]
  const memory_of memory{queue_on(0)};  // of 12 elements
  const vector view(memory.elements, 1 << 20);
  const auto wrapper = to_dlpack_tensor(view, memory.queue);  // takes the caller's word
  validate(wrapper.get());
  // [end tensor_larger_than_its_memory]
}

void tensor_of_another_device_type() {
  // [begin tensor_of_another_device_type]
  std::array<float, 12> elements{};
  const auto wrapper = to_dlpack_tensor(vector(elements.data(), 12), DLDevice{kDLCUDA, 0});
  validate(wrapper.get());
  // [end tensor_of_another_device_type]
}

// --- With two root devices ----------------------------------------------------------------

void tensor_with_the_id_of_another_device() {
  // [begin tensor_with_the_id_of_another_device]
  const memory_of memory{queue_on(0)};
  const auto wrapper = to_dlpack_tensor(memory.view(), DLDevice{kDLOneAPI, 1});
  validate(wrapper.get());
  // [end tensor_with_the_id_of_another_device]
}

void queue_on_another_device() {
  // [begin queue_on_another_device]
  const memory_of memory{queue_on(0)};
  static_cast<void>(to_dlpack_tensor(memory.view(), queue_on(1)));
  // [end queue_on_another_device]
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2 && std::string(arguments[1]) == "two_devices") {
    return print_refusals({
        {"tensor_with_the_id_of_another_device", tensor_with_the_id_of_another_device},
        {"queue_on_another_device", queue_on_another_device},
    });
  }
  return print_refusals({
      {"view_of_the_stack", view_of_the_stack},
      {"view_of_no_platforms_usm", view_of_no_platforms_usm},
      {"view_of_a_failed_allocation", view_of_a_failed_allocation},
      {"context_of_ones_own", context_of_ones_own},
      {"queue_of_another_context", queue_of_another_context},
      {"shared_view_of_device_usm", shared_view_of_device_usm},
      {"array_of_no_kind", array_of_no_kind},
      {"array_larger_than_memory", array_larger_than_memory},
      {"array_beyond_all_addresses", array_beyond_all_addresses},
      {"tensor_of_the_stack", tensor_of_the_stack},
      {"tensor_larger_than_its_memory", tensor_larger_than_its_memory},
      {"tensor_of_another_device_type", tensor_of_another_device_type},
  });
}
