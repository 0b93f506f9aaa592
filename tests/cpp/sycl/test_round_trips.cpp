// SPDX-License-Identifier: Apache-2.0
//
// usm.hpp as a whole: what is exported validates and is the same view; kernels fill what is
// exchanged.
#include <usm_dlpack/usm_dlpack.hpp>

#include "usm_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace test_round_trips {

using namespace usm_dlpack_test;
using sycl::usm::alloc;
using usm_dlpack::layout_relaxed;
using usm_dlpack::to_dlpack_tensor;
using usm_dlpack::validate;

// --- Round trips as properties --------------------------------------------------------------

template <std::size_t Rank>
using extents_of = md::dextents<std::int64_t, Rank>;
template <std::size_t Rank>
using index_of = std::array<std::int64_t, Rank>;

/// Calls `act` with each index of a shape, the last dimension fastest.
template <std::size_t Rank, class Act>
void for_each_index(const index_of<Rank>& shape, const Act& act) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    count *= extent;
  }
  for (std::int64_t number = 0; number < count; ++number) {
    index_of<Rank> index{};
    std::int64_t rest = number;
    for (std::size_t r = Rank; r-- > 0;) {
      index[r] = rest % shape[r];
      rest /= shape[r];
    }
    act(index);
  }
}

template <class View>
const void* address_in(const View& view, const index_of<View::rank()>& index) {
  return view.data_handle() +
         std::apply([&](auto... i) { return view.mapping()(i...); }, index);
}

const void* address_in(const DLTensor& tensor, const std::int64_t* index) {
  std::int64_t offset = 0;
  for (std::int32_t r = 0; r < tensor.ndim; ++r) {
    offset += index[r] * tensor.strides[r];
  }
  return static_cast<const std::byte*>(tensor.data) + tensor.byte_offset +
         offset * (tensor.dtype.bits * tensor.dtype.lanes / 8);
}

template <class View>
void expect_same_view(const DLTensor& tensor, const View& view) {
  constexpr std::size_t rank = View::rank();
  ASSERT_EQ(tensor.ndim, static_cast<std::int32_t>(rank));
  index_of<rank> shape{};
  bool empty = false;
  for (std::size_t r = 0; r < rank; ++r) {
    shape[r] = view.extent(r);
    EXPECT_EQ(tensor.shape[r], shape[r]);
    empty = empty || shape[r] == 0;
    if constexpr (rank != 0) {
      if (shape[r] > 1) {
        EXPECT_EQ(tensor.strides[r], view.mapping().stride(r));
      }
    }
  }
  const usm_dlpack::usm_allocation proved = validate(tensor);
  EXPECT_EQ(proved.structure().empty, empty);
  EXPECT_EQ(proved.device_id(), 0);
  if (empty) {
    return;
  }
  EXPECT_EQ(proved.usm_type(), alloc::device);
  EXPECT_EQ(proved.data(), address_in(view, index_of<rank>{}));
  const std::uintptr_t lowest = proved.structure().lowest;
  for_each_index<rank>(shape, [&](const index_of<rank>& index) {
    const void* const address = address_in(view, index);
    EXPECT_EQ(address_in(tensor, index.data()), address);
    const auto byte = reinterpret_cast<std::uintptr_t>(address) - lowest;
    EXPECT_LE(byte + sizeof(typename View::element_type), proved.structure().nbytes);
  });
}

template <class View>
void expect_same_view(const usm_dlpack::dlpack_tensor<View::rank()>& exported,
                      const View& view) {
  expect_same_view(exported.get(), view);
}

/// Everything that holds of every view over device USM.
template <class View>
void expect_round_trip(const View& view, const sycl::queue& queue) {
  const auto exported = to_dlpack_tensor(view, queue);
  expect_same_view(exported, view);
  expect_same_view(to_dlpack_tensor(view), view);
  expect_same_view(to_dlpack_tensor(view, queue.get_context()), view);

  const auto owner = std::make_shared<int>(0);
  const usm_dlpack::managed_tensor managed =
      usm_dlpack::to_managed_tensor(view, exported.get().device, owner);
  expect_same_view(managed->dl_tensor, view);
  EXPECT_EQ(validate(*managed).usm_type(), alloc::device);  // size 0 keeps its live pointer
  EXPECT_EQ(managed->flags & usm_dlpack::flag::read_only,
            std::is_const_v<typename View::element_type> ? 1U : 0U);
}

template <class Element, std::size_t Rank>
void expect_round_trips_of(Element* elements, const index_of<Rank>& shape,
                           const sycl::queue& queue) {
  using extents = extents_of<Rank>;
  const extents all(shape);
  expect_round_trip(md::mdspan<Element, extents, md::layout_right>(elements, all), queue);
  expect_round_trip(md::mdspan<Element, extents, md::layout_left>(elements, all), queue);

  // Gaps, the first dimension fastest; then every dimension reversed; then one broadcast.
  index_of<Rank> strides{};
  std::int64_t step = 2;
  for (std::size_t r = 0; r < Rank; ++r) {
    strides[r] = step;
    step *= shape[r] + 1;
  }
  const md::layout_stride::mapping<extents> gaps(all, strides);
  expect_round_trip(md::mdspan<Element, extents, md::layout_stride>(elements, gaps), queue);
  using relaxed = md::mdspan<Element, extents, layout_relaxed>;
  for (std::int64_t& stride : strides) {
    stride = -stride;
  }
  expect_round_trip(relaxed(elements, layout_relaxed::mapping<extents>(all, strides)), queue);
  if constexpr (Rank > 0) {
    strides[Rank - 1] = 0;
    expect_round_trip(relaxed(elements, layout_relaxed::mapping<extents>(all, strides)),
                      queue);
  }
}

template <class Element>
void expect_round_trips_of_elements() {
  const sycl::queue queue = queue_on();
  const usm_memory memory(alloc::device, 1 << 14, queue);
  auto* const elements = memory.as<Element>();
  expect_round_trips_of<Element, 0>(elements, {}, queue);
  for (const std::int64_t extent : {0, 1, 7}) {
    expect_round_trips_of<Element, 3>(elements, {2, extent, 3}, queue);
  }
}

TEST(RoundTrip, KeepsExtentsAddressesAndStridesOfEveryLayout) {
  expect_round_trips_of_elements<float>();
  expect_round_trips_of_elements<const sycl::vec<float, 4>>();
}

// --- Kernels --------------------------------------------------------------------------------

namespace experimental = sycl::ext::oneapi::experimental;

/// Builds a SYCL kernel at run time; its build log must be empty: what cannot run on a device
/// is only told there.
sycl::kernel build_kernel(const sycl::queue& queue, const std::string& source,
                          const std::string& name,
                          const std::vector<std::string>& options = {}) {
  auto from_source = experimental::create_kernel_bundle_from_source(
      queue.get_context(), experimental::source_language::sycl, source);
  std::string log;
  auto built = experimental::build(
      from_source, experimental::properties{experimental::build_options{options},
                                            experimental::save_log{&log}});
  EXPECT_EQ(log, "");
  return built.ext_oneapi_get_kernel(name);
}

const char* const fill_source = R"(
  #include <sycl/sycl.hpp>
  namespace syclext = sycl::ext::oneapi;
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY(
      (syclext::experimental::nd_range_kernel<1>))
  void fill(float* elements, float first) {
    const auto i = syclext::this_work_item::get_nd_item<1>().get_global_linear_id();
    elements[i] = first + static_cast<float>(i);
  }
)";

TEST(Usm, WhatAKernelWroteIsReadThroughTheExportedTensor) {
  constexpr std::int64_t count = 24;
  sycl::queue queue = queue_on();
  const sycl::kernel fill = build_kernel(queue, fill_source, "fill");
  for (const alloc kind : usm_kinds) {
    const usm_memory memory(kind, count * sizeof(float), queue);
    queue.submit([&](sycl::handler& handler) {
      handler.set_args(memory.as<float>(), 0.5F);
      handler.parallel_for(sycl::nd_range<1>(count, 8), fill);
    });
    queue.wait();

    const md::mdspan<float, extents_of<2>, md::layout_left> view(memory.as<float>(), 4, 6);
    const auto exported = to_dlpack_tensor(view, queue);
    const DLTensor tensor = exported.get();
    const usm_dlpack::usm_allocation proved = validate(tensor);
    EXPECT_EQ(proved.usm_type(), kind);

    std::array<float, count> received{};
    sycl::queue consumer(proved.context(), proved.device());
    consumer.memcpy(received.data(), proved.data(), proved.structure().nbytes).wait();
    for_each_index<2>({4, 6}, [&](const index_of<2>& index) {
      const std::int64_t offset = index[0] * tensor.strides[0] + index[1] * tensor.strides[1];
      EXPECT_EQ(received.at(static_cast<std::size_t>(offset)),
                0.5F + static_cast<float>(index[0] + 4 * index[1]));
    });
  }
}

/// Exports a view of a kernel's own making, inside the kernel.
const char* const export_source = R"(
  #include <sycl/sycl.hpp>
  #include <usm_dlpack/core.hpp>
  namespace syclext = sycl::ext::oneapi;
  struct column_view {
    using element_type = float;
    using index_type = int;
    using data_handle_type = float*;
    struct accessor_type {
      using element_type = float;
      using reference = float&;
      using data_handle_type = float*;
    };
    struct mapping_type {
      using index_type = int;
      int operator()(int i, int j) const { return i + 4 * j; }
      int stride(std::size_t r) const { return r == 0 ? 1 : 4; }
      static constexpr bool is_always_strided() { return true; }
      static constexpr bool is_strided() { return true; }
    };
    float* elements;
    static constexpr std::size_t rank() { return 2; }
    int extent(std::size_t r) const { return r == 0 ? 4 : 6; }
    float* data_handle() const { return elements; }
    mapping_type mapping() const { return {}; }
    accessor_type accessor() const { return {}; }
  };
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY(
      (syclext::experimental::nd_range_kernel<1>))
  void describe(float* elements, long* told) {
    const auto exported =
        usm_dlpack::to_dlpack_tensor(column_view{elements}, DLDevice{kDLOneAPI, 5});
    const DLTensor tensor = exported.get();
    const long all[] = {tensor.data == elements, tensor.device.device_id, tensor.ndim,
                        tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes,
                        tensor.shape[0], tensor.shape[1], tensor.strides[0],
                        tensor.strides[1]};
    for (int i = 0; i < 10; ++i) {
      told[i] = all[i];
    }
  }
)";

TEST(Usm, AKernelDescribesAViewWithTheCoreHeaders) {
  std::vector<std::string> options;
  const char* const folders = std::getenv("USM_DLPACK_TEST_INCLUDES");
  ASSERT_NE(folders, nullptr);
  std::istringstream rest(folders);
  for (std::string folder; std::getline(rest, folder, ':');) {
    options.push_back("-I" + folder);
  }
  sycl::queue queue = queue_on();
  const sycl::kernel describe = build_kernel(queue, export_source, "describe", options);
  const usm_memory memory(alloc::device, 96, queue);
  const usm_memory told(alloc::shared, 10 * sizeof(long), queue);
  queue.submit([&](sycl::handler& handler) {
    handler.set_args(memory.as<float>(), told.as<long>());
    handler.parallel_for(sycl::nd_range<1>(1, 1), describe);
  });
  queue.wait();
  const long* const first = told.as<long>();
  EXPECT_EQ(std::vector<long>(first, first + 10),
            (std::vector<long>{1, 5, 2, kDLFloat, 32, 1, 4, 6, 1, 4}));
}

}  // namespace test_round_trips
