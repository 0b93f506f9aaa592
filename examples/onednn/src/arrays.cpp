// SPDX-License-Identifier: Apache-2.0
//
// In: `usm_dlpack.from_dlpack` reads the array of any library, `__dlpack__` hands over the
// queue, and the capsule becomes a managed tensor. Out: bytes with a dtype, shape and strides.
#include "arrays.hpp"

#include <algorithm>

namespace onednn_ops {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

/// Takes the managed tensor out of a capsule. Source: DLPack, "Python specification".
usm_dlpack::managed_tensor consume(const nb::object& capsule) {
  constexpr const char* fresh = "dltensor_versioned";
  void* held = PyCapsule_GetPointer(capsule.ptr(), fresh);
  if (held == nullptr || PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned") != 0) {
    throw nb::python_error();
  }
  return usm_dlpack::managed_tensor(static_cast<DLManagedTensorVersioned*>(held));
}

}  // namespace

argument take(nb::handle array, const place& where, order how, bool writable) {
  const nb::object tensor = nb::module_::import_("usm_dlpack").attr("from_dlpack")(array);
  const nb::object stream = how == order::by_stream ? nb::cast(where.queue) : nb::int_(-1);
  const nb::object capsule =
      tensor.attr("__dlpack__")("stream"_a = stream, "max_version"_a = nb::make_tuple(1, 3));
  usm_dlpack::managed_tensor managed = consume(capsule);
  usm_dlpack::requirements wanted;
  wanted.writable = writable;
  wanted.unique = writable;
  dnnl::memory memory = onednn_dlpack::make_memory(*managed, where.engine, wanted);
  return {std::move(managed), std::move(memory)};
}

dnnl::memory::data_type data_type_of(const std::string& name) {
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

dnnl::memory::desc compact(const dnnl::memory::dims& shape, dnnl::memory::data_type type) {
  dnnl::memory::dims strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t r = shape.size(); r-- > 0;) {
    strides[r] = step;
    step = onednn_dlpack::detail::step_over(step, shape[r], r);
  }
  return {shape, type, strides};
}

result::result(const place& where, const dnnl::memory::desc& desc)
    : bytes_(where.queue,
             Kokkos::dextents<std::int64_t, 1>(std::max<std::int64_t>(desc.get_size(), 1))),
      memory_(dnnl::sycl_interop::make_memory(
          desc, where.engine, dnnl::sycl_interop::memory_kind::usm, bytes_.data())) {}

nb::object result::described(const nb::object& bytes) const {
  const onednn_dlpack::description what(memory_.get_desc());
  const DLDataType dtype = what.dtype();
  nb::list shape, strides;
  for (std::size_t r = 0; r < what.shape().size(); ++r) {
    shape.append(what.shape()[r]);
    strides.append(what.strides()[r]);
  }
  return nb::module_::import_("usm_dlpack")
      .attr("to_dlpack_tensor")(
          bytes, "shape"_a = shape, "strides"_a = strides,
          "dtype"_a = nb::make_tuple(dtype.code, dtype.bits, dtype.lanes));
}

}  // namespace onednn_ops
