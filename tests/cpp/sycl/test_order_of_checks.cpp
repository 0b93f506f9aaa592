// SPDX-License-Identifier: Apache-2.0
//
// The lists of docs/checks.md for USM: of any two broken rules of `validate`, of the export
// protocol and of its form for OpenCL, the earlier is refused.
#include <rules_in_order.hpp>

#include "opencl_objects.hpp"

namespace test_order_of_checks {

using namespace usm_dlpack_test;

/// A managed tensor that fills its allocation, and what is required of it.
struct received_tensor : usm_managed_tensor {
  requirements wanted;
  std::optional<changed_table> moved;
  alignas(16) std::array<float, 24> on_stack{};
  DLTensor& tensor = managed.dl_tensor;
  std::array<std::int64_t, 2>& shape = valid.shape;
  std::array<std::int64_t, 2>& strides = valid.strides;

  received_tensor() { wanted.writable = true; }
};

constexpr breakable_rule<received_tensor> header_rules[] = {
    {errc::version_unsupported, "version.major",
     [](received_tensor& r) { r.managed.version.major = 2; }, "1", "2"},
    {errc::version_unsupported, "flags", [](received_tensor& r) { r.managed.flags |= 8; },
     "bits of DLPACK_FLAG_BITMASK_* only", "8"},
    {errc::read_only, "flags", [](received_tensor& r) { r.managed.flags |= 1; },
     "writable memory", "read-only memory"},
    {errc::device_type_unsupported, "device.device_type",
     [](received_tensor& r) { r.tensor.device.device_type = kDLCUDA; },
     "kDLOneAPI (14), or CUDA memory of a GPU that is a SYCL device of this process",
     "kDLCUDA (2) of CUDA device 0, which is none"},
};

constexpr breakable_rule<received_tensor> import_rules[] = {
    {errc::dtype_mismatch, "dtype",
     [](received_tensor& r) { r.wanted.dtype = DLDataType{kDLInt, 32, 1}; },
     "int32, as asked for", "float32"},
    {errc::shape_mismatch, "ndim", [](received_tensor& r) { r.wanted.ndim = 3; },
     "3, as asked for", "2"},
    {errc::overlapping, "strides",
     [](received_tensor& r) { r.wanted.unique = true, r.strides[0] = 0; },
     "elements that do not overlap", "strides that do not prove it"},
    {errc::device_not_accepted, "device.device_id",
     [](received_tensor& r) { r.wanted.device_id = 5; }, "5, as asked for", "0"},
    {errc::no_device, "device.device_id",
     [](received_tensor& r) { r.tensor.device.device_id = 7; },
     "from 0 to 1 (root devices in this process)", "7"},
    {errc::device_not_accepted, "device.device_id",
     [](received_tensor& r) { r.wanted.backends = {sycl::backend::ext_oneapi_cuda}; },
     "a device of the backend cuda"},
    {errc::pointer_unknown, "data",
     [](received_tensor& r) { r.tensor.data = r.on_stack.data(); },
     "USM of the default context of device 0", "an allocation unknown to it"},
    {errc::usm_type_not_accepted, "data",
     [](received_tensor& r) { r.wanted.usm_types = {alloc::host}; }, "host USM", "device USM"},
    {errc::device_mismatch, "device.device_id",
     [](received_tensor& r) { r.moved.emplace(move_to_id_1); },
     "1 (the root device of the memory)", "0"},
    {errc::out_of_bounds, "shape", [](received_tensor& r) { r.shape[0] = 5; }},
};

TEST(TwoDevicesOrderOfChecks, OfTwoBrokenRulesOfValidateTheEarlierIsRefused) {
  expect_order([](const received_tensor& r) { validate(r.managed, r.wanted); }, header_rules,
               structure_rules<received_tensor>, import_rules);
}

/// A view of USM whose type says that it is device USM, and the queue that it is exported
/// with.
struct exported_view {
  using accessor = usm_accessor<alloc::device, odd::plain_accessor<float>>;

  sycl::queue queue = queue_on();
  std::optional<usm_memory> memory;
  std::optional<changed_table> moved;  // made before `hidden`, whose rule is an earlier one
  std::optional<changed_table> hidden;
  std::array<float, 4> on_stack{};
  alloc kind = alloc::device;
  breakable_view<float, accessor> view;

  exported_view() { allocate(); }
  void allocate() {
    memory.emplace(kind, 64, queue);
    view.handle = memory->as<float>();
  }
};

/// The first root device has no id: stands for one that ONEAPI_DEVICE_SELECTOR hides, which
/// only a process of its own shows (test_opencl_interop.cpp).
void hide_device(exported_view& e) {
  e.hidden.emplace([](device_table& table) {
    table.devices[0] = table.devices[1];
    change_queries<detail::opencl_queries>(table.platforms[0],
                                           [](auto& queries) { queries.devices.clear(); });
  });
}

void point_to_stack(exported_view& e) { e.view.handle = e.on_stack.data(); }

void use_own_context(exported_view& e) {
  const sycl::device device = e.queue.get_device();
  e.queue = sycl::queue(sycl::context(device), device);
  e.allocate();
}

void use_shared_usm(exported_view& e) {
  e.kind = alloc::shared;
  e.allocate();
}

constexpr breakable_rule<exported_view> export_rules[] = {
    {errc::device_without_id, "device", hide_device,
     "a device whose root is in sycl::device::get_devices()", "one that is not"},
    {errc::pointer_unknown, "data", point_to_stack, "USM of the given context",
     "an allocation unknown to it"},
    {errc::context_not_default, "context", use_own_context},
    {errc::usm_type_not_accepted, "data", use_shared_usm,
     "device USM, as the type of the view says", "shared USM"},
    {errc::device_mismatch, "queue", [](exported_view& e) { e.moved.emplace(move_to_id_1); },
     "a queue on device 1, where the memory is", "one on device 0"},
};

TEST(TwoDevicesOrderOfChecks, OfTwoBrokenRulesOfTheExportProtocolTheEarlierIsRefused) {
  expect_order([](const exported_view& e) { return to_dlpack_tensor(e.view, e.queue); },
               view_rules<exported_view>, export_rules);
}

}  // namespace test_order_of_checks
