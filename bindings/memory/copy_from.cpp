// SPDX-License-Identifier: Apache-2.0
//
// DLPackTensor.copy_from: reads values from anywhere, and writes only to the tensor's
// elements. How bytes are copied is in copies.cpp.
#include "arguments/array_interface.hpp"
#include "arguments/dtypes.hpp"
#include "arguments/places.hpp"
#include "exchange/capsule.hpp"
#include "exchange/producer.hpp"
#include "exchange/to_dlpack_tensor.hpp"
#include "memory/copies.hpp"
#include "module.hpp"
#include "order/process.hpp"
#include "order/queues.hpp"

namespace usm_dlpack::python {
namespace {

/// Checks that values have the dtype and the shape of the tensor.
void check_same_type(const proved_tensor& values, const proved_tensor& own) {
  const std::string remedy = "pass values of the tensor's shape and dtype";
  const DLDataType dtype = own.described.dtype;
  if (values.ndim() != own.ndim()) {
    detail::refuse(errc::shape_mismatch, "ndim",
                   "as many dimensions as the tensor, " + detail::digits(own.ndim()),
                   detail::digits(values.ndim()), remedy);
  }
  if (!same_data_type(values.described.dtype, dtype)) {
    detail::refuse(errc::dtype_mismatch, "dtype", to_string(dtype),
                   to_string(values.described.dtype), remedy);
  }
  const auto in_words = [](subbyte storage) {
    return storage == subbyte::padded ? "elements of a byte each" : "packed elements";
  };
  if (dtype.bits < 8 && values.storage() != own.storage()) {
    detail::refuse(errc::dtype_mismatch, "flags", in_words(own.storage()),
                   in_words(values.storage()), remedy);
  }
  for (std::size_t r = 0; r < own.ndim(); ++r) {
    if (values.described.shape[r] != own.described.shape[r]) {
      detail::refuse(errc::shape_mismatch, detail::indexed("shape", r),
                     detail::digits(own.described.shape[r]),
                     detail::digits(values.described.shape[r]), remedy);
    }
  }
}

void check_writable(const proved_tensor& own) {
  if (own.readonly()) {
    detail::refuse(
        errc::read_only, "flags", "writable memory", "read-only memory",
        own.ndim() == 0 ? "if it is of dpnp's array a, make it by to_dlpack_tensor(a), "
                          "not by from_dlpack(a)"
        : !has_whole_bytes(own)
            ? "write to a tensor of writable memory"
            : "write to a copy, made by from_dlpack(x, copy=True), or if an object "
              "passes on the interface of a dpctl.memory, pass the memory itself, or "
              "let the object answer (address, False)");
  }
  if (!own.structure().unique) {
    detail::refuse(errc::overlapping, "strides", "elements that do not overlap",
                   "strides by which some may",
                   has_whole_bytes(own)
                       ? "write to a copy, made by from_dlpack(x, order=\"C\")"
                       : "write to a tensor whose elements do not overlap");
  }
}

/// Copies an array by its interface to a NumPy array, from memory of any context.
/// @throws conversion_error `pointer_unknown` if the context does not know both ends
nb::object copy_of_context(nb::handle values) {
  static imported ndarray{"numpy", "ndarray"};
  const nb::none as_it_is;
  const array_view view = read_array_view(values, as_it_is, as_it_is, as_it_is, nb::int_(0));
  const memory_owner owner = read_syclobj(view.syclobj);
  const sycl::context& context = owner.context;
  const auto [begin, end] = view.bytes;
  const auto* lowest = reinterpret_cast<const unsigned char*>(begin);
  const auto knows = [&](std::uintptr_t address) {
    return sycl::get_pointer_type(reinterpret_cast<const void*>(address), context) !=
           sycl::usm::alloc::unknown;
  };
  if (begin != end && !(knows(begin) && knows(end - 1))) {
    detail::refuse(errc::pointer_unknown, "data", "USM of the context that the array names",
                   "an address unknown to it", "correct the object that offers it");
  }
  const std::int64_t itemsize = view.element.bits() / 8;
  nb::list shape, strides;
  for (std::size_t r = 0; r < view.shape.size(); ++r) {
    shape.append(view.shape[r]);
    if (view.strides) {
      strides.append((*view.strides)[r] * itemsize);
    }
  }
  const numpy_array bytes =
      make_numpy_array({{kDLUInt, 8, 1}, {}}, nb::make_tuple(end - begin), "");
  if (begin != end) {
    const without_gil unlocked;
    detail::with_runtime_errors("data", [&] {
      if (owner.queue) {
        wait_unlocked(*owner.queue);
      }
      sycl::queue queue(context, sycl::get_pointer_device(lowest, context),
                        sycl::property::queue::in_order());
      detail::wait_for_command(queue.memcpy(bytes.data, lowest, end - begin));
    });
  }
  return ndarray.get()(nb::tuple(shape), find_numpy_dtype(view.element), bytes.array,
                       view.first - begin,
                       view.strides ? nb::object(nb::tuple(strides)) : nb::object(nb::none()));
}

bool has_attribute(nb::handle values, const char* name) {
  return find_attribute(values, name, PyExc_AttributeError).is_valid();
}

constexpr const char* copy_from_doc =
    "Copy values into this tensor's memory, whatever its strides.\n\n"
    "First waits as `wait` does, for the values likewise, and for `queue`. The copy is complete\n"
    "on return. Memory between the elements is not written. Packed elements of fewer than 8 bits\n"
    "are written in C order alone, and only if they fill their bytes. In device USM with gaps\n"
    "each run of elements that lie side by side is a copy of its own: for a column of a large\n"
    "matrix, ``dpnp.from_dlpack(x)[...] = values`` is faster.\n\n"
    "Parameters\n----------\n"
    "values\n"
    "    Values with the tensor's shape and dtype, in USM of any kind and device or in host\n"
    "    memory: an object with ``__dlpack__``, ``__sycl_usm_array_interface__``,\n"
    "    ``__array_interface__`` or a buffer. They may lie in the tensor's memory. Values on\n"
    "    another device are copied through the host unless one device can read the other's memory.\n"
    "    Values of a context that is not the default one are copied through the host, if they have\n"
    "    an array interface or their library exports them to the host.\n"
    "queue\n"
    "    Another queue that works on the tensor's memory, made from its root device without a\n"
    "    context: a `Place`, as `usm_dlpack.device_id` lists them, that knows it, or the address of\n"
    "    a ``sycl::queue``, which is trusted.\n\n"
    "Raises\n------\n"
    "ConversionError\n"
    "    If the tensor is read-only, its elements overlap, or the values have another shape or\n"
    "    dtype or are not what they claim to be. Then nothing is written.\n"
    "TypeError\n"
    "    If `values` is no array, or `queue` is no queue.";

void copy_from(nb::handle_t<tensor> self, nb::handle values, nb::handle queue) {
  const tensor& written = ready_tensor(self);
  const proved_tensor& to = written.get();
  check_process();
  check_writable(to);
  std::optional<sycl::queue> also;
  if (!queue.is_none()) {
    also = read_queue(queue);
    device_for_queue(to.described.data, to.structure().empty, to.described.device,
                     to.proof.context(), *also);
  }
  const auto write = [&](const proved_tensor& from) {
    wait_for(written);
    if (also) {
      wait_for(*also);
    }
    write_to_usm(from, to);
  };
  if (has_tensor_type(values)) {
    const tensor& read = ready_tensor(values);
    check_same_type(read.get(), to);
    wait_for(read);
    write(read.get());
    return;
  }
  const bool has_interface = has_attribute(values, "__sycl_usm_array_interface__");
  nb::object readable = nb::borrow(values);
  if (has_interface && has_other_context(values)) {
    readable = copy_of_context(values);
  } else if (has_interface && !has_attribute(values, "__dlpack__")) {
    const nb::none as_it_is;
    const proved_tensor from =
        prove_memory(values, as_it_is, as_it_is, as_it_is, nb::int_(0), as_it_is);
    check_same_type(from, to);
    wait_for_foreign(from, nullptr);
    write(from);
    return;
  }
  const exportable exported = make_values_exportable(readable);
  import_request request;
  request.host = true;
  read_producer(exported.array, request, true, [&](const offered_capsule& offered) {
    const nb::ft_object_guard alone(offered.capsule);
    const capsule_content content = read_capsule(offered.capsule);
    proved_tensor from = prove_content(content, exported.element);
    check_same_type(from, to);
    from.queue = offered.queue;
    const auto list = list_behind(content);
    from.owner = consume_capsule(offered.capsule, content);  // while other threads run
    wait_for_foreign(from, list);
    write(from);
  });
}

}  // namespace

void add_copy_from(tensor_class& tensor_type) {
  tensor_type.def("copy_from", &copy_from, nb::arg("values").none(), nb::kw_only(),
                  nb::arg("queue") = nb::none(),
                  nb::sig("def copy_from(self, values: UsmArray | _KnowsNumpy | Buffer, *, "
                          "queue: Place | int | None = None) -> None"),
                  copy_from_doc);
}

}  // namespace usm_dlpack::python
