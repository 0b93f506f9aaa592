// SPDX-License-Identifier: Apache-2.0
//
// The export and the import protocol beside the queries that they cannot do without, made by
// hand, on the memory of the first and of the last root device.
//
// `count` dumps callgrind's counters after each cell; `time <rounds> <live>` times them in
// turns among that many live allocations; `threads <rounds> <threads>` prints how long a call
// of each cell takes when so many threads make it at once.
#include <cell.hpp>
#include <mdspan/mdspan.hpp>
#include <turns.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <atomic>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace {

using usm_dlpack::to_dlpack_tensor;
using usm_dlpack::detail::opencl_platform;
using view_type = Kokkos::mdspan<float, Kokkos::dextents<std::int64_t, 4>>;

/// Memory of one root device, and all that the cells need of it.
struct subject {
  sycl::queue queue;
  sycl::context context = queue.get_context();
  std::vector<void*> live;
  float* memory = nullptr;
  view_type view;
  usm_dlpack::dlpack_tensor<4> wrapper;
  DLTensor tensor;
  // What the floor asks: every platform up to the memory's, and the memory's alone.
  std::vector<const opencl_platform*> searched;
  const opencl_platform* backend;

  subject(std::int32_t device_id, std::size_t allocations)
      : queue(usm_dlpack::root_device(device_id)),
        live(allocate(allocations)),
        memory(static_cast<float*>(live[allocations / 2])),
        view(memory, 2, 3, 4, 2),
        wrapper(to_dlpack_tensor(view, queue)),
        tensor(wrapper.get()) {
    const auto& table = usm_dlpack::detail::device_table::get();
    for (const auto& entry : table.platforms) {
      searched.push_back(&entry.opencl);
      if (&entry == &table.platform_of(device_id)) {
        break;
      }
    }
    backend = searched.back();
  }
  subject(const subject&) = delete;
  subject& operator=(const subject&) = delete;
  ~subject() {
    for (void* pointer : live) {
      sycl::free(pointer, context);
    }
  }

 private:
  std::vector<void*> allocate(std::size_t count) {
    std::vector<void*> made;
    for (std::size_t number = 0; number < count; ++number) {
      made.push_back(sycl::malloc_device(48 * sizeof(float), queue));
    }
    return made;
  }
};

const subject& of(const void* input) { return *static_cast<const subject*>(input); }

cl_device_id ask_device(const opencl_platform& backend, const void* pointer) {
  cl_device_id device = nullptr;
  static_cast<void>(backend.get(pointer, CL_MEM_ALLOC_DEVICE_INTEL, device));
  return device;
}

[[gnu::noinline]] void nothing(const void* input) { keep(input); }

// The true device of the memory: one query. It cannot be fewer, because nothing else tells it.
[[gnu::noinline]] void query_device(const void* input) {
  const auto& on = of(input);
  const auto device = ask_device(*on.backend, on.memory);
  keep(device);
}

// A queue says its context and its device itself.
[[gnu::noinline]] void query_queue_and_device(const void* input) {
  const auto& on = of(input);
  const sycl::context context = on.queue.get_context();
  const sycl::device root = on.queue.get_device();
  const auto device = ask_device(*on.backend, on.memory);
  keep(context);
  keep(root);
  keep(device);
}

// Without a context each platform is asked until one names a device.
[[gnu::noinline]] void query_platforms(const void* input) {
  const auto& on = of(input);
  for (const opencl_platform* backend : on.searched) {
    const auto device = ask_device(*backend, on.memory);
    keep(device);
  }
}

// The kind, which a consumer chooses by; the true device; and the two ends of the allocation.
[[gnu::noinline]] void query_allocation(const void* input) {
  const auto& on = of(input);
  cl_unified_shared_memory_type_intel kind = CL_MEM_TYPE_UNKNOWN_INTEL;
  void* base = nullptr;
  std::size_t size = 0;
  static_cast<void>(on.backend->get(on.memory, CL_MEM_ALLOC_TYPE_INTEL, kind));
  const auto device = ask_device(*on.backend, on.memory);
  static_cast<void>(on.backend->get(on.memory, CL_MEM_ALLOC_BASE_PTR_INTEL, base));
  static_cast<void>(on.backend->get(on.memory, CL_MEM_ALLOC_SIZE_INTEL, size));
  keep(kind);
  keep(device);
  keep(base);
  keep(size);
}

[[gnu::noinline]] void export_with_context(const void* input) {
  const auto made = to_dlpack_tensor(of(input).view, of(input).context);
  keep(made);
}

[[gnu::noinline]] void export_with_queue(const void* input) {
  const auto made = to_dlpack_tensor(of(input).view, of(input).queue);
  keep(made);
}

[[gnu::noinline]] void export_with_neither(const void* input) {
  const auto made = to_dlpack_tensor(of(input).view);
  keep(made);
}

[[gnu::noinline]] void import_tensor(const void* input) {
  const auto proved = usm_dlpack::validate(of(input).tensor);
  keep(proved);
}

void add_cells(const std::string& device, const subject& on) {
  const auto add = [&](const char* protocol, auto* queries, auto* ours) {
    cells().push_back({std::string(protocol) + "/" + device + "/queries", queries, &on});
    cells().push_back({std::string(protocol) + "/" + device + "/ours", ours, &on});
  };
  add("export, context", &query_device, &export_with_context);
  add("export, queue", &query_queue_and_device, &export_with_queue);
  add("export, neither", &query_platforms, &export_with_neither);
  add("validate", &query_allocation, &import_tensor);
}

/// Nanoseconds of a call of one cell while `threads` threads make it.
double time_at_once(const cell& one, int threads) {
  using clock = std::chrono::steady_clock;
  std::atomic<int> ready{0};
  std::atomic<bool> started{false};
  std::vector<std::thread> all;
  for (int number = 0; number < threads; ++number) {
    all.emplace_back([&] {
      repeat(one, calls_of_a_turn);
      ++ready;
      while (!started) {
        std::this_thread::yield();
      }
      repeat(one, 8 * calls_of_a_turn);
    });
  }
  while (ready != threads) {
    std::this_thread::yield();
  }
  const auto start = clock::now();
  started = true;
  for (auto& thread : all) {
    thread.join();
  }
  const std::chrono::duration<double, std::nano> spent = clock::now() - start;
  return spent.count() / (8.0 * calls_of_a_turn * threads);
}

void time_threads(std::size_t rounds, int threads) {
  std::vector<std::vector<double>> spent(cells().size());
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t number = 0; number < cells().size(); ++number) {
      spent[number].push_back(time_at_once(cells()[number], threads));
    }
  }
  print_times(spent);
}

}  // namespace

int main(int count_of_arguments, char** arguments) {
  const std::string_view what = count_of_arguments > 1 ? arguments[1] : "";
  const auto number = [&](int place) { return std::strtoul(arguments[place], nullptr, 10); };
  const std::size_t live = what == "time" ? number(3) : 10;
  const auto last =
      static_cast<std::int32_t>(usm_dlpack::detail::device_table::get().devices.size()) - 1;
  if (last < 0) {
    std::fprintf(stderr, "devices: expected a root device, found none\n");
    return 1;
  }
  const subject on_first(0, live);
  const subject on_last(last, live);
  if (what == "count") {
    cells().push_back({"nothing/any/any/any/0/ours", &nothing, nullptr});
  }
  add_cells("first device", on_first);
  if (last > 0) {
    add_cells("last device", on_last);
  }
  if (what == "count") {
    count();
  } else if (what == "time") {
    time_in_turns(number(2));
  } else if (what == "threads") {
    time_threads(number(2), static_cast<int>(number(3)));
  }
  return 0;
}
