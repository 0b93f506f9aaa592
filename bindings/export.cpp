// SPDX-License-Identifier: Apache-2.0
//
// Each keyword of __dlpack__ is read by one function that refuses what it does not know; then
// one of three tensors is exported: the memory itself, a copy of the same USM kind, or one for
// the host.
#include "export.hpp"

#include "capsule.hpp"
#include "python_objects.hpp"

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace usm_dlpack::python {

const char* const export_doc =
    "Export as a DLPack capsule that keeps the memory alive.\n\n"
    "Parameters\n----------\n"
    "stream\n"
    "    None or -1: nothing is synchronised; work on the memory must have finished.\n"
    "max_version\n"
    "    The newest DLPack version that the consumer knows; a legacy capsule is made for None\n"
    "    and below 1.0.\n"
    "dl_device\n"
    "    None or the tensor's own device; (1, 0) for the host: without a copy for host and\n"
    "    shared USM.\n"
    "copy\n"
    "    True always copies, False never does, None copies where it must.\n\n"
    "Raises\n------\n"
    "BufferError\n"
    "    If what was asked for cannot be done.\n"
    "ValueError\n"
    "    If `stream` cannot be used.";

namespace {

// Never fails: an object that cannot be printed must not turn a refusal into the TypeError
// that its `__repr__` may raise.
std::string text_of(nb::handle object) {
  const nb::object text = nb::module_::import_("usm_dlpack._errors").attr("shown")(object);
  return nb::borrow<nb::str>(text).c_str();
}

bool is_integer(nb::handle object) {
  return PyLong_Check(object.ptr()) != 0 && PyBool_Check(object.ptr()) == 0;
}

/// A pair of integers that fit int64_t.
bool read_pair(nb::handle object, std::int64_t (&pair)[2]) {
  if (PyTuple_Check(object.ptr()) == 0 || PyTuple_Size(object.ptr()) != 2) {
    return false;
  }
  for (Py_ssize_t i = 0; i < 2; ++i) {
    PyObject* item = PyTuple_GetItem(object.ptr(), i);
    // PyLong_AsLongLong would take floats by __index__ and fail on the others with a
    // TypeError.
    const nb::object number = nb::steal(PyNumber_Index(item));
    if (!number.is_valid()) {
      PyErr_Clear();
      return false;
    }
    pair[i] = PyLong_AsLongLong(number.ptr());
    if (pair[i] == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return false;
    }
  }
  return true;
}

void check_stream(nb::handle stream) {
  if (stream.is_none()) {
    return;
  }
  if (PyLong_Check(stream.ptr()) == 0) {
    detail::refuse(errc::request_unsupported, "stream", "None or -1", text_of(stream),
                   "wait for the producer's queue and pass None");
  }
  std::int64_t value = 0;
  const std::int64_t none = -1;
  const nb::object pair = nb::make_tuple(stream, 0);
  std::int64_t read[2] = {0, 0};
  if (is_integer(stream) && read_pair(pair, read)) {
    value = read[0];
  }
  if (value == none) {
    return;
  }
  const std::string sentence = "stream: expected None or -1, found " + text_of(stream) +
                               "; wait for the producer's queue and pass None";
  throw nb::value_error(sentence.c_str());
}

bool wants_versioned(nb::handle max_version) {
  if (max_version.is_none()) {
    return false;
  }
  std::int64_t version[2] = {0, 0};
  if (!read_pair(max_version, version) || version[0] < 0 || version[1] < 0) {
    detail::refuse(errc::request_unsupported, "max_version",
                   "None or a tuple (major, minor) of integers", text_of(max_version),
                   "pass the newest DLPack version that you know");
  }
  return version[0] >= 1;
}

enum class destination { here, host };

destination read_device(nb::handle dl_device, std::int32_t own) {
  std::int64_t device[2] = {0, 0};
  if (dl_device.is_none()) {
    return destination::here;
  }
  const bool pair = read_pair(dl_device, device);
  if (pair && device[0] == kDLOneAPI && device[1] == own) {
    return destination::here;
  }
  if (pair && device[0] == kDLCPU && device[1] == 0) {
    return destination::host;
  }
  detail::refuse(errc::request_unsupported, "dl_device",
                 "(14, " + std::to_string(own) + ") for the tensor's own device or (1, 0)",
                 text_of(dl_device), "copy to the other device with a queue of both");
}

enum class copying { when_needed, always, never };

copying read_copy(nb::handle copy) {
  if (copy.is_none()) {
    return copying::when_needed;
  }
  if (PyBool_Check(copy.ptr()) != 0) {
    return copy.ptr() == Py_True ? copying::always : copying::never;
  }
  // NumPy's bool and 0 or 1 count as well; anything else would be a guess.
  const std::string text = text_of(copy);
  if (text == "1" || text == "np.True_") {
    return copying::always;
  }
  if (text == "0" || text == "np.False_") {
    return copying::never;
  }
  detail::refuse(errc::request_unsupported, "copy", "None, True or False", text,
                 "pass one of these");
}

/// Host memory for a copy, aligned to 256 bytes as `DLTensor::data` asks.
struct host_free {
  void operator()(void* memory) const noexcept { std::free(memory); }
};
using host_memory = std::unique_ptr<void, host_free>;

/// USM of a copy, freed with its context.
struct usm_free {
  sycl::context context;
  void operator()(void* memory) const noexcept {
    try {
      sycl::free(memory, context);
    } catch (const sycl::exception&) {
      // The runtime is shutting down: it frees the memory itself.
    }
  }
};
using usm_memory = std::unique_ptr<void, usm_free>;

constexpr std::size_t copy_alignment = 256;

/// A root device's queue for copies, kept for the life of the process: a queue that is
/// destroyed right after its work hangs the OpenCL CPU driver when several threads do so,
/// because a worker thread may drop the last reference to the work it is part of
/// (intel-opencl-rt 2026.2).
sycl::queue copy_queue(std::int32_t device_id) {
  static std::mutex guard;
  static auto& queues = *new std::map<std::int32_t, sycl::queue>;
  const std::lock_guard<std::mutex> lock(guard);
  const auto made =
      queues.try_emplace(device_id, default_context(device_id), root_device(device_id));
  return made.first->second;
}

/// Copies the bytes that a view spans; the GIL is not held meanwhile.
void copy_span(const usm_allocation& from, void* to) {
  const nb::gil_scoped_release unlocked;
  detail::ask_runtime("data", [&] {
    copy_queue(from.device_id())
        .memcpy(to, reinterpret_cast<const void*>(from.structure().lowest),
                from.structure().nbytes)
        .wait();
  });
}

[[noreturn]] void refuse_memory(std::uint64_t nbytes) {
  detail::refuse(errc::copy_needed, "copy",
                 "memory for a copy of " + std::to_string(nbytes) + " bytes", "none",
                 "free some, or export without a copy");
}

/// The description of a copy whose span begins at `memory`.
DLTensor moved_to(void* memory, DLTensor described, const tensor_structure& view,
                  DLDevice device) {
  described.data = static_cast<unsigned char*>(memory) + (view.first - view.lowest);
  described.device = device;
  return described;
}

template <class Owner>
nb::object finish(const DLTensor& described, bool versioned, std::uint64_t flags,
                  Owner&& owner) {
  return versioned
             ? make_capsule(to_managed_tensor(described, std::forward<Owner>(owner), flags))
             : make_capsule(
                   to_legacy_managed_tensor(described, std::forward<Owner>(owner), flags));
}

nb::object export_host_copy(const tensor& source, bool versioned) {
  const std::uint64_t nbytes = source.proof().structure().nbytes;
  const std::uint64_t rounded = (nbytes / copy_alignment + 1) * copy_alignment;
  host_memory memory(std::aligned_alloc(copy_alignment, rounded));
  if (memory == nullptr) {
    refuse_memory(nbytes);
  }
  if (nbytes != 0) {
    copy_span(source.proof(), memory.get());
  }
  const DLTensor described =
      moved_to(memory.get(), source.get(), source.proof().structure(), {kDLCPU, 0});
  const std::uint64_t flags =
      (source.flags() & flag::is_subbyte_type_padded) | flag::is_copied;
  return finish(described, versioned, flags, std::move(memory));
}

nb::object export_usm_copy(nb::handle self, const tensor& source, bool versioned) {
  const usm_allocation& proof = source.proof();
  const std::uint64_t flags =
      (source.flags() & flag::is_subbyte_type_padded) | flag::is_copied;
  if (proof.structure().nbytes == 0) {  // nothing to copy, but the address stays live
    return finish(source.get(), versioned, flags, python_reference(self));
  }
  usm_memory memory(detail::ask_runtime("copy",
                                        [&] {
                                          return sycl::aligned_alloc(
                                              copy_alignment, proof.structure().nbytes,
                                              proof.device(), proof.context(),
                                              proof.usm_type());
                                        }),
                    usm_free{proof.context()});
  if (memory == nullptr) {
    refuse_memory(proof.structure().nbytes);
  }
  copy_span(proof, memory.get());
  const DLTensor described =
      moved_to(memory.get(), source.get(), proof.structure(), {kDLOneAPI, proof.device_id()});
  return finish(described, versioned, flags, std::move(memory));
}

}  // namespace

nb::object export_capsule(nb::handle self, nb::handle stream, nb::handle max_version,
                          nb::handle dl_device, nb::handle copy) {
  if (!nb::inst_ready(self)) {
    detail::refuse(errc::tensor_released, "data", "a tensor that was made by this package",
                   "one that was not initialised", "use to_dlpack_tensor or from_dlpack");
  }
  const tensor& source = *nb::inst_ptr<tensor>(self);
  DLTensor described = source.get();
  check_stream(stream);
  const bool versioned = wants_versioned(max_version);
  const destination where = read_device(dl_device, described.device.device_id);
  const copying how = read_copy(copy);
  const bool on_host = where == destination::host;
  const bool must = on_host && source.proof().usm_type() == sycl::usm::alloc::device;
  if (must && how == copying::never) {
    detail::refuse(errc::copy_needed, "copy", "None or True for device USM on the host",
                   "False", "allow the copy, or use host or shared USM");
  }
  if (must || how == copying::always) {
    return on_host ? export_host_copy(source, versioned)
                   : export_usm_copy(self, source, versioned);
  }
  if (on_host) {
    described.device = {kDLCPU, 0};
  }
  return finish(described, versioned, source.flags() & ~flag::is_copied,
                python_reference(self));
}

}  // namespace usm_dlpack::python
