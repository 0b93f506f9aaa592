// SPDX-License-Identifier: Apache-2.0
//
// oneDNN's primitives on arrays of any library, called from Python: arrays become memory
// objects without a copy, and results a usm_dlpack.DLPackTensor.
//
// Each function runs on the queue that is passed, or else on the array's own, behind what the
// queues of its arrays have so far. Nobody waits: a result keeps the arrays, and knows its
// queue.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <mdspan/mdspan.hpp>
#include <onednn_dlpack/sycl.hpp>
#include <usm_dlpack/nanobind.hpp>

#include <algorithm>
#include <list>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

namespace nb = nanobind;
using namespace nb::literals;
using dnnl::memory;

namespace {

/// Where primitives run.
struct place {
  sycl::queue of;     ///< the queue that was passed
  sycl::queue queue;  ///< the same, or an in-order queue that is made for it
  dnnl::engine engine;
  dnnl::stream stream;
};

/// The place of a queue, kept for the life of the process: work of a CPU engine refers to its
/// stream, and a queue must not be destroyed before its work is done.
///
/// A primitive of a CPU engine is a host task. In an out-of-order queue DPC++ 2026.2 lets
/// `queue::memcpy` overtake a barrier behind it, so results are made on an in-order queue.
const place& place_of(const sycl::queue& queue) {
  static auto& mutex = *new std::mutex;
  static auto& places = *new std::list<place>;
  const std::lock_guard lock(mutex);
  for (const place& known : places) {
    if (known.of == queue) {
      return known;
    }
  }
  const sycl::queue used = queue.is_in_order()
                               ? queue
                               : sycl::queue(queue.get_context(), queue.get_device(),
                                             sycl::property::queue::in_order());
  dnnl::engine engine = onednn_dlpack::make_engine(usm_dlpack::device_id(queue.get_device()));
  dnnl::stream stream = onednn_dlpack::make_stream(engine, used);
  return places.emplace_back(place{queue, used, std::move(engine), std::move(stream)});
}

/// An array of any library as a usm_dlpack.DLPackTensor.
nb::object import(nb::handle array) {
  return nb::module_::import_("usm_dlpack").attr("from_dlpack")(array);
}

/// The place of the queue that was passed, or of that of the tensor.
const place& place_of(const sycl::queue* queue, const nb::object& tensor) {
  if (queue != nullptr) {
    return place_of(*queue);
  }
  const nb::object found = tensor.attr("sycl_queue");
  if (found.is_none()) {
    throw std::invalid_argument(
        "queue: expected one for an array without sycl_queue, found None; pass it");
  }
  return place_of(nb::cast<sycl::queue>(found));
}

/// A tensor, and the memory object over it, which does not keep it.
struct argument {
  usm_dlpack::managed_tensor tensor;
  dnnl::memory memory;
};

/// Takes a tensor; the place's queue is ordered behind the tensor's.
argument take(const nb::object& tensor, const place& where) {
  const nb::object capsule = tensor.attr("__dlpack__")("stream"_a = nb::cast(where.queue),
                                                       "max_version"_a = nb::make_tuple(1, 3));
  void* held = PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned");
  if (held == nullptr || PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned") != 0) {
    throw nb::python_error();
  }
  usm_dlpack::managed_tensor managed(static_cast<DLManagedTensorVersioned*>(held));
  memory made = onednn_dlpack::make_memory(*managed, where.engine);
  return {std::move(managed), std::move(made)};
}

/// A new array in device USM, in C order.
class result {
 public:
  result(const place& where, const memory::dims& shape, memory::data_type type)
      : desc_(compact(shape, type)),
        bytes_(where.queue,
               Kokkos::dextents<std::int64_t, 1>(std::max<std::int64_t>(desc_.get_size(), 1))),
        memory_(dnnl::sycl_interop::make_memory(
            desc_, where.engine, dnnl::sycl_interop::memory_kind::usm, bytes_.data())) {}

  const dnnl::memory& memory() const noexcept { return memory_; }
  std::size_t size() const { return desc_.get_size(); }

  /// Gives it to Python, with what its work reads; it is freed after the queue's work.
  template <class... Kept>
  nb::object to_python(Kept&&... kept) && {
    const onednn_dlpack::description said = onednn_dlpack::describe(desc_);
    return nb::module_::import_("usm_dlpack")
        .attr("to_dlpack_tensor")(
            usm_dlpack::owned_view<view>(std::move(bytes_), std::forward<Kept>(kept)...),
            "shape"_a = nb::tuple(nb::cast(said.shape)),
            "dtype"_a = nb::make_tuple(said.dtype.code, said.dtype.bits, said.dtype.lanes));
  }

 private:
  using view = usm_dlpack::device_mdspan<
      Kokkos::mdspan<std::uint8_t, Kokkos::dextents<std::int64_t, 1>>>;

  static memory::desc compact(const memory::dims& shape, memory::data_type type) {
    memory::dims strides(shape.size());
    std::int64_t step = 1;
    for (std::size_t r = shape.size(); r-- > 0;) {
      strides[r] = step;
      step = onednn_dlpack::detail::step_over(step, shape[r], r);
    }
    return {shape, type, strides};
  }

  memory::desc desc_;
  usm_dlpack::usm_array<view> bytes_;
  dnnl::memory memory_;
};

/// Runs a primitive without the GIL: the runtime may wait in it for the work of another queue.
template <class Make>
void run(const char* name, const place& where, const Make& make,
         const std::unordered_map<int, dnnl::memory>& memories) {
  const nb::gil_scoped_release unlocked;
  onednn_dlpack::detail::ask_onednn(
      name, "dtypes, shapes and strides that oneDNN implements together on this device",
      "reorder to a compact float32 array first",
      [&] { return dnnl::sycl_interop::execute(make(), where.stream, memories); });
}

nb::object matmul(nb::handle left, nb::handle right, const sycl::queue* queue) {
  const nb::object first = import(left), second = import(right);
  const place& where = place_of(queue, first);
  argument a = take(first, where), b = take(second, where);
  const memory::desc x = a.memory.get_desc(), y = b.memory.get_desc();
  const memory::dims shape = x.get_dims(), other = y.get_dims();
  if (shape.size() != 2 || other.size() != 2 || shape[1] != other[0]) {
    throw std::invalid_argument(
        "b: expected the shape (k, n) for the shape (m, k) of a, found another; "
        "reshape the arrays");
  }
  result made(where, {shape[0], other[1]}, x.get_data_type());
  if (shape[1] == 0) {  // oneDNN would write nothing
    sycl::queue(where.queue).memset(made.memory().get_data_handle(), 0, made.size());
  } else {
    run("matmul", where,
        [&] { return dnnl::matmul({where.engine, x, y, made.memory().get_desc()}); },
        {{DNNL_ARG_SRC, a.memory},
         {DNNL_ARG_WEIGHTS, b.memory},
         {DNNL_ARG_DST, made.memory()}});
  }
  return std::move(made).to_python(std::move(a.tensor), std::move(b.tensor));
}

/// Refuses dtypes that oneDNN 3.11 reorders wrongly on a CPU, and does not say so.
void check_reordered(const char* field, memory::data_type type) {
  using known = memory::data_type;
  if (type == known::s4 || type == known::u4 || type == known::f4_e2m1 ||
      type == known::e8m0) {
    onednn_dlpack::detail::refuse(
        usm_dlpack::errc::request_unsupported, field, "a dtype that oneDNN reorders reliably",
        usm_dlpack::to_string(onednn_dlpack::to_dlpack_dtype(type)), "use a wider dtype");
  }
}

/// oneDNN's data type of a name of `usm_dlpack.DLPackTensor.dtype`.
memory::data_type data_type_of(const std::string& name) {
  for (const auto& row : onednn_dlpack::detail::dtype_rows) {
    const std::string printed = usm_dlpack::to_string(row.dlpack);
    if (printed.substr(0, printed.find(' ')) == name) {
      return row.onednn;
    }
  }
  onednn_dlpack::detail::refuse(usm_dlpack::errc::dtype_unsupported, "dtype",
                                "the name of a data type of oneDNN", "\"" + name + "\"",
                                "pass for example \"float32\" or \"bfloat16\"");
}

nb::object reorder(nb::handle array, const std::optional<std::string>& dtype,
                   const sycl::queue* queue) {
  const nb::object tensor = import(array);
  const place& where = place_of(queue, tensor);
  argument x = take(tensor, where);
  const memory::desc desc = x.memory.get_desc();
  const memory::data_type type = dtype ? data_type_of(*dtype) : desc.get_data_type();
  check_reordered("x", desc.get_data_type());
  check_reordered("dtype", type);
  result made(where, desc.get_dims(), type);
  run("reorder", where,
      [&] {
        return dnnl::reorder({where.engine, desc, where.engine, made.memory().get_desc()});
      },
      {{DNNL_ARG_FROM, x.memory}, {DNNL_ARG_TO, made.memory()}});
  return std::move(made).to_python(std::move(x.tensor));
}

nb::dict describe(nb::handle array, const sycl::queue* queue) {
  const nb::object tensor = import(array);
  const place& where = place_of(queue, tensor);
  const argument x = take(tensor, where);
  const memory::desc desc = x.memory.get_desc();
  using dnnl::sycl_interop::memory_kind;
  const bool is_usm = dnnl::sycl_interop::get_memory_kind(x.memory) == memory_kind::usm;
  nb::dict said;
  said["data_type"] = dnnl_dt2str(static_cast<dnnl_data_type_t>(desc.get_data_type()));
  said["dims"] = nb::tuple(nb::cast(desc.get_dims()));
  said["strides"] = nb::tuple(nb::cast(desc.get_strides()));
  said["handle"] = reinterpret_cast<std::uintptr_t>(x.memory.get_data_handle());
  said["memory_kind"] = is_usm ? "usm" : "buffer";
  said["device"] = nb::cast(dnnl::sycl_interop::get_device(x.memory.get_engine()));
  said["queue"] = nb::cast(dnnl::sycl_interop::get_queue(where.stream));
  return said;
}

}  // namespace

NB_MODULE(onednn_ops, m) {
  usm_dlpack::load_package();
  const auto queue = "queue"_a.none() = nb::none();
  m.def("matmul", &matmul, "a"_a, "b"_a, nb::kw_only(), queue,
        "Return the product of matrices; the dtype is that of `a`.");
  m.def("reorder", &reorder, "x"_a, nb::kw_only(), "dtype"_a = nb::none(), queue,
        "Return a copy in C order, of the same dtype or another, named as in DLPack.");
  m.def(
      "describe", &describe, "x"_a, nb::kw_only(), queue,
      "Return what oneDNN says of the memory object over an array, its engine and its stream.");
}
