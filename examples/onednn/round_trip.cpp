// SPDX-License-Identifier: Apache-2.0
//
// What the adapter takes, gives and refuses, without Python. Prints what is in
// expected_output.txt on a CPU device.
#include <mdspan/mdspan.hpp>
#include <onednn_dlpack/opencl.hpp>
#include <onednn_dlpack/sycl.hpp>
#include <usm_dlpack/opencl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace {

using dnnl::memory;
using extents = Kokkos::dextents<int, 2>;
using matrix = Kokkos::mdspan<float, extents>;
using usm_matrix = usm_dlpack::usm_array<matrix>;

// A producer: two rows of three, 1 to 6, in device USM.
usm_matrix count(sycl::queue& queue) {
  usm_matrix array(queue, extents(2, 3));
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  queue.copy(values.data(), array.data(), values.size()).wait();
  return array;
}

const char* yes(bool holds) { return holds ? "yes" : "no"; }

/// Where primitives run. The stream outlives their work.
struct place {
  sycl::queue queue{usm_dlpack::root_device(0)};
  dnnl::engine engine = onednn_dlpack::make_engine(0);
  dnnl::stream stream = onednn_dlpack::make_stream(engine, queue);
};

// oneDNN as a producer: it allocates, and the managed tensor keeps its memory object.
void give(place& here) {
  const usm_matrix array = count(here.queue);
  const auto wrapper = usm_dlpack::to_dlpack_tensor(array.view(), here.queue);
  const DLTensor tensor = wrapper.get();
  memory x = onednn_dlpack::make_memory(tensor, here.engine);
  const memory::desc desc({2, 3}, memory::data_type::f32, memory::format_tag::ba);
  memory theirs =
      dnnl::sycl_interop::make_memory(desc, here.engine, dnnl::sycl_interop::memory_kind::usm);
  dnnl::reorder(x, theirs).execute(here.stream, x, theirs);
  here.stream.wait();
  usm_dlpack::managed_tensor out = onednn_dlpack::to_managed_tensor(theirs);
  theirs = memory();
  float values[6];
  here.queue.memcpy(values, out->dl_tensor.data, sizeof values).wait();
  std::printf("in Fortran order:");
  for (const float value : values) {
    std::printf(" %g", value);
  }
  const void* data = out->dl_tensor.data;
  const sycl::context context = here.queue.get_context();
  std::printf("\nkept: %s,", yes(get_pointer_type(data, context) == sycl::usm::alloc::device));
  out.reset();
  std::printf(" freed: %s\n",
              yes(get_pointer_type(data, context) == sycl::usm::alloc::unknown));
}

template <class Act>
void refuse(const char* name, Act&& act) {
  try {
    act();
    std::printf("%s: taken\n", name);
  } catch (const usm_dlpack::conversion_error& error) {
    std::printf("%s: %s: %s\n", name, to_string(error.code()), error.what());
  }
}

// Descriptors alone: each dtype, and strides as oneDNN gets them.
void describe() {
  for (const auto& row : onednn_dlpack::detail::dtype_rows) {
    const auto type = static_cast<dnnl_data_type_t>(onednn_dlpack::to_data_type(row.dlpack));
    const std::string name = usm_dlpack::to_string(row.dlpack);
    std::printf("%s %s, ", name.substr(0, name.find(' ')).c_str(), dnnl_dt2str(type));
  }
  refuse("int64", [] { onednn_dlpack::to_data_type({kDLInt, 64, 1}); });
  using dims = memory::dims;
  const std::pair<dims, dims> layouts[] = {
      {{2, 3}, {1, 2}},        {{2, 3}, {10, 3}}, {{2, 3}, {0, 1}},
      {{2, 1, 3}, {3, 77, 1}}, {{0, 3}, {-1, 9}}, {{}, {}},
      {{2, 3}, {-3, 1}},       {{2, 3}, {5, 2}},  {dims(13), dims(13)}};
  for (auto [shape, strides] : layouts) {
    float memory[1];
    const int ndim = static_cast<int>(shape.size());
    const DLTensor tensor{memory,       {kDLOneAPI, 0}, ndim, {kDLFloat, 32, 1},
                          shape.data(), strides.data(), 0};
    refuse(onednn_dlpack::detail::listed(strides).c_str(), [&] {
      const auto said = onednn_dlpack::describe(onednn_dlpack::to_desc(tensor));
      std::printf("%s from ", onednn_dlpack::detail::listed(said.strides).c_str());
    });
  }
}

void be_refused_out(place& here) {
  using type = memory::data_type;
  using tag = memory::format_tag;
  using dnnl::sycl_interop::memory_kind;
  const auto give = [&](const memory::desc& desc, memory_kind kind) {
    return onednn_dlpack::to_managed_tensor(
        dnnl::sycl_interop::make_memory(desc, here.engine, kind, DNNL_MEMORY_ALLOCATE));
  };
  const memory::desc whole({4, 4}, type::f32, tag::ab);
  refuse("blocked", [&] { give({{1, 16, 2, 2}, type::f32, tag::nChw16c}, memory_kind::usm); });
  refuse("f4_e3m0", [&] { give({{2, 4}, type::f4_e3m0, tag::ab}, memory_kind::usm); });
  refuse("buffer", [&] { give(whole, memory_kind::buffer); });
  refuse("open", [&] { onednn_dlpack::describe({{2, 3}, type::f32, tag::any}); });
  const auto part = onednn_dlpack::describe(whole.submemory_desc({2, 2}, {1, 2}));
  std::printf("a part: byte_offset %d, strides %s\n", static_cast<int>(part.byte_offset),
              onednn_dlpack::detail::listed(part.strides).c_str());
}

void be_refused_in(place& here) {
  const sycl::device device = here.queue.get_device();
  const sycl::queue foreign(sycl::context(device), device);
  const usm_matrix array = count(here.queue);
  const auto wrapper = usm_dlpack::to_dlpack_tensor(array.view(), here.queue);
  DLTensor tensor = wrapper.get();
  const dnnl::engine their_own(dnnl::engine::kind::cpu, 0);
  refuse("an engine of oneDNN's own", [&] { onednn_dlpack::make_memory(tensor, their_own); });
  refuse("a queue of another context",
         [&] { onednn_dlpack::make_stream(here.engine, foreign); });
  refuse("a queue of another device",
         [&] { onednn_dlpack::detail::check_queue(here.queue, 1); });
  DLManagedTensorVersioned managed{{1, 3}, nullptr, nullptr, 0, tensor};
  managed.flags = usm_dlpack::flag::is_subbyte_type_padded;
  managed.dl_tensor.dtype = {kDLInt, 4, 1};
  refuse("padded", [&] { onednn_dlpack::make_memory(managed, here.engine); });
  float on_the_stack[6];
  tensor.data = on_the_stack;
  refuse("the stack", [&] { onednn_dlpack::make_memory(tensor, here.engine); });
}

// The same by OpenCL's objects, for which oneDNN wants an Intel GPU.
void be_opencl(place& here) {
  const usm_matrix array = count(here.queue);
  const auto wrapper = usm_dlpack::to_dlpack_tensor(array.view(), here.queue);
  refuse("opencl engine", [&] {
    const auto device = usm_dlpack::opencl_device(here.queue);
    const auto context = usm_dlpack::opencl_context(here.queue);
    const auto queue = usm_dlpack::opencl_queue(here.queue);
    const dnnl::engine engine = onednn_dlpack::make_opencl_engine(device.get(), context.get());
    const dnnl::stream stream = onednn_dlpack::make_opencl_stream(engine, queue.get());
    const memory x = onednn_dlpack::make_opencl_memory(wrapper.get(), engine);
  });
  refuse("a SYCL engine", [&] { onednn_dlpack::opencl_device_id(here.engine); });
}

}  // namespace

int main() try {
  dnnl_set_verbose(0);
  place here;
  give(here);
  describe();
  be_refused_out(here);
  be_refused_in(here);
  be_opencl(here);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
