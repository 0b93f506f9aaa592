// SPDX-License-Identifier: Apache-2.0
//
// Views whose type names the USM kind: wherever SYCL is asked, the memory is of that kind, out
// and in; the host indexes what it can reach, and a kernel the rest.
#include "built_kernel.hpp"
#include "usm_memory.hpp"

#include <odd_views.hpp>
#include <refusal.hpp>

#include <usm_dlpack/usm_dlpack.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace test_to_mdspan {

using namespace usm_dlpack_test;
using namespace usm_dlpack;
using alloc = sycl::usm::alloc;

using view = md::mdspan<float, md::dextents<std::int64_t, 2>>;
using const_view = md::mdspan<const float, md::dextents<std::int64_t, 2>>;

template <alloc Kind>
using kind_t = std::integral_constant<alloc, Kind>;
template <alloc Kind, class View = view>
using view_in = detail::view_of_kind<View, Kind>;

/// Calls with each of the three kinds as a constant.
template <class Act>
void for_each_kind(const Act& act) {
  act(kind_t<alloc::host>{});
  act(kind_t<alloc::device>{});
  act(kind_t<alloc::shared>{});
}

/// Calls for each kind of memory and each kind that a view names.
template <class Act>
void for_each_pair_of_kinds(const Act& act) {
  const sycl::queue queue = queue_on();
  for (const alloc is : usm_kinds) {
    const usm_memory memory(is, usm_tensor::size, queue);
    for_each_kind([&](auto says) { act(says, is, memory, queue); });
  }
}

std::string usm(alloc kind) { return std::string(to_string(kind)) + " USM"; }

// --- Export ---------------------------------------------------------------------------------

template <std::size_t Rank>
void expect_same(const dlpack_tensor<Rank>& found, const dlpack_tensor<Rank>& expected) {
  EXPECT_EQ(found.get().data, expected.get().data);
  EXPECT_EQ(found.get().device.device_id, expected.get().device.device_id);
  EXPECT_EQ(found.get().dtype.bits, expected.get().dtype.bits);
  EXPECT_EQ(found.shape(), expected.shape());
  EXPECT_EQ(found.strides(), expected.strides());
}

TEST(UsmMdspan, AViewOfTheRightKindIsExportedAsThePlainOne) {
  for_each_pair_of_kinds(
      [](auto says, alloc is, const usm_memory& memory, const sycl::queue& queue) {
        if (says != is) return;
        const view plain(memory.as<float>(), 4, 6);
        const view_in<says> of_kind(memory.as<float>(), 4, 6);
        const auto expected = to_dlpack_tensor(plain, queue);
        expect_same(to_dlpack_tensor(of_kind, queue), expected);
        expect_same(to_dlpack_tensor(of_kind, queue.get_context()), expected);
        expect_same(to_dlpack_tensor(of_kind), expected);
        expect_same(to_dlpack_tensor(of_kind, DLDevice{kDLOneAPI, 0}), expected);
      });
}

TEST(UsmMdspan, AViewOfAnotherKindIsRefusedWhereverSyclIsAsked) {
  for_each_pair_of_kinds(
      [](auto says, alloc is, const usm_memory& memory, const sycl::queue& queue) {
        if (says == is) return;
        const view_in<says> of_kind(memory.as<float>(), 4, 6);
        const std::string expected = usm(says) + ", as the type of the view says";
        EXPECT_REFUSAL(to_dlpack_tensor(of_kind, queue), errc::usm_type_not_accepted, "data",
                       expected, usm(is));
        EXPECT_REFUSAL(to_dlpack_tensor(of_kind, queue.get_context()),
                       errc::usm_type_not_accepted, "data", expected, usm(is));
        EXPECT_REFUSAL(to_dlpack_tensor(of_kind), errc::usm_type_not_accepted, "data",
                       expected, usm(is));
      });
}

TEST(UsmMdspan, AnEmptyViewIsOfAnyKind) {
  for_each_pair_of_kinds(
      [](auto says, alloc, const usm_memory& memory, const sycl::queue& queue) {
        const view_in<says> empty(memory.as<float>(), 0, 6);
        EXPECT_EQ(data_of(to_dlpack_tensor(empty, queue)), nullptr);
        EXPECT_EQ(data_of(to_dlpack_tensor(empty, queue.get_context())), nullptr);
        EXPECT_EQ(data_of(to_dlpack_tensor(empty)), nullptr);
      });
}

TEST(UsmMdspan, AManagedTensorOwnsAViewOfAnyKind) {
  for_each_kind([](auto kind) {
    const usm_memory memory(kind, usm_tensor::size, queue_on());
    const view_in<kind, const_view> of_kind(memory.as<float>(), 4, 6);
    const managed_tensor managed = to_managed_tensor(of_kind, DLDevice{kDLOneAPI, 0}, 0);
    EXPECT_EQ(managed->flags, flag::read_only);
    EXPECT_EQ(validate(*managed).usm_type(), kind);
  });
}

// --- Import ---------------------------------------------------------------------------------

TEST(UsmMdspan, ATensorOfTheRightKindBecomesAView) {
  for_each_kind([](auto kind) {
    usm_managed_tensor given;
    usm_tensor valid(kind);
    given.managed.dl_tensor = valid.tensor;
    DLManagedTensor legacy{};
    legacy.dl_tensor = valid.tensor;
    for (const view_in<kind>& made :
         {to_mdspan<view_in<kind>>(valid.tensor), to_mdspan<view_in<kind>>(given.managed),
          to_mdspan<view_in<kind>>(legacy)}) {
      EXPECT_EQ(made.data_handle(), valid.memory.template as<float>());
      EXPECT_EQ(made.extent(0), 4);
      EXPECT_EQ(made.extent(1), 6);
    }
  });
}

TEST(UsmMdspan, ATensorOfAnotherKindIsRefused) {
  for_each_pair_of_kinds([](auto says, alloc is, const usm_memory&, const sycl::queue&) {
    if (says == is) return;
    usm_managed_tensor given;
    usm_tensor valid(is);
    given.managed.dl_tensor = valid.tensor;
    DLManagedTensor legacy{};
    legacy.dl_tensor = valid.tensor;
    using wanted = view_in<says>;
    EXPECT_REFUSAL(to_mdspan<wanted>(valid.tensor), errc::usm_type_not_accepted, "data",
                   usm(says), usm(is));
    EXPECT_REFUSAL(to_mdspan<wanted>(given.managed), errc::usm_type_not_accepted, "data",
                   usm(says), usm(is));
    EXPECT_REFUSAL(to_mdspan<wanted>(legacy), errc::usm_type_not_accepted, "data", usm(says),
                   usm(is));
  });
}

TEST(UsmMdspan, ATensorIsAsAlignedAsTheWrappedAccessorPromises) {
  using aligned = md::mdspan<float, md::dextents<std::int64_t, 2>, md::layout_right,
                             odd::aligned_accessor<float>>;
  for_each_kind([](auto kind) {
    const sycl::queue queue = queue_on();
    usm_tensor valid(kind);
    const usm_array<aligned> memory(queue, md::dextents<std::int64_t, 2>(8, 6), kind);
    valid.tensor.data = memory.data();
    using wanted = view_in<kind, aligned>;
    EXPECT_EQ(to_mdspan<wanted>(valid.tensor).data_handle(), memory.data());
    valid.tensor.byte_offset = 4;
    EXPECT_REFUSAL(to_mdspan<wanted>(valid.tensor), errc::data_misaligned, "byte_offset",
                   "elements aligned to 64 bytes, as the view's accessor says",
                   "4 bytes past such an address");
  });
}

TEST(UsmMdspan, MemoryThatIsNoUsmBecomesAPlainViewOnly) {
  usm_tensor valid;
  std::array<float, 24> elements{};
  valid.tensor.data = elements.data();
  EXPECT_EQ(to_mdspan<view>(valid.tensor).data_handle(), elements.data());
  EXPECT_REFUSAL(to_mdspan<device_mdspan<view>>(valid.tensor), errc::pointer_unknown, "data",
                 "USM of the default context of device 0", "an allocation unknown to it");
}

TEST(UsmMdspan, AReadOnlyTensorNeedsConstElements) {
  usm_managed_tensor given;
  given.managed.flags = flag::read_only;
  EXPECT_REFUSAL(to_mdspan<device_mdspan<view>>(given.managed), errc::read_only, "flags",
                 "writable memory", "read-only memory");
  EXPECT_EQ(to_mdspan<device_mdspan<const_view>>(given.managed).data_handle(),
            given.valid.memory.as<float>());
}

TEST(UsmMdspan, WhatTheTensorMustBeIsAskedForWithTheView) {
  const usm_tensor shared(alloc::shared);
  requirements wanted;
  wanted.usm_types = {alloc::device};
  EXPECT_REFUSAL(to_mdspan<view>(shared.tensor, wanted), errc::usm_type_not_accepted, "data",
                 "device USM", "shared USM");
  wanted.usm_types = {alloc::device, alloc::shared};
  EXPECT_EQ(to_mdspan<view>(shared.tensor, wanted).data_handle(), shared.memory.as<float>());
  EXPECT_EQ(to_mdspan<shared_mdspan<view>>(shared.tensor, wanted).data_handle(),
            shared.memory.as<float>());
  wanted.device_id = 3;
  EXPECT_REFUSAL(to_mdspan<shared_mdspan<view>>(shared.tensor, wanted),
                 errc::device_not_accepted, "device.device_id", "3, as asked for", "0");
}

TEST(UsmMdspan, AKindThatTheCallerDoesNotTakeIsNotTakenForTheTypesSake) {
  const usm_tensor shared(alloc::shared);
  requirements wanted;
  wanted.usm_types = {alloc::device};
  EXPECT_REFUSAL(to_mdspan<shared_mdspan<view>>(shared.tensor, wanted),
                 errc::usm_type_not_accepted, "data", "no USM", "shared USM");
}

TEST(UsmMdspan, WritableIsAskedOfManagedTensorsByTheCallerToo) {
  usm_managed_tensor given;
  given.managed.flags = flag::read_only;
  requirements wanted;
  wanted.writable = true;
  EXPECT_REFUSAL(to_mdspan<const_view>(given.managed, wanted), errc::read_only, "flags",
                 "writable memory", "read-only memory");
  wanted.writable = false;
  EXPECT_REFUSAL(to_mdspan<view>(given.managed, wanted), errc::read_only, "flags",
                 "writable memory", "read-only memory");
  given.managed.flags = 0;
  EXPECT_EQ(to_mdspan<view>(given.managed, wanted).extent(1), 6);
}

TEST(UsmMdspan, TheViewIsCheckedAfterTheMemory) {
  const usm_tensor device(alloc::device);
  using row = device_mdspan<md::mdspan<float, md::dextents<int, 1>>>;
  EXPECT_REFUSAL(to_mdspan<row>(device.tensor), errc::rank_mismatch, "ndim",
                 "1 for the view's rank", "2");
}

TEST(UsmMdspan, ARankThatIsNotTheViewsIsRefusedBeforeTheShapeIsRead) {
  const usm_tensor device(alloc::device);
  DLTensor tensor = device.tensor;
  const auto two_extents = std::make_unique<std::int64_t[]>(2);
  tensor.shape = two_extents.get();
  tensor.strides = nullptr;
  tensor.ndim = std::numeric_limits<std::int32_t>::max();
  EXPECT_REFUSAL(to_mdspan<view>(tensor, {}), errc::rank_mismatch, "ndim",
                 "2 for the view's rank", "2147483647");
  EXPECT_REFUSAL(to_mdspan<device_mdspan<view>>(tensor), errc::rank_mismatch, "ndim",
                 "2 for the view's rank", "2147483647");
}

TEST(UsmMdspan, AnEmptyTensorProvesNoKind) {
  usm_tensor empty;
  empty.shape[0] = 0;
  empty.tensor.data = nullptr;
  for_each_kind(
      [&](auto kind) { EXPECT_EQ(to_mdspan<view_in<kind>>(empty.tensor).extent(0), 0); });
}

// --- Elements -------------------------------------------------------------------------------

TEST(UsmMdspan, TheHostIndexesHostAndSharedUsm) {
  const usm_tensor host(alloc::host);
  const usm_tensor shared(alloc::shared);
  const auto host_elements = to_mdspan<host_mdspan<view>>(host.tensor);
  const auto shared_elements = to_mdspan<shared_mdspan<view>>(shared.tensor);
  const md_array<std::int64_t, 2> index{2, 3};
  host_elements[index] = 1.5F;
  shared_elements[index] = host_elements[index] + 1;
  EXPECT_EQ(host.memory.as<float>()[15], 1.5F);
  EXPECT_EQ(shared.memory.as<float>()[15], 2.5F);
  const view plain = shared_elements;
  EXPECT_EQ(plain[index], 2.5F);
}

/// Every header that a kernel needs to index a view of device USM, in device code.
const char* const index_source = R"(
  #define MDSPAN_IMPL_STANDARD_NAMESPACE Kokkos
  #define MDSPAN_IMPL_PROPOSED_NAMESPACE Experimental
  #include <sycl/sycl.hpp>
  #include <mdspan/mdspan.hpp>
  #include <usm_dlpack/core/dtype.hpp>
  #include <usm_dlpack/core/strides.hpp>
  #include <usm_dlpack/core/layout_relaxed.hpp>
  #include <usm_dlpack/sycl/mdspan.hpp>
  namespace syclext = sycl::ext::oneapi;
  using accessor =
      usm_dlpack::usm_accessor<sycl::usm::alloc::device, Kokkos::default_accessor<float>>;
  using extents = Kokkos::dextents<long, 2>;
  using right_view = Kokkos::mdspan<float, extents, Kokkos::layout_right, accessor>;
  using relaxed_view = Kokkos::mdspan<float, extents, usm_dlpack::layout_relaxed, accessor>;
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY(
      (syclext::experimental::nd_range_kernel<1>))
  void copy_backwards(right_view from, relaxed_view to, long* told) {
    const auto i = syclext::this_work_item::get_nd_item<1>().get_global_linear_id();
    const std::array<long, 2> index{long(i) / from.extent(1), long(i) % from.extent(1)};
    to[index] = 2 * from[index];
    if (i == 0) {
      const std::int64_t shape[] = {from.extent(0), from.extent(1)};
      std::int64_t strides[2] = {};
      usm_dlpack::detail::write_compact_strides(shape, strides, 2);
      const auto span = usm_dlpack::detail::span_of(shape, strides, 2);
      const std::int64_t huge[] = {1L << 32, 1L << 32};
      // Made again here, from extents and strides alone.
      const relaxed_view::mapping_type again(to.extents(), to.mapping().strides());
      const long all[] = {sizeof(right_view),
                          sizeof(relaxed_view),
                          usm_dlpack::data_type_v<float>.bits,
                          usm_dlpack::data_type_v<double>.code,
                          span.highest,
                          to.mapping().element_offset(),
                          to.mapping().stride(0),
                          long(usm_dlpack::detail::magnitude(to.stride(1))),
                          usm_dlpack::detail::span_of(huge, nullptr, 2).overflow,
                          again.element_offset(),
                          again.required_span_size()};
      for (int k = 0; k < 11; ++k) {
        told[k] = all[k];
      }
    }
  }
)";

TEST(UsmMdspan, AKernelIndexesViewsOfDeviceUsm) {
  using extents_type = md::dextents<long, 2>;
  using right_view = device_mdspan<md::mdspan<float, extents_type>>;
  using relaxed_view = device_mdspan<md::mdspan<float, extents_type, layout_relaxed>>;
  sycl::queue queue = queue_on();
  const sycl::kernel kernel = built_kernel(queue, index_source, "copy_backwards");
  const usm_memory given(alloc::device, 24 * sizeof(float), queue);
  const usm_memory received(alloc::device, 24 * sizeof(float), queue);
  const usm_memory told(alloc::shared, 11 * sizeof(long), queue);
  std::array<float, 24> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(i);
  }
  queue.memcpy(given.at(), numbers.data(), sizeof numbers).wait();

  const right_view from(given.as<float>(), 4, 6);
  const relaxed_view to(received.as<float>(),
                        relaxed_view::mapping_type(extents_type(4, 6), {-6, -1}));
  queue.submit([&](sycl::handler& handler) {
    handler.set_args(from, to, told.as<long>());
    handler.parallel_for(sycl::nd_range<1>(24, 6), kernel);
  });
  queue.wait();
  queue.memcpy(numbers.data(), received.at(), sizeof numbers).wait();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(numbers[i], 2 * static_cast<float>(23 - i));
  }
  const long* const first = told.as<long>();
  EXPECT_EQ(std::vector<long>(first, first + 11),
            (std::vector<long>{sizeof(right_view), sizeof(relaxed_view), 32, kDLFloat, 23, 23,
                               -6, 1, 1, 23, 24}));
}

}  // namespace test_to_mdspan
