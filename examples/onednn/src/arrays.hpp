// SPDX-License-Identifier: Apache-2.0
//
// Arrays of Python on their way to oneDNN and back.
#pragma once

#include "place.hpp"

#include <nanobind/nanobind.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/nanobind.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace onednn_ops {

/// An array, and the memory object over it, which does not keep it.
struct argument {
  usm_dlpack::managed_tensor tensor;
  dnnl::memory memory;

  dnnl::memory::desc desc() const { return memory.get_desc(); }
  dnnl::memory::dims shape() const { return memory.get_desc().get_dims(); }
};

/// Who orders the work on an array before the queue's.
enum class order {
  by_stream,  ///< DLPack: the queue is handed over as `stream`
  by_caller,  ///< the caller, by events or an in-order queue
};

/// Takes an array of any library that usm_dlpack takes.
/// @throws conversion_error as `onednn_dlpack::make_memory`; nb::python_error what the array
///         raises
argument take(nanobind::handle array, const place& where, order how, bool writable = false);

/// The dtype of a name, as `usm_dlpack.DLPackTensor.dtype` prints it, among oneDNN's.
/// @throws conversion_error `dtype_unsupported`
dnnl::memory::data_type data_type_of(const std::string& name);

/// A descriptor in C order.
dnnl::memory::desc compact(const dnnl::memory::dims& shape, dnnl::memory::data_type type);

/// A new array in device USM, of which Python gets a `usm_dlpack.DLPackTensor`.
class result {
 public:
  result(const place& where, const dnnl::memory::desc& desc);

  const dnnl::memory& memory() const noexcept { return memory_; }
  /// The bytes, of which there is at least one.
  std::uint8_t* data() const noexcept { return bytes_.data(); }

  /// Gives it to Python. Nobody waits: the tensor knows the queue.
  /// @param kept what the work reads; freed after the array, which waits for its queue
  template <class... Kept>
  nanobind::object to_python(Kept&&... kept) && {
    return described(nanobind::cast(
        usm_dlpack::owned_view<view>(std::move(bytes_), std::forward<Kept>(kept)...)));
  }

 private:
  using view = usm_dlpack::device_mdspan<
      Kokkos::mdspan<std::uint8_t, Kokkos::dextents<std::int64_t, 1>>>;

  nanobind::object described(const nanobind::object& bytes) const;

  usm_dlpack::usm_array<view> bytes_;
  dnnl::memory memory_;
};

}  // namespace onednn_ops
