// SPDX-License-Identifier: Apache-2.0
//
// What all tests here include: real USM that frees itself, views of it, and a tensor of it in
// which each test spoils one field.
#pragma once

#include <valid_tensor.hpp>

#include <usm_dlpack/opencl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdlib>
#include <deque>
#include <mutex>
#include <stdexcept>

namespace usm_dlpack_test {

using sycl::usm::alloc;

inline constexpr alloc usm_kinds[] = {alloc::host, alloc::device, alloc::shared};

/// The root devices; throws unless there are as many as the test process is to have.
inline std::vector<sycl::device> root_devices() {
  std::vector<sycl::device> devices = sycl::device::get_devices();
  const char* wanted = std::getenv("USM_DLPACK_TEST_DEVICES");
  const std::string count = std::to_string(devices.size());
  if (wanted == nullptr || wanted != count) {
    throw std::runtime_error("USM_DLPACK_TEST_DEVICES: expected the number of root devices, " +
                             count + ", found " + (wanted == nullptr ? "it unset" : wanted) +
                             "; run the tests with ctest");
  }
  return devices;
}

/// A queue on a root device, in its default context; kept for the life of the process: one
/// that is dropped right after its work may be destroyed by the work itself, on a thread of
/// the OpenCL CPU driver, which then waits for itself and runs nothing else. The OpenCL
/// adapter leaks in-order queues that are dropped.
inline sycl::queue queue_on(int device_id = 0, const sycl::property_list& properties = {}) {
  static std::mutex guard;
  static auto& kept = *new std::deque<sycl::queue>;
  const std::lock_guard<std::mutex> lock(guard);
  return kept.emplace_back(root_devices().at(static_cast<std::size_t>(device_id)), properties);
}

/// One sub-device for each compute unit of a root device.
inline std::vector<sycl::device> sub_devices(int device_id = 0) {
  constexpr auto equally = sycl::info::partition_property::partition_equally;
  return queue_on(device_id).get_device().create_sub_devices<equally>(1);
}

/// A part of a part of the first root device.
inline sycl::device nested_sub_device() {
  constexpr auto by_counts = sycl::info::partition_property::partition_by_counts;
  constexpr auto equally = sycl::info::partition_property::partition_equally;
  const std::vector<std::size_t> two_units{2};
  const auto parts = root_devices().at(0).create_sub_devices<by_counts>(two_units);
  return parts.at(0).create_sub_devices<equally>(1).at(1);
}

/// One USM allocation, freed at the latest when this goes.
class usm_memory {
 public:
  usm_memory(alloc kind, std::size_t size, const sycl::queue& queue)
      : usm_memory(kind, size, queue.get_device(), queue.get_context()) {}
  usm_memory(alloc kind, std::size_t size, const sycl::device& device,
             const sycl::context& context)
      : context_(context),
        address_(static_cast<std::byte*>(sycl::malloc(size, device, context, kind))) {
    if (address_ == nullptr) {
      throw std::runtime_error("the SYCL runtime had no memory to give");
    }
  }
  ~usm_memory() { free(); }
  usm_memory(const usm_memory&) = delete;
  usm_memory& operator=(const usm_memory&) = delete;

  /// The address, `offset` bytes on.
  std::byte* at(std::ptrdiff_t offset = 0) const noexcept {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(address_) + offset);
  }
  template <class Element>
  Element* as(std::ptrdiff_t offset = 0) const noexcept {
    return reinterpret_cast<Element*>(at(offset));
  }
  void free() {
    if (!freed_) {
      freed_ = true;
      sycl::free(address_, context_);
    }
  }

 private:
  sycl::context context_;
  std::byte* address_;
  bool freed_ = false;
};

/// Calls with what an export may be given beside a view: a context, its handle, and a queue
/// where OpenCL is the backend and answers.
template <class Act>
void with_each_given(const sycl::queue& queue, const Act& act) {
  act(queue.get_context());
  act(queue);
  if (detail::opencl_of(detail::device_table::get().platforms.at(0)) != nullptr &&
      queue.get_backend() == sycl::backend::opencl) {
    act(opencl_context(queue).get());
  }
}

/// The same, and with nothing.
template <class Act>
void with_each_place(const sycl::queue& queue, const Act& act) {
  with_each_given(queue, act);
  act();
}

template <class Element>
using row_view = md::mdspan<Element, md::dextents<std::int64_t, 1>>;

template <class Element>
row_view<Element> view_of(Element* elements, std::int64_t extent) {
  return row_view<Element>(elements, extent);
}

/// 16 floats of USM, and a view that fills it.
struct usm_floats : usm_memory {
  explicit usm_floats(alloc kind = alloc::device, const sycl::queue& queue = queue_on())
      : usm_memory(kind, 64, queue) {}

  row_view<float> view = view_of(as<float>(), 16);
};

inline std::uintptr_t as_number(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

/// How the backend proves the bounds of memory that is the driver's allocation as a whole, and
/// what a refusal says of them.
inline bounds_proof whole_bounds() {
  return root_devices().front().get_backend() == sycl::backend::ext_oneapi_level_zero
             ? bounds_proof::block
             : bounds_proof::allocation;
}
inline std::string within_whole(std::size_t bytes) {
  return "a view within the " + std::to_string(bytes) +
         (whole_bounds() == bounds_proof::block ? " bytes of the driver's block"
                                                : " bytes of its allocation");
}

inline void expect_bounds(const usm_allocation& proved, bounds_proof how, const void* base,
                          std::size_t size) {
  EXPECT_EQ(proved.bounds_proved(), how);
  EXPECT_EQ(proved.base(), as_number(base));
  EXPECT_EQ(proved.size(), size);
}

template <std::size_t Rank>
std::int32_t id_of(const dlpack_tensor<Rank>& exported) {
  return exported.get().device.device_id;
}

/// A valid tensor that fills its own USM: 4 by 6 elements of float32 in C order.
struct usm_tensor : valid_tensor {
  static constexpr std::size_t size = 96;

  usm_memory memory;

  explicit usm_tensor(alloc kind = alloc::device, const sycl::queue& queue = queue_on(),
                      std::int32_t device_id = 0)
      : memory(kind, size, queue) {
    shape = {4, 6};
    strides = {6, 1};
    tensor.data = memory.at();
    tensor.device = {kDLOneAPI, device_id};
  }
};

using usm_managed_tensor = foreign_tensor<DLManagedTensorVersioned, usm_tensor>;

using detail::device_table;

/// Changes the device table, for as long as this lives: stands for hardware that no CPU driver
/// shows (backends without queries, several root devices on one platform, memory of
/// sub-devices in a default context). The queries and their answers stay real.
class changed_table {
 public:
  template <class Change>
  explicit changed_table(const Change& change) : kept_(table()) {
    change(table());
  }
  ~changed_table() { table() = kept_; }
  changed_table(const changed_table&) = delete;
  changed_table& operator=(const changed_table&) = delete;

 private:
  // The table is made by a non-const `new`, so it may be written to.
  static device_table& table() { return const_cast<device_table&>(device_table::get()); }
  device_table kept_;
};

/// Changes the queries of a platform of OpenCL or Level Zero.
template <class Queries, class Change>
void change_queries(detail::platform_entry& platform, const Change& change) {
  auto changed = std::make_shared<Queries>(dynamic_cast<const Queries&>(*platform.queries));
  change(*changed);
  platform.queries = changed;
}

/// Backends without code here, or whose handles cannot be had: SYCL answers.
inline void silence_backends(device_table& table) {
  for (detail::platform_entry& platform : table.platforms) {
    platform.queries = std::make_shared<detail::backend_queries>(*platform.context);
  }
}

/// The first platform's device has the id 1, as if another root device stood before it.
inline void move_to_id_1(device_table& table) {
  auto& platform = table.platforms.at(0);
  change_queries<detail::opencl_queries>(
      platform, [](auto& queries) { queries.devices = {nullptr, queries.devices.at(0)}; });
  platform.device_count = 2;
}

}  // namespace usm_dlpack_test
