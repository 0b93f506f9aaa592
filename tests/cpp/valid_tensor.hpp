// SPDX-License-Identifier: Apache-2.0
//
// What most tests include: builders of valid DLTensors, bare and managed. Each test spoils one
// field, so that each refusal has one cause.
#pragma once

#include <mdspan_under_test.hpp>
#include <refusal.hpp>

#include <usm_dlpack/core.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace usm_dlpack_test {

using namespace usm_dlpack;

/// What tests without a device put into `device`.
inline constexpr DLDevice some_device{kDLOneAPI, 3};

/// The owner of memory that a test keeps itself.
struct no_owner {};

template <class Integers>
DLTensor tensor_of(void* data, Integers& shape, Integers& strides,
                   DLDataType dtype = {kDLFloat, 32, 1}) {
  const auto rank = static_cast<std::int32_t>(shape.size());
  return {data, some_device, rank, dtype, shape.data(), strides.data(), 0};
}

/// 2 by 3 elements of float32 in C order, on `some_device`; memory, shape and strides inside.
struct valid_tensor {
  alignas(64) std::array<float, 6> elements{0, 1, 2, 3, 4, 5};
  std::array<std::int64_t, 2> shape{2, 3};
  std::array<std::int64_t, 2> strides{3, 1};
  DLTensor tensor = tensor_of(elements.data(), shape, strides);

  valid_tensor() = default;
  valid_tensor(const valid_tensor&) = delete;
  valid_tensor& operator=(const valid_tensor&) = delete;
};

/// float32 of any shape and strides; the first element is in the middle of 1024.
struct strided_tensor {
  alignas(64) std::array<float, 1024> elements{};
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  DLTensor tensor = tensor_of(&elements[512], shape, strides);

  strided_tensor(std::vector<std::int64_t> all_extents, std::vector<std::int64_t> all_strides)
      : shape(std::move(all_extents)), strides(std::move(all_strides)) {}
  strided_tensor(const strided_tensor&) = delete;
  strided_tensor& operator=(const strided_tensor&) = delete;
};

/// A managed tensor as a foreign producer would hand it over, of version 1.0 and without flags
/// if it has them; counts the calls of its deleter.
template <class Managed, class Valid = valid_tensor>
struct foreign_tensor {
  Valid valid;
  int deleted = 0;
  Managed managed{};

  foreign_tensor() {
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) managed.version = {1, 0};
    managed.dl_tensor = valid.tensor;
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) {
      ++static_cast<foreign_tensor*>(self->manager_ctx)->deleted;
    };
  }
  foreign_tensor(const foreign_tensor&) = delete;
  foreign_tensor& operator=(const foreign_tensor&) = delete;
};

using valid_managed_tensor = foreign_tensor<DLManagedTensorVersioned>;

}  // namespace usm_dlpack_test
