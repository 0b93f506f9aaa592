// SPDX-License-Identifier: Apache-2.0
//
// sycl/to_mdspan.hpp: views whose type names the USM kind. Wherever SYCL is asked, the memory
// is of that kind, out and in.
#include "usm_memory.hpp"

namespace test_to_mdspan {

using namespace usm_dlpack_test;

using view = md::mdspan<float, md::dextents<std::int64_t, 2>>;
using const_view = md::mdspan<const float, md::dextents<std::int64_t, 2>>;

template <alloc Kind, class View = view>
using view_in = detail::view_of_kind<View, Kind>;

template <class Act>
void for_each_kind(const Act& act) {
  act(std::integral_constant<alloc, alloc::host>{});
  act(std::integral_constant<alloc, alloc::device>{});
  act(std::integral_constant<alloc, alloc::shared>{});
}

std::string usm(alloc kind) { return std::string(to_string(kind)) + " USM"; }

TEST(UsmMdspan, AViewIsExportedIfItsMemoryIsOfTheKindThatItsTypeNames) {
  const sycl::queue queue = queue_on();
  for_each_kind([&](auto says) {
    for (const alloc is : usm_kinds) {
      SCOPED_TRACE(usm_dlpack::to_string(is));
      const usm_memory memory(is, usm_tensor::size, queue);
      const view_in<says> of_kind(memory.as<float>(), 4, 6);
      const view_in<says> empty(memory.as<float>(), 0, 6);  // is of any kind
      with_each_place(queue, [&](const auto&... place) {
        EXPECT_EQ(to_dlpack_tensor(empty, place...).data(), nullptr);
        if (says == is) {
          EXPECT_EQ(to_dlpack_tensor(of_kind, place...).data(), memory.at());
        } else {
          EXPECT_REFUSAL(to_dlpack_tensor(of_kind, place...), errc::usm_type_not_accepted,
                         "data", usm(says) + ", as the type of the view says", usm(is));
        }
      });
    }
    const usm_memory memory(says, usm_tensor::size, queue);
    const view_in<says, const_view> read_only(memory.as<float>(), 4, 6);
    const managed_tensor managed =
        to_managed_tensor(read_only, DLDevice{kDLOneAPI, 0}, no_owner{});
    EXPECT_EQ(managed->flags, flag::read_only);
    EXPECT_EQ(validate(*managed).usm_type(), says);
  });
}

TEST(UsmMdspan, ATensorBecomesAViewIfItsMemoryIsOfTheKindThatItsTypeNames) {
  for_each_kind([](auto says) {
    using wanted = view_in<says>;
    for (const alloc is : usm_kinds) {
      SCOPED_TRACE(usm_dlpack::to_string(is));
      const usm_tensor valid(is);
      usm_managed_tensor versioned;
      versioned.managed.dl_tensor = valid.tensor;
      DLManagedTensor legacy{};
      legacy.dl_tensor = valid.tensor;
      const auto expect_from = [&](const auto& tensor) {
        if (says == is) {
          EXPECT_EQ(to_mdspan<wanted>(tensor).data_handle(), valid.memory.as<float>());
          EXPECT_EQ(to_mdspan<wanted>(tensor).extent(1), 6);
        } else {
          EXPECT_REFUSAL(to_mdspan<wanted>(tensor), errc::usm_type_not_accepted, "data",
                         usm(says), usm(is));
        }
      };
      expect_from(valid.tensor);
      expect_from(versioned.managed);
      expect_from(legacy);
    }
    usm_tensor empty;
    empty.shape[0] = 0;
    empty.tensor.data = nullptr;
    EXPECT_EQ(to_mdspan<wanted>(empty.tensor).extent(0), 0);
  });
}

TEST(UsmMdspan, AReadOnlyTensorNeedsConstElements) {
  usm_managed_tensor given;
  given.managed.flags = flag::read_only;
  EXPECT_REFUSAL(to_mdspan<device_mdspan<view>>(given.managed), errc::read_only, "flags");
  EXPECT_EQ(to_mdspan<device_mdspan<const_view>>(given.managed).extent(1), 6);
  requirements wanted;
  EXPECT_REFUSAL(to_mdspan<view>(given.managed, wanted), errc::read_only, "flags");
  wanted.writable = true;
  EXPECT_REFUSAL(to_mdspan<const_view>(given.managed, wanted), errc::read_only, "flags");
}

TEST(UsmMdspan, WhatTheTensorMustBeIsAskedForWithTheView) {
  const usm_tensor shared(alloc::shared);
  requirements wanted;
  wanted.usm_types = {alloc::device};
  EXPECT_REFUSAL(to_mdspan<view>(shared.tensor, wanted), errc::usm_type_not_accepted, "data",
                 "device USM", "shared USM");
  // The type names a kind that the caller does not take.
  using shared_view = shared_mdspan<view>;
  EXPECT_REFUSAL(to_mdspan<shared_view>(shared.tensor, wanted), errc::usm_type_not_accepted,
                 "data", "no USM: usm_types has no kind, or not that of the view's type",
                 "shared USM", "add the kind to usm_types");
  wanted.usm_types.insert(alloc::shared);
  EXPECT_EQ(to_mdspan<view>(shared.tensor, wanted).data_handle(), shared.memory.as<float>());
  EXPECT_EQ(to_mdspan<shared_view>(shared.tensor, wanted).extent(1), 6);
  wanted.device_id = 3;
  EXPECT_REFUSAL(to_mdspan<shared_view>(shared.tensor, wanted), errc::device_not_accepted,
                 "device.device_id", "3, as asked for", "0");
}

TEST(UsmMdspan, ARankThatIsNotTheViewsIsRefusedBeforeTheShapeIsRead) {
  const usm_tensor valid;
  DLTensor tensor = valid.tensor;
  const auto two_extents = std::make_unique<std::int64_t[]>(2);  // no more can be read
  tensor.shape = two_extents.get();
  tensor.strides = nullptr;
  tensor.ndim = std::numeric_limits<std::int32_t>::max();
  EXPECT_REFUSAL(to_mdspan<view>(tensor, {}), errc::shape_mismatch, "ndim");
  EXPECT_REFUSAL(to_mdspan<device_mdspan<view>>(tensor), errc::shape_mismatch, "ndim");
}

}  // namespace test_to_mdspan
