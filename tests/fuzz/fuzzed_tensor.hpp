// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes -> a DLTensor whose arrays may be read, and everything else as hostile as
// the bytes say; with numbers that are small, at the ends of their types, or any.
#pragma once

#include <usm_dlpack/core/config.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace usm_dlpack_fuzz {

/// Takes values from bytes, and zeros behind their end.
class byte_reader {
 public:
  byte_reader(const std::uint8_t* bytes, std::size_t size) : next_(bytes), left_(size) {}

  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *next_++;
  }

  std::int64_t raw() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return static_cast<std::int64_t>(value);
  }

  /// A number of any size for 5 of 64 bytes, and a small one for all others.
  std::int64_t number() {
    constexpr auto max = std::numeric_limits<std::int64_t>::max();
    constexpr std::array<std::int64_t, 8> ends{0,
                                               max,
                                               -max - 1,
                                               std::int64_t{1} << 31,
                                               std::int64_t{1} << 32,
                                               std::int64_t{1} << 62,
                                               -(std::int64_t{1} << 61),
                                               max / 8};
    const unsigned kind = byte();
    const std::int64_t small = static_cast<std::int8_t>(byte());
    switch (kind % 64) {
      case 0: return raw();
      case 1: return ends[static_cast<std::uint8_t>(small) % 8];
      case 2: return ends[static_cast<std::uint8_t>(small) % 8] ^ 1;
      case 3: return small;
      case 4: return small * 100;
      default: return small % 8;
    }
  }

 private:
  const std::uint8_t* next_;
  std::size_t left_;
};

/// A tensor of up to eight dimensions that owns its shape and strides.
struct fuzzed_tensor {
  std::array<std::int64_t, 8> shape{};
  std::array<std::int64_t, 8> strides{};
  DLTensor tensor{};

  /// Reads ndim, shape and strides; `wanted_ndim` half of the time.
  fuzzed_tensor(byte_reader& bytes, int wanted_ndim) {
    const unsigned control = bytes.byte();
    tensor.device = {kDLOneAPI, 0};
    tensor.ndim = (control & 1) != 0 ? wanted_ndim : static_cast<int>(bytes.byte() % 10) - 1;
    for (std::size_t r = 0; r < 8 && static_cast<int>(r) < tensor.ndim; ++r) {
      shape[r] = bytes.number();
      shape[r] = shape[r] < 0 && (control & 2) == 0 ? -(shape[r] + 1) : shape[r];
      strides[r] = bytes.number();
    }
    tensor.shape = (control & 0x1c) == 0x1c ? nullptr : shape.data();
    tensor.strides = (control & 0x60) == 0x60 ? nullptr : strides.data();
    if ((control & 0x80) != 0) nest_strides(bytes.byte());
  }
  fuzzed_tensor(const fuzzed_tensor&) = delete;
  fuzzed_tensor& operator=(const fuzzed_tensor&) = delete;

 private:
  /// Replaces strides by those of compact rows or columns over the strides that stay.
  void nest_strides(unsigned choice) {
    const std::size_t ndim =
        tensor.ndim < 0 ? 0 : std::min<std::size_t>(8, static_cast<std::size_t>(tensor.ndim));
    std::uint64_t next = 1;
    for (std::size_t k = 0; k < ndim; ++k) {
      const std::size_t r = (choice & 1) != 0 ? k : ndim - 1 - k;
      if ((choice >> (r + 1) & 1) == 0) strides[r] = static_cast<std::int64_t>(next);
      next = static_cast<std::uint64_t>(strides[r]) * static_cast<std::uint64_t>(shape[r]);
    }
  }
};

}  // namespace usm_dlpack_fuzz
