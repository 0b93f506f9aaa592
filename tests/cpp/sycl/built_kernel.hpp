// SPDX-License-Identifier: Apache-2.0
//
// Kernels for tests, built at run time by DPC++'s kernel compiler: the tests are compiled for
// the host alone. The name of a test that builds one has the word Kernel in it.
#pragma once

#include <gtest/gtest.h>
#include <sycl/sycl.hpp>

#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace usm_dlpack_test {

/// The options that let a kernel include this library, dlpack.h and mdspan.
inline std::vector<std::string> include_options() {
  const char* const folders = std::getenv("USM_DLPACK_TEST_INCLUDES");
  if (folders == nullptr) {
    throw std::runtime_error(
        "USM_DLPACK_TEST_INCLUDES: expected the folders of headers, found it unset; "
        "run the tests with ctest");
  }
  std::vector<std::string> options;
  std::istringstream rest(folders);
  for (std::string folder; std::getline(rest, folder, ':');) {
    options.push_back("-I" + folder);
  }
  return options;
}

/// Builds a kernel; the log must be empty, because what cannot run on a device is only told
/// there.
inline sycl::kernel built_kernel(const sycl::queue& queue, const std::string& source,
                                 const std::string& name) {
  namespace experimental = sycl::ext::oneapi::experimental;
  auto from_source = experimental::create_kernel_bundle_from_source(
      queue.get_context(), experimental::source_language::sycl, source);
  std::string log;
  auto built = experimental::build(
      from_source, experimental::properties{experimental::build_options{include_options()},
                                            experimental::save_log{&log}});
  EXPECT_EQ(log, "");
  return built.ext_oneapi_get_kernel(name);
}

}  // namespace usm_dlpack_test
