// SPDX-License-Identifier: Apache-2.0
//
// A consumer of DLPack's C exchange API in plain C: finds the table at an object's type,
// borrows, exports and imports by it, and measures what a borrow costs. Built against Python.h
// and dlpack.h alone; it knows nothing of this package.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlpack/dlpack.h>

#include <time.h>

/// The table of an object's type, or null with the Python error set.
static const DLPackExchangeAPI* api_of(PyObject* object) {
  PyObject* type = (PyObject*)Py_TYPE(object);
  PyObject* capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
  if (capsule == NULL) {
    return NULL;
  }
  const DLPackExchangeAPI* api =
      (const DLPackExchangeAPI*)PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  Py_DECREF(capsule);
  if (api != NULL && api->header.version.major != DLPACK_MAJOR_VERSION) {
    PyErr_SetString(PyExc_BufferError,
                    "version.major: expected 1, found another; use the table behind prev_api");
    return NULL;
  }
  return api;
}

static PyObject* to_tuple(const int64_t* values, int32_t count) {
  PyObject* tuple = PyTuple_New(count);
  for (int32_t r = 0; tuple != NULL && r < count; ++r) {
    PyTuple_SET_ITEM(tuple, r, PyLong_FromLongLong(values[r]));
  }
  return tuple;
}

/// (data, (device_type, device_id), (code, bits, lanes), shape, strides, byte_offset)
static PyObject* describe(const DLTensor* t) {
  return Py_BuildValue("K(ii)(iii)NNK", (unsigned long long)(uintptr_t)t->data,
                       (int)t->device.device_type, (int)t->device.device_id,
                       (int)t->dtype.code, (int)t->dtype.bits, (int)t->dtype.lanes,
                       to_tuple(t->shape, t->ndim), to_tuple(t->strides, t->ndim),
                       (unsigned long long)t->byte_offset);
}

/// Describes the DLTensor that an object lends.
static PyObject* borrow(PyObject* module, PyObject* object) {
  (void)module;
  const DLPackExchangeAPI* api = api_of(object);
  DLTensor lent;
  if (api == NULL || api->dltensor_from_py_object_no_sync(object, &lent) != 0) {
    return NULL;
  }
  return describe(&lent);
}

/// Borrows so many times, and returns the nanoseconds that one took.
static PyObject* time_borrows(PyObject* module, PyObject* arguments) {
  (void)module;
  PyObject* object;
  Py_ssize_t count;
  if (!PyArg_ParseTuple(arguments, "On", &object, &count)) {
    return NULL;
  }
  const DLPackExchangeAPI* api = api_of(object);
  if (api == NULL) {
    return NULL;
  }
  // Used, so that no compiler may drop the loop.
  uintptr_t all = 0;
  struct timespec start;
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (Py_ssize_t i = 0; i < count; ++i) {
    DLTensor lent;
    if (api->dltensor_from_py_object_no_sync(object, &lent) != 0) {
      return NULL;
    }
    all ^= (uintptr_t)lent.data + (uintptr_t)lent.ndim;
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double ns =
      1e9 * (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec);
  return Py_BuildValue("dK", ns / (double)count, (unsigned long long)all);
}

/// Exports an object as a managed tensor and imports that again: the object of the same
/// memory.
static PyObject* round_trip(PyObject* module, PyObject* object) {
  (void)module;
  const DLPackExchangeAPI* api = api_of(object);
  DLManagedTensorVersioned* managed = NULL;
  void* made = NULL;
  if (api == NULL || api->managed_tensor_from_py_object_no_sync(object, &managed) != 0 ||
      api->managed_tensor_to_py_object_no_sync(managed, &made) != 0) {
    return NULL;
  }
  return (PyObject*)made;
}

/// Exports an object, describes what came out with its flags, and runs the deleter.
static PyObject* export_and_delete(PyObject* module, PyObject* object) {
  (void)module;
  const DLPackExchangeAPI* api = api_of(object);
  DLManagedTensorVersioned* managed = NULL;
  if (api == NULL || api->managed_tensor_from_py_object_no_sync(object, &managed) != 0) {
    return NULL;
  }
  PyObject* description = describe(&managed->dl_tensor);
  PyObject* made = Py_BuildValue("(II)KN", managed->version.major, managed->version.minor,
                                 (unsigned long long)managed->flags, description);
  if (managed->deleter != NULL) {
    managed->deleter(managed);
  }
  return made;
}

static PyMethodDef methods[] = {
    {"borrow", &borrow, METH_O, "Describe the DLTensor that an object lends."},
    {"time_borrows", &time_borrows, METH_VARARGS, "Nanoseconds of a borrow; and a checksum."},
    {"round_trip", &round_trip, METH_O, "Export an object, and import that again."},
    {"export_and_delete", &export_and_delete, METH_O, "Describe an export, and let it go."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        "exchange_api_consumer",
                                        "A consumer of the C exchange API.",
                                        -1,
                                        methods,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC PyInit_exchange_api_consumer(void) { return PyModule_Create(&definition); }
