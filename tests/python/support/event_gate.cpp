// SPDX-License-Identifier: Apache-2.0
//
// Events that are complete when a test says so, for Python through ctypes: OpenCL's user
// events, which take no thread, and on other backends host tasks that wait.
#include <sycl/sycl.hpp>

#include <dlfcn.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

using opener = std::function<void()>;

namespace {

sycl::event new_user_event(const sycl::context& context, opener& open) {
  void* library = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_NOLOAD);
  const auto create =
      reinterpret_cast<decltype(&clCreateUserEvent)>(dlsym(library, "clCreateUserEvent"));
  const auto set = reinterpret_cast<decltype(&clSetUserEventStatus)>(
      dlsym(library, "clSetUserEventStatus"));
  cl_event native = create(sycl::get_native<sycl::backend::opencl>(context), nullptr);
  open = [=] { set(native, CL_COMPLETE); };
  return sycl::make_event<sycl::backend::opencl>({native}, context);
}

sycl::event new_host_task(sycl::queue queue, opener& open) {
  const auto gate = std::make_shared<std::promise<void>>();
  open = [gate] { gate->set_value(); };
  return queue.submit([opened = gate->get_future().share()](sycl::handler& handler) {
    handler.host_task([opened] { opened.wait(); });
  });
}

}  // namespace

/// A new event for the capsule of a `dpctl.SyclEvent`.
/// @param queue occupied by the event if it is a host task
/// @param open gets the argument of `open_gate`
extern "C" sycl::event* new_gate(const sycl::queue* queue, opener** open) noexcept {
  opener once;
  auto* made = new sycl::event(queue->get_backend() == sycl::backend::opencl
                                   ? new_user_event(queue->get_context(), once)
                                   : new_host_task(*queue, once));
  *open = new opener(
      [once, flag = std::make_shared<std::once_flag>()] { std::call_once(*flag, once); });
  return made;
}

extern "C" void open_gate(const opener* open) noexcept { (*open)(); }

/// Opens a gate after some time, even if a thread of Python then waits for it with the GIL.
extern "C" void open_gate_later(const opener* open, double seconds) {
  std::thread([=] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    open_gate(open);
  }).detach();
}
