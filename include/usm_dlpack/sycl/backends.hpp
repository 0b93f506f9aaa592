// SPDX-License-Identifier: Apache-2.0
//
// The table of backends: their names, and the queries of those that have a file in backends/.
// A new backend is a row here and a file there.
#pragma once

#include <usm_dlpack/sycl/backends/backend.hpp>
#include <usm_dlpack/sycl/backends/cuda.hpp>
#include <usm_dlpack/sycl/backends/level_zero.hpp>
#include <usm_dlpack/sycl/backends/opencl.hpp>

#include <memory>

namespace usm_dlpack {
namespace detail {

struct backend_row {
  sycl::backend backend;
  const char* name;  ///< as in ONEAPI_DEVICE_SELECTOR
  /// Makes the queries of a platform. If it returns null or throws a sycl::exception, SYCL is
  /// queried. Null for a backend without a file in backends/.
  std::shared_ptr<const backend_queries> (*make)(const queried_platform& platform) = nullptr;
};

inline constexpr backend_row backend_rows[] = {
    {sycl::backend::opencl, "opencl", &opencl_queries::make},
    {sycl::backend::ext_oneapi_level_zero, "level_zero", &level_zero_queries::make},
    {sycl::backend::ext_oneapi_cuda, "cuda", &cuda_queries::make},
    {sycl::backend::ext_oneapi_hip, "hip"},
    {sycl::backend::ext_oneapi_native_cpu, "native_cpu"},
};

constexpr backend_row row_of(sycl::backend backend) noexcept {
  for (const backend_row& row : backend_rows) {
    if (row.backend == backend) {
      return row;
    }
  }
  return {backend, "unknown"};
}

/// The queries of a platform: those of its backend, or else SYCL's own.
inline std::shared_ptr<const backend_queries> make_queries(const queried_platform& platform) {
  const backend_row row = row_of(platform.sycl_platform.get_backend());
  std::shared_ptr<const backend_queries> queries;
  if (row.make != nullptr) {
    try {
      queries = row.make(platform);
    } catch (const sycl::exception&) {  // SYCL is queried instead
    }
  }
  return queries ? queries : std::make_shared<const backend_queries>(platform.context);
}

}  // namespace detail

/// The name of a backend, as in ONEAPI_DEVICE_SELECTOR.
constexpr const char* to_string(sycl::backend backend) noexcept {
  return detail::row_of(backend).name;
}

}  // namespace usm_dlpack
