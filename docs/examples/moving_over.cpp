// SPDX-License-Identifier: Apache-2.0
//
// The C++ of docs/how-to/moving_over.md, before and after, and of docs/how-to/pybind11.md, as
// a pybind11 extension. A test of test_guide_examples.py builds and calls it.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/pybind11.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "torch_stand_in.hpp"

namespace py = pybind11;

namespace {

// The kernel that the code has already, whatever compiled it.
const usm_dlpack::kernel_source kernels(R"(
  #include <sycl/sycl.hpp>
  namespace experimental = sycl::ext::oneapi::experimental;
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<1>))
  void scale(float* x, float factor) {
    x[sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_id(0)] *= factor;
  }
)");

sycl::event submit_scale(sycl::queue& queue, float* x, std::int64_t size, float factor) {
  const sycl::kernel kernel = kernels.find(queue, "scale");
  return queue.submit([&](sycl::handler& handler) {
    handler.set_args(x, factor);
    handler.parallel_for(sycl::range<1>(static_cast<std::size_t>(size)), kernel);
  });
}

namespace before {

void scale(const py::object& x, float factor) {
  const py::dict interface = x.attr("__sycl_usm_array_interface__");
  if (interface["typestr"].cast<std::string>() != "<f4") {
    throw py::type_error("x: expected float32");
  }
  const auto shape = interface["shape"].cast<std::vector<std::int64_t>>();
  if (shape.size() != 1) {
    throw py::value_error("x: expected one dimension");
  }
  const py::object strides = interface.attr("get")("strides");
  if (!strides.is_none() && strides.cast<std::vector<std::int64_t>>()[0] != 1) {
    throw py::value_error("x: expected no gaps");
  }
  const auto [address, read_only] = interface["data"].cast<std::pair<std::uintptr_t, bool>>();
  if (read_only) {
    throw py::value_error("x: expected a writable array");
  }
  const auto offset = interface.attr("get")("offset", 0).cast<std::int64_t>();
  float* first = reinterpret_cast<float*>(address) + offset;
  const py::capsule capsule = interface["syclobj"].attr("_get_capsule")();
  if (std::strcmp(capsule.name(), "SyclQueueRef") != 0) {
    throw py::type_error("x: expected a queue");  // it may also be a context or a string
  }
  sycl::queue queue = *capsule.get_pointer<sycl::queue>();
  if (sycl::get_pointer_type(first, queue.get_context()) != sycl::usm::alloc::device) {
    throw py::value_error("x: expected device USM");
  }
  submit_scale(queue, first, shape[0], factor).wait();
}

class field {
 public:
  field(const sycl::queue& queue, std::int64_t size)
      : queue_(queue), size_(size), data_(sycl::malloc_device<float>(size, queue_)) {}
  ~field() {
    queue_.wait();
    sycl::free(data_, queue_);
  }
  field(const field&) = delete;
  field& operator=(const field&) = delete;

  py::array_t<float> values() {  // a copy on the host
    py::array_t<float> copy(size_);
    queue_.copy(data_, copy.mutable_data(), size_).wait();
    return copy;
  }

 protected:
  sycl::queue queue_;
  std::int64_t size_;
  float* data_;
};

struct exported_field : field {
  using field::field;

  py::capsule dlpack(const py::object& self) {  // __dlpack__
    struct state {
      std::int64_t shape;
      py::object owner;
    };
    auto* kept = new state{size_, self};
    const auto devices = sycl::device::get_devices();
    const auto found = std::find(devices.begin(), devices.end(), queue_.get_device());
    const auto id = static_cast<std::int32_t>(found - devices.begin());
    auto* tensor = new DLManagedTensor{};
    tensor->dl_tensor = {data_,        {kDLOneAPI, id}, 1, {kDLFloat, 32, 1},
                         &kept->shape, nullptr,         0};
    tensor->manager_ctx = kept;
    tensor->deleter = [](DLManagedTensor* tensor) {
      const py::gil_scoped_acquire lock;
      delete static_cast<state*>(tensor->manager_ctx);
      delete tensor;
    };
    return py::capsule(tensor, "dltensor", [](PyObject* capsule) {
      if (PyCapsule_IsValid(capsule, "dltensor") != 0) {
        auto* tensor =
            static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
        tensor->deleter(tensor);
      }
    });
  }
};

}  // namespace before

namespace after {

using row = Kokkos::mdspan<float, Kokkos::dextents<std::int64_t, 1>>;
using vector = usm_dlpack::device_mdspan<row>;
using extents = row::extents_type;

void scale(const usm_dlpack::owned_view<vector>& x, float factor) {
  sycl::queue queue = x.queue();
  usm_dlpack::ordered_section work(queue, x);
  submit_scale(queue, x.view().data_handle(), x.view().extent(0), factor);
}

struct field {
  py::object values;  // a DLPackTensor, which has the queues of consumers

  field(const sycl::queue& queue, std::int64_t size)
      : values(py::cast(usm_dlpack::usm_array<vector>(queue, extents(size)))) {}

  void scale(float factor) const {
    const auto x = py::cast<usm_dlpack::owned_view<vector>>(values);  // waits for these queues
    after::scale(x, factor);
  }
};

void add_field(py::module_& m) {
  py::class_<field>(m, "Field")
      .def(py::init<const sycl::queue&, std::int64_t>())
      .def("scale", &field::scale)
      .def_readonly("values", &field::values)
      .def("__dlpack__",
           [](const field& self, const py::kwargs& keywords) -> py::object {
             return self.values.attr("__dlpack__")(**keywords);
           })
      .def("__dlpack_device__",
           [](const field& self) -> py::object {
             return self.values.attr("__dlpack_device__")();
           })
      .def_property_readonly(
          "sycl_queue",
          [](const field& self) -> py::object { return self.values.attr("sycl_queue"); })
      .def_property_readonly("__sycl_usm_array_interface__",
                             [](const field& self) -> py::object {
                               return self.values.attr("__sycl_usm_array_interface__");
                             });
}

class grid {
 public:
  grid(const sycl::queue& queue, std::int64_t size) : values_(queue, extents(size)) {}

  static usm_dlpack::owned_view<vector> values(const py::object& self) {
    const auto& values = py::cast<const grid&>(self).values_;
    return {values.view(), values.queue(), self};
  }

 private:
  usm_dlpack::usm_array<vector> values_;
};

void scale_(const at::Tensor& x, double factor) {
  const usm_dlpack::managed_tensor tensor(at::toDLPackVersioned(x));  // calls its deleter
  const auto view = usm_dlpack::to_mdspan<vector>(*tensor);           // proved
  sycl::queue& queue = c10::xpu::getCurrentXPUStream().queue();
  usm_dlpack::check_queue(queue, view);
  submit_scale(queue, view.data_handle(), view.extent(0), static_cast<float>(factor));
}  // no wait: the queue is in order, and PyTorch keeps the memory until its work is done

}  // namespace after

}  // namespace

PYBIND11_MODULE(moving_over, m) {
  usm_dlpack::load_package();
  py::module_ old = m.def_submodule("before");
  old.def("scale", &before::scale);
  py::class_<before::exported_field>(old, "Field")
      .def(py::init<const sycl::queue&, std::int64_t>())
      .def_property_readonly("values", &before::exported_field::values)
      .def("__dlpack__", [](const py::object& self) {
        return self.cast<before::exported_field&>().dlpack(self);
      });
  py::module_ now = m.def_submodule("after");
  now.def("scale", &after::scale);
  after::add_field(now);
  py::class_<after::grid>(now, "Grid")
      .def(py::init<const sycl::queue&, std::int64_t>())
      .def_property_readonly("values", &after::grid::values);
  now.def("scale_of_pytorch", [](const usm_dlpack::owned_view<after::vector>& x,
                                 double factor) {
    const DLDevice device = usm_dlpack::to_dlpack_tensor(x.view(), x.queue()).device();
    after::scale_(
        {[&] { return usm_dlpack::to_managed_tensor(x.view(), device, x.queue()).release(); }},
        factor);
    c10::xpu::getCurrentXPUStream().queue().wait();
  });
}
