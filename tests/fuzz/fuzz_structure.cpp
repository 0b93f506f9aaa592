// SPDX-License-Identifier: Apache-2.0
//
// `check_structure` of any descriptor says what the oracle says: which rule is broken first,
// or which bytes the tensor spans; and it proves no more than what visiting every element
// shows.
#include "fuzzed_tensor.hpp"
#include "oracle.hpp"

#include <usm_dlpack/core/structure.hpp>

#include <algorithm>
#include <vector>

namespace {

using namespace usm_dlpack_fuzz;

void compare_with_every_element(const described_tensor& d,
                                const usm_dlpack::tensor_structure& structure) {
  const std::vector<wide> indices = all_indices(d);
  std::set<wide> bits;
  bool overlap = false;
  for (const wide index : indices) {
    for (wide bit = 0; bit < d.element_bits; ++bit) {
      overlap = !bits.insert(d.first * 8 + index * d.element_bits + bit).second || overlap;
    }
  }
  require(static_cast<wide>(structure.lowest) == *bits.begin() / 8, "lowest");
  require(static_cast<wide>(structure.nbytes) == *bits.rbegin() / 8 + 1 - *bits.begin() / 8,
          "nbytes");
  require(!(structure.unique && overlap), "elements overlap that were proved apart");
}

void compare(const DLTensor& tensor, bool padded) {
  const auto storage = padded ? usm_dlpack::subbyte::padded : usm_dlpack::subbyte::packed;
  const errc expected = broken_structure_rule(tensor, padded);
  usm_dlpack::tensor_structure structure;
  try {
    structure = usm_dlpack::check_structure(tensor, storage);
  } catch (const usm_dlpack::conversion_error& error) {
    require(error.code() == expected, error.what());
    return;
  }
  require(expected == none, usm_dlpack::to_string(expected));
  const described_tensor d = describe(tensor, padded);
  require(structure.empty == d.empty, "empty");
  if (tensor.data == nullptr) {
    require(structure.first == 0 && structure.nbytes == 0 && structure.unique, "no data");
    return;
  }
  require(static_cast<wide>(structure.first) == d.first, "first");
  require(static_cast<wide>(structure.lowest) == d.lowest, "lowest");
  require(static_cast<wide>(structure.nbytes) == d.past_end - d.lowest, "nbytes");
  if (!d.empty && d.count * d.element_bits <= 4096) compare_with_every_element(d, structure);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  byte_reader reader(bytes, size);
  const unsigned control = reader.byte();
  const auto code =
      static_cast<std::uint8_t>((control & 1) != 0 ? reader.byte() : reader.byte() % 18);
  const auto bits = reader.byte();
  const auto lanes = reader.byte();
  constexpr std::array<std::uint8_t, 8> usual_bits{8, 16, 32, 64, 4, 6, 1, 128};
  fuzzed_tensor fuzzed(reader, 2);
  fuzzed.tensor.dtype = {code, (control & 2) != 0 ? bits : usual_bits[bits % 8],
                         static_cast<std::uint16_t>((control & 4) != 0 ? lanes * 257 : 1)};
  const std::int64_t data = reader.number();
  const std::int64_t usual_data = (std::int64_t{1} << 20) + data % 64;
  fuzzed.tensor.data = reinterpret_cast<void*>(
      static_cast<std::uintptr_t>((control & 8) != 0 ? data : usual_data));
  fuzzed.tensor.byte_offset = static_cast<std::uint64_t>(reader.number());
  if ((control & 16) == 0) fuzzed.tensor.byte_offset %= 64;
  compare(fuzzed.tensor, (control & 32) != 0);
  return 0;
}
