// SPDX-License-Identifier: Apache-2.0
//
// oneDNN in C++ on tensors that came through DLPack: what goes in, what comes out, in which
// order, and what is refused. Prints what is in expected_output.txt on a CPU device.
#include <mdspan/mdspan.hpp>
#include <onednn_dlpack/opencl.hpp>
#include <onednn_dlpack/sycl.hpp>
#include <usm_dlpack/opencl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdio>
#include <exception>
#include <future>
#include <utility>
#include <vector>

namespace {

using dnnl::memory;
using extents = Kokkos::dextents<int, 2>;
using matrix = Kokkos::mdspan<float, extents>;
using usm_matrix = usm_dlpack::usm_array<matrix>;

// A producer: two rows of three, 1 to 6, in device USM.
usm_matrix count(sycl::queue& queue) {
  usm_matrix made(queue, extents(2, 3));
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  queue.copy(values.data(), made.data(), values.size()).wait();
  return made;
}

std::vector<float> values_of(sycl::queue& queue, const DLTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.shape[0] * tensor.shape[1]));
  const auto* first = static_cast<const unsigned char*>(tensor.data) + tensor.byte_offset;
  queue.memcpy(values.data(), first, values.size() * sizeof(float)).wait();
  return values;
}

void print(const char* name, const std::vector<float>& values) {
  std::printf("%s:", name);
  for (const float value : values) {
    std::printf(" %g", value);
  }
  std::printf("\n");
}

const char* yes(bool holds) { return holds ? "yes" : "no"; }

/// Where primitives run. The stream outlives their work.
struct place {
  sycl::queue queue{usm_dlpack::root_device(0)};
  dnnl::engine engine = onednn_dlpack::make_engine(0);
  dnnl::stream stream = onednn_dlpack::make_stream(engine, queue);
};

/// x times its transpose, behind some events; nothing is copied, and nobody waits.
/// @pre what owns the tensors outlives the event
sycl::event multiply(place& here, const DLTensor& x, const DLTensor& out,
                     const std::vector<sycl::event>& after) {
  DLTensor transposed = x;
  std::int64_t shape[] = {x.shape[1], x.shape[0]}, strides[] = {x.strides[1], x.strides[0]};
  transposed.shape = shape;
  transposed.strides = strides;
  const memory a = onednn_dlpack::make_memory(x, here.engine);
  const memory b = onednn_dlpack::make_memory(transposed, here.engine);
  const memory c = onednn_dlpack::make_memory(out, here.engine);
  const dnnl::matmul::primitive_desc described(here.engine, a.get_desc(), b.get_desc(),
                                               c.get_desc());
  return dnnl::sycl_interop::execute(
      dnnl::matmul(described), here.stream,
      {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}}, after);
}

sycl::usm::alloc kind_of(place& here, const void* pointer) {
  return sycl::get_pointer_type(pointer, here.queue.get_context());
}

// oneDNN as a producer: it allocates, and the managed tensor keeps its memory object.
void give(place& here) {
  const usm_matrix made = count(here.queue);
  const auto wrapper = usm_dlpack::to_dlpack_tensor(made.view(), here.queue);
  const DLTensor tensor = wrapper.get();
  memory x = onednn_dlpack::make_memory(tensor, here.engine);
  const memory::desc desc({2, 3}, memory::data_type::f32, memory::format_tag::ba);
  memory theirs =
      dnnl::sycl_interop::make_memory(desc, here.engine, dnnl::sycl_interop::memory_kind::usm);
  dnnl::reorder(x, theirs).execute(here.stream, x, theirs);
  here.stream.wait();
  usm_dlpack::managed_tensor out = onednn_dlpack::to_managed_tensor(theirs);
  theirs = memory();
  const void* data = out->dl_tensor.data;
  const std::int64_t* strides = out->dl_tensor.strides;
  std::printf("out: strides %d %d,", static_cast<int>(strides[0]),
              static_cast<int>(strides[1]));
  print(" in memory", values_of(here.queue, out->dl_tensor));
  std::printf("kept: %s,", yes(kind_of(here, data) == sycl::usm::alloc::device));
  out.reset();
  std::printf(" freed: %s\n", yes(kind_of(here, data) == sycl::usm::alloc::unknown));
}

bool is_pending(const sycl::event& event) {
  return event.get_info<sycl::info::event::command_execution_status>() !=
         sycl::info::event_command_status::complete;
}

// Events in and out: a producer's kernel, two primitives and a consumer's kernel of another
// queue, all submitted while the first is held.
void chain(place& here, sycl::queue& consumer) {
  usm_matrix x = count(here.queue);
  const usm_matrix product(here.queue, extents(2, 2)), read(consumer, extents(2, 2));
  const auto in = usm_dlpack::to_dlpack_tensor(x.view(), here.queue);
  const auto out = usm_dlpack::to_dlpack_tensor(product.view(), here.queue);
  const DLTensor tensor = in.get();
  const std::vector<float> twos(6, 2);  // lives until the copy of them is done
  std::promise<void> opened;
  const sycl::event held = here.queue.submit(
      [&](sycl::handler& handler) { handler.host_task([&] { opened.get_future().wait(); }); });
  const sycl::event filled = here.queue.submit([&](sycl::handler& handler) {
    handler.depends_on(held);  // something that takes long
    handler.copy(twos.data(), x.data(), twos.size());
  });
  const sycl::event multiplied = multiply(here, tensor, out.get(), {filled});
  const sycl::event copied = consumer.submit([&](sycl::handler& handler) {
    handler.depends_on(multiplied);
    handler.memcpy(read.data(), product.data(), 4 * sizeof(float));
  });
  std::printf("pending: %s\n",
              yes(is_pending(filled) && is_pending(multiplied) && is_pending(copied)));
  opened.set_value();
  sycl::event(copied).wait();
  const auto shown = usm_dlpack::to_dlpack_tensor(read.view(), consumer);
  print("chained", values_of(consumer, shown.get()));
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
  std::printf("a part: byte_offset %d, strides[0] %d\n", static_cast<int>(part.byte_offset),
              static_cast<int>(part.strides[0]));
}

void be_refused_in(place& here) {
  const sycl::device device = here.queue.get_device();
  const sycl::queue foreign(sycl::context(device), device);
  const usm_matrix made = count(here.queue);
  const auto wrapper = usm_dlpack::to_dlpack_tensor(made.view(), here.queue);
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
  const memory taken =
      dnnl::sycl_interop::make_memory(onednn_dlpack::to_desc(tensor), here.engine,
                                      dnnl::sycl_interop::memory_kind::usm, on_the_stack);
  std::printf("oneDNN itself takes the stack: %s\n",
              yes(taken.get_data_handle() == on_the_stack));
}

// The same by OpenCL's objects, for which oneDNN wants an Intel GPU.
void be_opencl(place& here) {
  const usm_matrix made = count(here.queue);
  const auto wrapper = usm_dlpack::to_dlpack_tensor(made.view(), here.queue);
  refuse("opencl engine", [&] {
    const auto device = usm_dlpack::opencl_device(here.queue);
    const auto context = usm_dlpack::opencl_context(here.queue);
    const auto queue = usm_dlpack::opencl_queue(here.queue);
    const dnnl::engine engine = onednn_dlpack::make_opencl_engine(device.get(), context.get());
    const dnnl::stream stream = onednn_dlpack::make_opencl_stream(engine, queue.get());
    const memory x = onednn_dlpack::make_opencl_memory(wrapper.get(), engine);
  });
  refuse("a stream of a SYCL engine", [&] {
    onednn_dlpack::make_opencl_stream(here.engine, usm_dlpack::opencl_queue(here.queue).get());
  });
}

}  // namespace

int main() try {
  dnnl_set_verbose(0);
  // Never destroyed: a queue must not go before its work has ended.
  place& here = *new place;
  sycl::queue& consumer = *new sycl::queue(usm_dlpack::root_device(0));
  give(here);
  chain(here, consumer);
  be_refused_out(here);
  be_refused_in(here);
  be_opencl(here);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
