// SPDX-License-Identifier: Apache-2.0
//
// `check_structure` and `to_mdspan` of any descriptor agree with the oracle. A tensor that is
// refused breaks the rule that the refusal names; one that breaks none is taken, spans the
// bytes that the oracle finds, has every element where the oracle has it, and is exported as
// it was. The arrays of a descriptor may be read; everything else is as hostile as the bytes
// of the input say.
#include "oracle.hpp"

#include <usm_dlpack/core.hpp>

#include <mdspan/mdspan.hpp>

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace {

/// Aligned to more than its scalar, as the vector types of compilers are.
struct alignas(16) float_x4 {
  float lanes[4];
};

}  // namespace

template <>
struct usm_dlpack::data_type_of<float_x4> {
  static constexpr DLDataType value{kDLFloat, 32, 4};
};

namespace {

using namespace usm_dlpack_fuzz;
using usm_dlpack::layout_relaxed;

// --- Bytes become tensors -------------------------------------------------------------------

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
    constexpr std::int64_t two_to_31 = std::int64_t{1} << 31;
    constexpr std::array<std::int64_t, 8> ends{
        0,      max, -max - 1, two_to_31, 2 * two_to_31, two_to_31 << 31, -(two_to_31 << 30),
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

// --- check_structure ------------------------------------------------------------------------

void compare_structure(const DLTensor& tensor, bool padded) {
  const auto storage = padded ? usm_dlpack::subbyte::padded : usm_dlpack::subbyte::packed;
  const rule expected = broken_structure_rule(tensor, padded);
  usm_dlpack::tensor_structure structure;
  try {
    structure = usm_dlpack::check_structure(tensor, storage);
  } catch (const usm_dlpack::conversion_error& error) {
    require(rule(error.code(), error.field()) == expected, error.what());
    return;
  }
  require(expected == none, usm_dlpack::to_string(expected.first));
  const described_tensor d = describe(tensor, padded);
  require(structure.empty == d.empty, "empty");
  if (tensor.data == nullptr) {
    require(structure.first == 0 && structure.nbytes == 0 && structure.unique, "no data");
    return;
  }
  require(static_cast<wide>(structure.first) == d.first, "first");
  require(static_cast<wide>(structure.lowest) == d.lowest, "lowest");
  require(static_cast<wide>(structure.nbytes) == d.past_end - d.lowest, "nbytes");
  require(structure.unique || !(d.empty || strides_are_allowed(d, true)), "no overlap");
  if (structure.unique && d.count <= 4096) {
    const numbers indices = all_indices(d);
    require(std::set<wide>(indices.begin(), indices.end()).size() == indices.size(),
            "elements overlap that were proved apart");
  }
}

void fuzz_structure(byte_reader& reader, unsigned control) {
  constexpr std::array<std::uint8_t, 8> usual_bits{8, 16, 32, 64, 4, 6, 1, 128};
  const auto code =
      static_cast<std::uint8_t>((control & 1) != 0 ? reader.byte() : reader.byte() % 18);
  const auto bits = reader.byte();
  const auto lanes = reader.byte();
  fuzzed_tensor fuzzed(reader, 2);
  fuzzed.tensor.device = {static_cast<DLDeviceType>(bits), lanes};
  fuzzed.tensor.dtype = {code, (control & 2) != 0 ? bits : usual_bits[bits % 8],
                         static_cast<std::uint16_t>((control & 4) != 0 ? lanes * 257 : 1)};
  const std::int64_t data = reader.number();
  const std::int64_t usual_data = (std::int64_t{1} << 20) + data % 64;
  fuzzed.tensor.data = reinterpret_cast<void*>(
      static_cast<std::uintptr_t>((control & 8) != 0 ? data : usual_data));
  fuzzed.tensor.byte_offset = static_cast<std::uint64_t>(reader.number());
  if ((control & 16) == 0) fuzzed.tensor.byte_offset %= 64;
  compare_structure(fuzzed.tensor, (control & 32) != 0);
}

// --- to_mdspan ------------------------------------------------------------------------------

using left_padded = Kokkos::Experimental::layout_left_padded<Kokkos::dynamic_extent>;
using right_padded = Kokkos::Experimental::layout_right_padded<Kokkos::dynamic_extent>;

template <class View, class... Layouts>
constexpr bool has_layout = (std::is_same_v<typename View::layout_type, Layouts> || ...);
template <class View>
constexpr auto largest_index =
    static_cast<wide>(std::numeric_limits<typename View::index_type>::max());

template <class View>
bool layout_holds(const described_tensor& d) {
  const bool by_rows = has_layout<View, Kokkos::layout_right, right_padded>;
  if (d.empty || has_layout<View, layout_relaxed>) return true;
  if (has_layout<View, left_padded, right_padded>) {
    wide held = 0;
    return has_padded_strides(d, by_rows, held);
  }
  if (!has_layout<View, Kokkos::layout_stride>) {
    return has_strides(d, compact_strides(d.shape, by_rows));
  }
  return strides_are_allowed(d, false);
}

/// Whether the index type counts what the layout counts: the elements from the lowest to the
/// highest; all indices up to the first empty dimension, for layouts without strides of their
/// own, of a padded one from the padded dimension on; strides of rows or of columns, and the
/// span up to there, of an empty `layout_stride`.
template <class View>
bool index_type_holds(const described_tensor& d) {
  constexpr wide max = largest_index<View>;
  for (const wide extent : d.shape) {
    if (extent > max) return false;
  }
  if (!d.empty && d.highest_index - d.lowest_index + 1 > max) return false;
  if (has_layout<View, layout_relaxed>) return true;
  if (has_layout<View, Kokkos::layout_stride>) {
    return !d.empty || holds_compact_strides(d.shape, true, max) ||
           holds_compact_strides(d.shape, false, max);
  }
  if (wide held = 0; has_layout<View, left_padded, right_padded> && !d.empty &&
                     has_padded_strides(d, has_layout<View, right_padded>, held) &&
                     held > max) {
    return false;
  }
  numbers shape = d.shape;
  bool holds = indices_before_empty(shape) <= max;
  if (has_layout<View, right_padded>) {
    std::rotate(shape.begin(), shape.end() - 1, shape.end());
    holds = holds && indices_before_empty(shape) <= max;
  }
  return holds;
}

/// Every documented rule that a well-formed tensor of the view's rank breaks.
template <class View>
std::set<rule> broken_rules(const DLTensor& tensor, const described_tensor& d) {
  constexpr DLDataType wanted = usm_dlpack::data_type_v<typename View::element_type>;
  std::set<rule> broken;
  if (tensor.dtype.code != wanted.code || tensor.dtype.bits != wanted.bits ||
      tensor.dtype.lanes != wanted.lanes) {
    broken.insert({errc::dtype_mismatch, "dtype"});
  }
  for (std::size_t r = 0; r < View::rank(); ++r) {
    const std::size_t fixed = View::static_extent(r);
    if (fixed != Kokkos::dynamic_extent && static_cast<wide>(fixed) != d.shape[r]) {
      broken.insert({errc::shape_mismatch, "shape[" + std::to_string(r) + "]"});
    }
  }
  if (!d.empty && d.first % alignof(typename View::element_type) != 0) {
    broken.insert({errc::data_misaligned, "byte_offset"});
  }
  if (!index_type_holds<View>(d)) broken.insert({errc::index_type_too_small, ""});
  if (!layout_holds<View>(d)) broken.insert({errc::layout_mismatch, ""});
  return broken;
}

template <class View, std::size_t... R>
void compare_elements(const View& view, const described_tensor& d, std::index_sequence<R...>) {
  wide number = 0;
  for (const wide index : all_indices(d)) {
    std::array<typename View::index_type, sizeof...(R) + 1> at{};
    wide left = number++;
    for (std::size_t r = sizeof...(R); r-- > 0; left /= d.shape[r]) {
      at[r] = static_cast<typename View::index_type>(left % d.shape[r]);
    }
    const auto offset = static_cast<std::size_t>(view.mapping()(at[R]...));
    const auto* element = &view.accessor().access(view.data_handle(), offset);
    require(static_cast<wide>(reinterpret_cast<std::uintptr_t>(element)) ==
                d.first + index * d.element_bits / 8,
            "the address of an element");
  }
}

/// A view is exported as the tensor that it was made of, bare and managed. Strides of extent
/// 1, and of an empty view, are the view's own.
template <class View>
void compare_exported(const View& view, const described_tensor& d) {
  constexpr DLDevice device{kDLOneAPI, 3};
  const auto wrapper = usm_dlpack::to_dlpack_tensor(view, device);
  const auto managed = usm_dlpack::to_managed_tensor(view, device, std::monostate{});
  for (const DLTensor& tensor : {wrapper.get(), managed->dl_tensor}) {
    require(tensor.device.device_type == kDLOneAPI && tensor.device.device_id == 3, "device");
    require(usm_dlpack::same_data_type(tensor.dtype,
                                       usm_dlpack::data_type_v<typename View::element_type>),
            "the dtype of an export");
    const described_tensor exported = describe(tensor, false);
    require(exported.shape == d.shape, "the shape of an export");
    if (d.empty) continue;
    require(exported.first == d.first, "the first element of an export");
    if constexpr (View::rank() != 0) {  // mappings of rank 0 may have no `stride`
      for (std::size_t r = 0; r < View::rank(); ++r) {
        require(exported.strides[r] == static_cast<wide>(view.mapping().stride(r)),
                "a stride of an export");
      }
    }
  }
}

template <class View>
void compare_taken(const View& view, const described_tensor& d, bool has_data) {
  for (std::size_t r = 0; r < View::rank(); ++r) {
    require(static_cast<wide>(view.extent(r)) == d.shape[r], "an extent");
  }
  compare_exported(view, d);
  if constexpr (has_layout<View, Kokkos::layout_stride>) {
    const auto strides = view.mapping().strides();
    require(strides_are_allowed(d.shape, {strides.begin(), strides.end()}), "the strides");
  }
  if (d.empty) {
    const auto handle = reinterpret_cast<std::uintptr_t>(view.data_handle());
    require(handle == (has_data ? static_cast<std::uintptr_t>(d.first) : 0), "the handle");
    return;
  }
  // Kokkos' left padded mapping adds the first extent before it subtracts the padded one.
  const wide span = d.highest_index - d.lowest_index + 1;
  if (2 * span <= largest_index<View>) {
    require(static_cast<wide>(view.mapping().required_span_size()) == span,
            "the size of the span");
  }
  if (d.count <= 4096) compare_elements(view, d, std::make_index_sequence<View::rank()>{});
}

template <class View, class Tensor>
void compare(const Tensor& given, const DLTensor& tensor, bool padded, std::set<rule> broken) {
  const bool of_the_rank = tensor.ndim == static_cast<std::int32_t>(View::rank());
  if (broken.empty() && tensor.ndim >= 0 && !of_the_rank) {
    broken = {{errc::shape_mismatch, "ndim"}};
  } else if (broken.empty()) {
    const rule structural = broken_structure_rule(tensor, padded);
    broken = structural != none ? std::set<rule>{structural}
                                : broken_rules<View>(tensor, describe(tensor, padded));
  }
  try {
    const View view = usm_dlpack::to_mdspan<View>(given);
    require(broken.empty(), "a tensor was taken that breaks a rule");
    compare_taken(view, describe(tensor, padded), tensor.data != nullptr);
  } catch (const usm_dlpack::conversion_error& error) {
    require(
        broken.count({error.code(), error.field()}) + broken.count({error.code(), ""}) == 1,
        error.what());
  }
}

/// The rules of version and flags, of which the first broken one is refused.
template <class View>
std::set<rule> broken_header_rule(const DLManagedTensorVersioned& managed) {
  if (managed.version.major != 1) return {{errc::version_unsupported, "version.major"}};
  if (managed.flags > 7) return {{errc::version_unsupported, "flags"}};
  const bool writable = !std::is_const_v<typename View::element_type>;
  if (writable && managed.flags % 2 == 1) return {{errc::read_only, "flags"}};
  return {};
}

template <class View>
void fuzz_view(byte_reader& reader, unsigned control) {
  fuzzed_tensor fuzzed(reader, static_cast<int>(View::rank()));
  DLTensor& tensor = fuzzed.tensor;
  tensor.dtype = usm_dlpack::data_type_v<typename View::element_type>;
  if ((control & 0x30) == 0x30) {
    tensor.dtype = {reader.byte(), reader.byte(), reader.byte()};
  }
  tensor.data = reinterpret_cast<void*>(std::uintptr_t{1} << 20 | reader.byte() % 4U * 16U);
  if ((control & 0xc0) == 0xc0) tensor.data = nullptr;
  const std::int64_t offset = reader.number();
  tensor.byte_offset =
      static_cast<std::uint64_t>((control & 0x08) != 0 ? offset : offset % 4 * 16);
  if ((control & 0x07) != 0) {
    compare<View>(tensor, tensor, false, {});
    return;
  }
  DLManagedTensorVersioned managed{};
  managed.version = {reader.byte() % 4U == 3U ? 2U : 1U, 0};
  managed.flags = reader.byte() % 16;
  managed.dl_tensor = tensor;
  compare<View>(managed, tensor, managed.flags / 4 % 2 == 1,
                broken_header_rule<View>(managed));
}

template <class Element, class Index, std::size_t Rank, class Layout>
using view = Kokkos::mdspan<Element, Kokkos::dextents<Index, Rank>, Layout>;
constexpr std::size_t any = Kokkos::dynamic_extent;

constexpr std::array<void (*)(byte_reader&, unsigned), 18> targets{
    fuzz_structure,
    fuzz_view<view<float, int, 3, Kokkos::layout_right>>,
    fuzz_view<view<int, std::uint8_t, 3, Kokkos::layout_right>>,
    fuzz_view<view<int, int, 3, Kokkos::layout_left>>,
    fuzz_view<view<const double, std::int64_t, 3, Kokkos::layout_left>>,
    fuzz_view<view<int, int, 3, left_padded>>,
    fuzz_view<view<short, std::int64_t, 4, right_padded>>,
    fuzz_view<view<short, std::int8_t, 2, right_padded>>,
    fuzz_view<view<float_x4, int, 2, Kokkos::layout_stride>>,
    fuzz_view<view<unsigned char, std::uint8_t, 3, Kokkos::layout_stride>>,
    fuzz_view<view<short, std::int64_t, 4, Kokkos::layout_stride>>,
    fuzz_view<view<const float, std::int8_t, 2, Kokkos::layout_stride>>,
    fuzz_view<view<short, std::int8_t, 2, layout_relaxed>>,
    fuzz_view<view<const unsigned char, std::uint64_t, 4, layout_relaxed>>,
    fuzz_view<view<double, unsigned, 3, layout_relaxed>>,
    fuzz_view<Kokkos::mdspan<std::complex<float>, Kokkos::extents<int>>>,
    fuzz_view<Kokkos::mdspan<float, Kokkos::extents<int, 2, any>, Kokkos::layout_stride>>,
    fuzz_view<Kokkos::mdspan<const bool, Kokkos::extents<short, any, 3>, layout_relaxed>>,
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  byte_reader reader(bytes, size);
  const unsigned which = reader.byte();
  const unsigned control = reader.byte();
  targets[which % targets.size()](reader, control);
  return 0;
}
