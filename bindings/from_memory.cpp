// SPDX-License-Identifier: Apache-2.0
//
// The array interface and the arguments describe a view, which is then proved: well formed, in
// the context and on the device that the object names, and within the object's bytes.
#include "from_memory.hpp"

#include "arguments.hpp"
#include "dtypes.hpp"
#include "process.hpp"
#include "tensor.hpp"
#include "trace.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace usm_dlpack::python {
namespace {

constexpr wide_int one_past_addresses = wide_int{1} << 64;

bool is_address(wide_int address) noexcept {
  return address >= 0 && address < one_past_addresses;
}

/// The array interface of an object; each field is checked on its own.
struct array_interface {
  std::uintptr_t data = 0;
  bool readonly = false;
  integers shape;
  std::optional<integers> strides;  ///< in elements
  element_type element;
  std::int64_t bits = 0;      ///< of an element in memory
  std::int64_t itemsize = 0;  ///< bytes of an element, rounded up
  wide_int offset = 0;        ///< from `data` to the first element, in elements
  nb::object syclobj;         ///< as in the interface; invalid for a DLPackTensor
  const tensor* own = nullptr;
  wide_int begin = 0, end = 0;  ///< address of the lowest element, and past the highest

  wide_int first() const noexcept { return data + offset * itemsize; }
  bool is_empty() const noexcept {
    return std::find(shape.values.begin(), shape.values.end(), 0) != shape.values.end();
  }
};

/// Whether the elements are in C order without gaps.
bool is_compact(const array_interface& base) noexcept {
  wide_int expected = 1;
  for (std::size_t r = base.shape.values.size(); base.strides && r-- > 0;) {
    const std::int64_t extent = base.shape.values[r];
    if (extent != 1 && base.strides->values[r] != expected) {
      return base.is_empty();
    }
    expected *= extent;  // fits: both factors were an int64_t
  }
  return true;
}

bool is_dpctl_memory(nb::handle object) {
  static kept_object kinds;
  return is_instance(object, kinds.get([] {
    const nb::object memory = nb::module_::import_("dpctl.memory");
    return nb::make_tuple(memory.attr("MemoryUSMDevice"), memory.attr("MemoryUSMHost"),
                          memory.attr("MemoryUSMShared"));
  }));
}

[[noreturn]] void refuse_field(const std::string& found) {
  PyErr_SetString(PyExc_ValueError, found.c_str());
  throw nb::python_error();
}

bool is_known_version(nb::handle version) {
  // A NumPy array raises ValueError.
  return attempt({PyExc_ValueError}, [&] { return version.equal(nb::int_(1)); })
      .value_or(false);
}

/// Reads the address as a Python int, and the read-only flag.
std::pair<nb::object, bool> read_data(nb::handle data) {
  const auto found = attempt({PyExc_TypeError, PyExc_ValueError}, [&] {
    const auto [address, readonly] = to_pair(data);
    return std::pair(checked(PyNumber_Index(address.ptr())),
                     static_cast<bool>(nb::bool_(readonly)));
  });
  if (!found) {
    refuse_field("the data " + text_of(data));
  }
  return *found;
}

wide_int read_offset(nb::handle offset) {
  const auto number =
      attempt({PyExc_TypeError}, [&] { return checked(PyNumber_Index(offset.ptr())); });
  if (!number) {
    refuse_field("the offset " + text_of(offset));
  }
  return to_wide(*number);
}

/// Sets `begin` and `end`, limited to the range of addresses.
void find_span(array_interface& made) {
  const std::vector<std::int64_t>& shape = made.shape.values;
  const bool empty = made.is_empty();
  wide_int low = 0;
  wide_int count = empty ? 0 : 1;
  for (std::size_t r = 0; r < shape.size() && !empty; ++r) {
    if (!made.strides) {
      count = std::min(count * std::max<std::int64_t>(shape[r], 0), one_past_addresses - 1);
    } else {
      const wide_int reach = (wide_int{shape[r]} - 1) * made.strides->values[r];
      low = std::max(low + std::min(reach, wide_int{0}), -one_past_addresses);
      count = std::min(count + (reach < 0 ? -reach : reach), one_past_addresses - 1);
    }
  }
  made.begin = made.first() + low * made.itemsize;
  made.end = made.begin + count * made.itemsize;
}

void read_fields(nb::handle interface, array_interface& made) {
  const nb::object version = interface["version"];
  if (!is_known_version(version)) {
    refuse_field("the version " + text_of(version));
  }
  nb::object address;
  std::tie(address, made.readonly) = read_data(interface["data"]);
  made.shape = read_integers("shape", interface["shape"]);
  const nb::handle strides = PyDict_GetItemString(interface.ptr(), "strides");
  if (strides.is_valid() && !strides.is_none()) {
    made.strides = read_integers("strides", nb::borrow(strides));
  }
  const nb::object typestr = interface["typestr"];
  const nb::object offset = nb::borrow(PyDict_GetItemString(interface.ptr(), "offset"));
  made.offset = offset.is_valid() ? read_offset(offset) : 0;
  made.syclobj = interface["syclobj"];
  if (!is_address(to_wide(address))) {
    refuse_field("the address " + text_of(address));
  }
  made.data = static_cast<std::uintptr_t>(to_wide(address));
  if (PyUnicode_Check(typestr.ptr()) == 0) {  // NumPy reads None as float64
    refuse_field("the typestr " + text_of(typestr));
  }
  const std::size_t ndim = made.shape.values.size();
  if (made.strides && made.strides->values.size() != ndim) {
    refuse_field(std::to_string(made.strides->values.size()) + " strides for " +
                 std::to_string(ndim) + " dimensions");
  }
  std::tie(made.element.dtype, made.itemsize) = read_typestr(typestr);
  made.bits = 8 * made.itemsize;
  if (!is_address(made.first())) {
    refuse_field("the offset " + text_of(offset) + ", which leads to no address");
  }
  find_span(made);
}

std::string text_of_error(const nb::python_error& error) {
  const nb::object text = nb::str(error.value());
  const char* plain = PyUnicode_AsUTF8AndSize(text.ptr(), nullptr);
  PyErr_Clear();  // lone surrogates
  return plain == nullptr ? text_of(text) : plain;
}

/// Reads a DLPackTensor, also of a dtype that has no type string.
array_interface read_tensor(nb::handle object) {
  check_ready(object);
  const tensor& source = *nb::inst_ptr<tensor>(object);
  const DLTensor described = source.get();
  array_interface made;
  made.own = &source;
  made.data = reinterpret_cast<std::uintptr_t>(described.data);
  made.element = {source.dtype(), detail::storage_of(source.flags())};
  made.readonly = source.readonly();
  made.shape.values.assign(source.shape(), source.shape() + source.ndim());
  made.strides.emplace().values.assign(source.strides(), source.strides() + source.ndim());
  made.bits = made.element.bits();
  made.itemsize = (made.bits + 7) / 8;
  made.begin = source.proof().structure().lowest;
  made.end = made.begin + source.proof().structure().nbytes;
  return made;
}

nb::object find_interface(nb::handle object) {
  static PyObject* const name = PyUnicode_InternFromString("__sycl_usm_array_interface__");
  nb::object found = nb::steal(PyObject_GetAttr(object.ptr(), name));
  if (found.is_valid()) {
    return found;
  }
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) {
    throw nb::python_error();
  }
  nb::python_error raised;
  if (PyObject_HasAttr(object.type().ptr(), name) == 1) {  // the error says why it has none
    const std::string text = text_of_error(raised);
    nb::raise_from(raised, PyExc_TypeError, "%s", text.c_str());
  }
  return nb::none();
}

/// Reads an object's array interface, or a DLPackTensor of any dtype; valid as long as the
/// object.
/// @throws nb::python_error TypeError for an object without interface, ValueError for fields
///         that are not as dpctl documents them, and what the object itself raises
array_interface read_array_interface(nb::handle object) {
  if (has_tensor_type(object)) {
    return read_tensor(object);
  }
  const nb::object interface = find_interface(object);
  if (PyDict_Check(interface.ptr()) == 0) {
    refuse_argument(PyExc_TypeError, "obj", "an object with __sycl_usm_array_interface__",
                    "one of type " + name_of_type(object),
                    "pass dpctl.memory or a dpnp array, or use from_dlpack");
  }
  array_interface made;
  try {
    read_fields(interface, made);
  } catch (nb::python_error& error) {
    const bool missing = error.matches(PyExc_KeyError);
    if (!missing && !error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError)) {
      throw;
    }
    const std::string text = (missing ? "none of " : "") + text_of_error(error);
    nb::raise_from(
        error, PyExc_ValueError,
        "__sycl_usm_array_interface__: expected data, shape, strides, typestr, "
        "version 1 and syclobj as dpctl documents them, found %s; correct the object "
        "that offers it",
        text.c_str());
  }
  // dpctl.memory reports writable memory as read-only.
  made.readonly = made.readonly && !is_dpctl_memory(object);
  return made;
}

/// Finds the memory that an array is a part of, if the array's first element is in it.
bool find_memory(nb::object& object, array_interface& base) {
  // The attributes of dpctl.tensor and dpnp.tensor, of arrays like NumPy's, and of dpnp.
  for (const char* name : {"usm_data", "base", "data"}) {
    try {
      const nb::object memory = nb::getattr(object, name);
      array_interface found = read_array_interface(memory);
      found.shape.check("shape", 0);
      if (found.begin <= base.first() && base.first() <= found.end) {
        object = memory;
        base = std::move(found);
        return true;
      }
    } catch (const nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) {
        throw;
      }
    } catch (const conversion_error&) {  // a tensor without memory
    }
  }
  return false;
}

/// Begin and end of an object's bytes.
using byte_range = std::pair<std::uintptr_t, std::uintptr_t>;

/// The bytes of an object, or of the memory that it is a part of.
byte_range bytes_behind(nb::handle object, array_interface base) {
  constexpr int longest_chain = 64;
  nb::object holder = nb::borrow(object);
  for (int i = 0; i < longest_chain; ++i) {
    if (has_tensor_type(holder) || is_dpctl_memory(holder) || !find_memory(holder, base)) {
      break;
    }
  }
  return {static_cast<std::uintptr_t>(std::max(base.begin, wide_int{0})),
          static_cast<std::uintptr_t>(std::min(base.end, one_past_addresses - 1))};
}

struct wanted_view {
  std::uintptr_t first = 0;
  integers shape;
  std::optional<integers> strides;
  element_type element;
};

/// The one-dimensional shape of all bytes after `byte_offset`, in elements of another width.
integers reinterpreted_shape(const array_interface& base, std::int64_t bits,
                             nb::handle byte_offset) {
  if (!is_compact(base)) {
    refuse_argument(PyExc_ValueError, "shape", "one, since the array is not compact", "None",
                    "pass shape and strides of the elements that are meant");
  }
  constexpr wide_int enough = wide_int{1} << 120;
  wide_int all = base.bits;
  for (const std::int64_t extent : base.shape.values) {
    all = __builtin_mul_overflow(all, extent, &all) ? enough : std::min(all, enough);
  }
  all = (all + 7) / 8;
  const wide_int bytes = all - to_wide(byte_offset);
  if (bytes < 0) {
    refuse_argument(PyExc_ValueError, "byte_offset",
                    "at most " + std::string(detail::digits(all)) + ", the bytes of the array",
                    text_of(byte_offset), "correct byte_offset");
  }
  if (bytes * 8 % bits != 0) {
    refuse_argument(PyExc_ValueError, "shape",
                    "a whole number of elements of " + std::to_string(bits) + " bits",
                    std::string(detail::digits(bytes)) + " bytes behind byte_offset",
                    "pass shape");
  }
  // With Python ints, because an offset may have any size.
  const nb::object all_bits = (from_wide(all) - byte_offset) * nb::int_(8);
  integers made;
  made.append(checked(PyNumber_FloorDivide(all_bits.ptr(), nb::int_(bits).ptr())));
  return made;
}

/// Combines the arguments with the interface.
/// @throws nb::python_error ValueError or TypeError
wanted_view read_view(const array_interface& base, nb::handle shape, nb::handle dtype,
                      nb::handle strides, nb::handle byte_offset) {
  base.shape.check("shape", 0);
  const nb::object offset = read_integer("byte_offset", byte_offset);
  const wide_int bytes = to_wide(offset);
  wanted_view view;
  view.element = dtype.is_none() ? base.element : read_dtype(dtype);
  const bool renewed = !shape.is_none() || !dtype.is_none() || bytes != 0;
  if (!strides.is_none() && shape.is_none() && renewed) {
    refuse_argument(PyExc_ValueError, "shape", "one, since strides are given", "None",
                    "pass both");
  }
  if (!shape.is_none()) {
    view.shape = read_integers("shape", shape);
  } else if (view.element.bits() != base.bits || bytes != 0) {
    view.shape = reinterpreted_shape(base, view.element.bits(), offset);
  } else {
    view.shape = base.shape;
    view.strides = base.strides;
  }
  if (!strides.is_none()) {
    view.strides = read_integers("strides", strides);
  }
  const std::size_t ndim = view.shape.values.size();
  if (view.strides && view.strides->values.size() != ndim) {
    refuse_argument(PyExc_ValueError, "strides",
                    std::to_string(ndim) + ", one for each dimension",
                    std::to_string(view.strides->values.size()), "correct shape or strides");
  }
  view.shape.check("shape", 0);
  if (view.strides) {
    view.strides->check("strides", std::numeric_limits<std::int64_t>::min());
  }
  const wide_int first = base.first() + bytes;
  if (!is_address(first)) {
    refuse_argument(PyExc_ValueError, "byte_offset", "an address after it",
                    text_of(from_wide(base.first()) + offset), "correct byte_offset");
  }
  view.first = static_cast<std::uintptr_t>(first);
  return view;
}

/// Refuses a view that exceeds its object; an empty view may begin at the end.
void check_within(const tensor_structure& view, const byte_range& object) {
  const auto [begin, end] = object;
  const auto bytes = [&] {
    return " within the " + detail::digits(object.second - object.first) +
           " bytes of the object";
  };
  if (view.first < begin || view.first > end || (view.first == end && !view.empty)) {
    detail::refuse(errc::out_of_bounds, "byte_offset", "a first element" + bytes(),
                   "one at byte " + detail::byte_place(view.first, begin),
                   "correct byte_offset");
  }
  if (!view.empty && (view.lowest < begin || view.nbytes > end - view.lowest)) {
    const std::uintptr_t last = view.lowest + view.nbytes - 1;
    detail::refuse(errc::out_of_bounds, "shape", "a view" + bytes(),
                   "one of bytes " + detail::byte_place(view.lowest, begin) + " to " +
                       detail::byte_place(last, begin),
                   "correct shape, strides or byte_offset");
  }
}

/// Refuses an array whose offset leads out of the allocation at its address, as far as the
/// backend reports it. A chunk is known only from that address on.
void check_offset(std::uintptr_t first, std::uintptr_t origin, DLDevice device) {
  DLTensor named{};
  named.data = reinterpret_cast<void*>(origin);
  named.device = device;
  named.dtype = {kDLUInt, 8, 1};
  const usm_allocation proof = validate(named);
  const bool is_out = first < proof.base() ? proof.bounds_proved() != bounds_proof::chunk
                                           : first - proof.base() >= proof.size();
  if (proof.size() != 0 && is_out) {
    detail::refuse(errc::out_of_bounds, "byte_offset",
                   "a first element within the allocation of the object's address",
                   "one at byte " + detail::byte_place(first, origin) + " from that address",
                   "correct the offset in the object's array interface");
  }
}

/// Refuses a queue of another context or root device than the memory's. Compares contexts,
/// because the Level Zero driver knows a pointer in each context of its platform.
/// @param context a default context, which knows the memory
DLDevice find_device(const void* pointer, bool empty, DLDevice device,
                     const sycl::context& context, const sycl::queue& queue) {
  check_queue(queue);
  if (!empty && queue.get_context() != context) {
    detail::refuse_queue(detail::digits(device.device_id), device_id(queue.get_device()));
  }
  return detail::export_device(pointer, empty, queue);
}

/// The context of the memory, and the queue that works on it, if known.
struct memory_place {
  sycl::context context;
  std::optional<sycl::queue> queue;
};

/// @param named the object's `syclobj`, resolved; unused for a DLPackTensor
memory_place find_place(const array_interface& base, nb::handle named) {
  if (base.own != nullptr) {
    const tensor& own = *base.own;
    return {own.proof().context(), own.queue_knows_memory() ? own.queue() : std::nullopt};
  }
  const sycl::queue* queue = find_queue(named);
  return queue != nullptr ? memory_place{queue->get_context(), *queue}
                          : memory_place{to_context(named), std::nullopt};
}

}  // namespace

nb::object resolve_syclobj(nb::handle syclobj) {
  if (detail::in_dpctl<sycl::queue>(syclobj) != nullptr ||
      detail::in_dpctl<sycl::context>(syclobj) != nullptr ||
      PyType_Check(syclobj.ptr()) != 0) {
    return nb::borrow(syclobj);
  }
  if (PyUnicode_Check(syclobj.ptr()) == 0) {
    const nb::object get = nb::getattr(syclobj, "_get_capsule", nb::none());
    return get.is_none() ? nb::borrow(syclobj) : get();
  }
  check_process();
  const nb::object device = find_filtered(syclobj);
  if (!device.is_valid()) {
    refuse_argument(PyExc_ValueError, "syclobj", "the filter string of a device",
                    text_of(syclobj), "correct the object that offers it");
  }
  return nb::module_::import_("dpctl").attr("SyclContext")(device);
}

nb::object to_dlpack_tensor(nb::handle obj, nb::handle shape, nb::handle dtype,
                            nb::handle strides, nb::handle byte_offset, nb::handle queue) {
  trace* watching = take_trace();
  const array_interface base = read_array_interface(obj);
  wanted_view view = read_view(base, shape, dtype, strides, byte_offset);
  const byte_range bytes = bytes_behind(obj, base);
  DLManagedTensorVersioned shown{};
  shown.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  shown.flags = (base.readonly ? flag::read_only : 0) |
                (view.element.storage == subbyte::padded ? flag::is_subbyte_type_padded : 0);
  DLTensor& described = shown.dl_tensor;
  described.data = reinterpret_cast<void*>(view.first);
  described.ndim = static_cast<std::int32_t>(view.shape.values.size());
  described.shape = view.shape.values.data();
  described.strides = view.strides ? view.strides->values.data() : nullptr;
  described.dtype = view.element.dtype;
  const nb::object named = base.own == nullptr ? resolve_syclobj(base.syclobj) : nb::object();
  check_process();
  if (watching != nullptr) {
    watching->read(described);
    watching->origin = base.data;
    watching->object = bytes;
  }
  detail::begin_step(watching, "structure");
  const tensor_structure structure = check_structure(described, view.element.storage);
  if (watching != nullptr) {
    watching->structure = structure;
  }
  detail::begin_step(watching, "context");
  memory_place place = find_place(base, named);
  if (watching != nullptr) {
    watching->context = place.context;
  }
  const bool empty = structure.empty;
  // Looks up the object's own address: shape and offset may lead out of the object.
  const auto* pointer = reinterpret_cast<const void*>(empty ? structure.first : base.data);
  described.device = detail::export_device(pointer, empty, place.context,
                                           detail::device_table::get().find(place.context),
                                           sycl::usm::alloc::unknown, -1, watching);
  if (watching != nullptr) {
    watching->device_id = described.device.device_id;
  }
  detail::begin_step(watching, "queue");
  if (!queue.is_none()) {
    place.queue = to_queue(queue);
    described.device =
        find_device(pointer, empty, described.device, place.context, *place.queue);
  }
  detail::begin_step(watching, "bounds");
  check_within(structure, bytes);
  if (!empty && structure.first != base.data) {
    check_offset(structure.first, base.data, described.device);
  }
  const usm_allocation proof = validate(shown);
  if (watching != nullptr) {
    watching->proof = proof;
  }
  nb::object made = make_tensor(described, proof, shown.flags);
  tensor& filled = *nb::inst_ptr<tensor>(made);
  filled.own(base.own == nullptr ? nb::borrow(obj) : base.own->owner_for_others(obj));
  filled.set_queue(std::move(place.queue));
  return made;
}

void register_from_memory(nb::module_& module) {
  module.def("to_dlpack_tensor", &to_dlpack_tensor, nb::arg("obj").none(),
             nb::arg("shape").none(), nb::arg("dtype").none(), nb::arg("strides").none(),
             nb::arg("byte_offset").none(), nb::arg("queue").none(),
             nb::sig("def to_dlpack_tensor(obj: typing.Any, shape: typing.Any, "
                     "dtype: typing.Any, strides: typing.Any, byte_offset: typing.Any, "
                     "queue: typing.Any) -> DLPackTensor"));
}

}  // namespace usm_dlpack::python
