# SPDX-License-Identifier: Apache-2.0
"""Producers with DLPack's C exchange API, of which some functions fail, lie or are not there.

A managed tensor that comes this way has no capsule: whoever got it frees it, refused or not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from capsules import DLManagedTensorVersioned, new_capsule
from producers import RAISED, Plan

_NAME = b"dlpack_exchange_api"
_FromPyObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
_WorkStream = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)


class DLPackExchangeAPI(ctypes.Structure):
    """``DLPackExchangeAPI`` of dlpack.h, with its header."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("prev_api", ctypes.c_void_p),
        ("managed_tensor_allocator", ctypes.c_void_p),
        ("managed_tensor_from_py_object_no_sync", ctypes.c_void_p),
        ("managed_tensor_to_py_object_no_sync", ctypes.c_void_p),
        ("dltensor_from_py_object_no_sync", ctypes.c_void_p),
        ("current_work_stream", ctypes.c_void_p),
    )


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def _keep(plan: Plan, function: Any) -> int:
    plan.kept.append(function)
    return _address(function)


def _hand_over(plan: Plan) -> int:
    def give(_: int, out: Any) -> int:
        out[0] = ctypes.addressof(plan.foreign.managed)
        plan.handed_over = True
        return 0

    return _keep(plan, _FromPyObject(give))


def _give_nothing(plan: Plan) -> int:
    plan.outcomes |= {"capsule_unusable"}
    status = plan.dice.choice([0, -1, 1])
    return _keep(plan, _FromPyObject(lambda _, out: status))


def _raise(plan: Plan) -> int:
    """Return Python's own ``len``, which calls the object's ``__len__`` and passes its error on."""
    plan.outcomes |= {RAISED}
    return _address(ctypes.pythonapi.PyObject_Size)


def _no_queue(plan: Plan) -> int:
    return _keep(plan, _WorkStream(lambda kind, number, out: 0))


def _queue(plan: Plan) -> int:
    def tell(kind: int, number: int, out: Any) -> int:
        out[0] = plan.places.queues[0].addressof_ref()
        return 0

    return _keep(plan, _WorkStream(tell))


def _failing_queue(plan: Plan) -> int:
    plan.outcomes |= {"capsule_unusable"}
    return _keep(plan, _WorkStream(lambda kind, number, out: -1))


GIVE: list[Callable[[Plan], int]] = [_hand_over] * 8 + [_give_nothing, _raise]
QUEUES: list[Callable[[Plan], int]] = [_no_queue] * 3 + [_queue, _queue, _failing_queue]


def _table(plan: Plan) -> Any:
    """Return a capsule of functions that are all there; some of them fail."""
    table = DLPackExchangeAPI(1, plan.dice.choice([0, 3, 2**32 - 1]))
    table.managed_tensor_from_py_object_no_sync = plan.dice.choice(GIVE)(plan)
    table.current_work_stream = plan.dice.choice(QUEUES)(plan)
    newest = table
    if plan.dice.random() < 0.2:  # of a version that nobody knows yet, in front of it
        newest = DLPackExchangeAPI(2, 0, ctypes.addressof(table), 1, 1, 1, 1, 1)
    plan.kept += [table, newest]
    return new_capsule(ctypes.addressof(newest), _NAME)


def _no_table(plan: Plan) -> Any:
    """Return what is no table, or none that can be used: ``__dlpack__`` is then asked."""
    partial = DLPackExchangeAPI(1, 3, None, 1, 0, 1, 1, 0)
    newer = DLPackExchangeAPI(2, 0, None, 1, 1, 1, 1, 1)
    plan.kept += [partial, newer]
    capsules = [
        new_capsule(ctypes.addressof(partial), _NAME),
        new_capsule(ctypes.addressof(newer), _NAME),
        new_capsule(64, plan.dice.choice([None, b"dltensor", b"dlpack_exchange_ap"])),
    ]
    return plan.dice.choice([*capsules, None, 5, _NAME, _table, plan])


def api_producer(plan: Plan) -> Any:
    """Return an object whose type has the C exchange API, or something that is not it."""

    def dlpack(self: Any, *, max_version: Any = None) -> Any:
        return plan.give()

    whole = plan.dice.random() < 0.8 and isinstance(plan.foreign.managed, DLManagedTensorVersioned)
    plan.steady = True
    members = {
        "__dlpack__": dlpack,
        "__len__": plan.raise_it,
        "__dlpack_c_exchange_api__": _table(plan) if whole else _no_table(plan),
    }
    return type("Exchanged", (), members)()
