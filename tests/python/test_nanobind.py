# SPDX-License-Identifier: Apache-2.0
"""Functions of a nanobind extension take and return views of USM and SYCL objects."""

import contextlib
import gc
import json
import re
import shlex
import shutil
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dpctl
import extension_under_test
import numpy as np
import pytest
import usm_dlpack
from c_exchange_api import Table
from capsules import (
    IS_COPIED,
    Calling,
    ForeignArray,
    ForeignTensor,
)
from dpctl import memory as usm
from memory_sources import TypedArray, new_queue
from pending_work import PendingFill
from refusals import refused, wrong_argument
from type_checkers import checked_by
from usm_dlpack import from_dlpack, to_dlpack_tensor


@pytest.fixture(scope="module")
def ext() -> Any:
    return extension_under_test.load()


@pytest.fixture
def floats(memory: Any) -> Any:
    return to_dlpack_tensor(memory, dtype="float32")


@pytest.fixture
def doubles(memory: Any) -> Any:
    return to_dlpack_tensor(memory, dtype="float64")


@pytest.fixture
def shared(queue: Any) -> Any:
    """Return the float32 0, 1, 2 and 3 in shared USM."""
    return shared_floats(queue, [0, 1, 2, 3])


def shared_floats(queue: Any, values: Any) -> Any:
    memory = usm.MemoryUSMShared(4 * len(values), queue=queue)
    memory.copy_from_host(np.array(values, np.float32).view(np.uint8))
    return to_dlpack_tensor(memory, dtype="float32")


@contextlib.contextmanager
def no_overload() -> Iterator[None]:
    """Require that no overload takes the arguments of the block, and that none says why."""
    with pytest.raises(TypeError, match="incompatible function arguments") as caught:
        yield
    assert type(caught.value) is TypeError


def fail(error: BaseException | type[BaseException]) -> Any:
    raise error


# --- Overloads ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_the_overload_that_fits_gets_the_memory(ext, queue, memory, dtype):
    array = to_dlpack_tensor(memory, dtype=dtype)
    assert ext.fill(queue, array, 3) == dtype
    assert np.all(array.numpy() == 3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_overload_launches_the_kernel_of_its_element_type(ext, queue, dtype):
    array = usm_dlpack.empty(100, dtype, device=queue)
    array.copy_from(np.arange(100, dtype=dtype))
    ext.scale(queue, array, 3)
    assert np.array_equal(array.numpy(), 3 * np.arange(100))


class Summand:
    """An array that knows how to add itself to something."""

    def __init__(self, tensor: Any) -> None:
        self.__dlpack__ = tensor.__dlpack__

    def __radd__(self, other: Any) -> str:
        return "the other operand"


def test_noconvert_leaves_the_array_of_an_operator_to_python(ext, shared, doubles):
    assert ext.RowSums() + shared == 6
    assert ext.RowSums() + Summand(shared) == 6
    assert ext.RowSums() + Summand(doubles) == "the other operand"
    with pytest.raises(TypeError, match="unsupported operand"):
        ext.RowSums() + doubles


def test_a_constructor_and_methods_say_what_does_not_fit(ext, shared, doubles):
    sums = ext.RowSums(shared, 2)
    sums.add(shared)
    assert (sums.total, ext.RowSums.of(shared)) == (14, 6)
    for call in (lambda: ext.RowSums(doubles, 2), lambda: sums.add(doubles)):
        with refused("dtype_mismatch", "dtype"):
            call()
    with refused("dtype_mismatch", "dtype"):
        ext.RowSums.of(doubles)


# --- What is always raised ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [("shape", "ab", "__sycl_usm_array_interface__"), ("syclobj", "nowhere", "syclobj")],
)
def test_an_interface_that_is_wrong_is_named(ext, memory, name, value, field):
    with wrong_argument(ValueError, field):
        ext.rank_one(TypedArray(memory, **{name: value}))


def test_a_refusal_that_the_producer_raises_again_is_not_changed(ext, floats):
    kept = usm_dlpack.ConversionError("out_of_bounds", "data", "some bytes", "more", "wait")
    for _ in range(2):
        with pytest.raises(usm_dlpack.ConversionError) as caught:
            ext.rank_one(Calling(floats, lambda: fail(kept)))
        assert caught.value is kept
        assert str(kept).startswith("data: ")


# --- Containers and casts -------------------------------------------------------------------------


def test_memory_of_ones_own_becomes_a_tensor(ext, queue):
    made = ext.allocated(queue, 3)
    assert (made.shape, made.usm_type, made.sycl_queue) == ((3,), "device", queue)


def test_any_view_tells_what_the_array_is(ext, doubles):
    assert ext.facts(doubles) == (2, [6], [1], doubles.data)


def test_an_element_is_no_other_view_that_a_caster_took_before(ext, shared, floats):
    for bad in (None, floats):  # of another kind
        with no_overload():
            ext.first_elements([shared, bad])


def test_an_object_at_hand_becomes_an_owned_view_and_no_other(ext, floats):
    with refused("request_unsupported", "view"):  # nothing would keep its memory
        ext.cast_to_view(floats)
    assert ext.to_owned(floats) == (floats.data, (12,), (1,))
    with refused("shape_mismatch", "ndim"):
        ext.to_owned(to_dlpack_tensor(floats, shape=(3, 4)))
    with refused("device_type_unsupported", "device.device_type"):
        ext.to_owned(np.zeros(3, np.float32))
    for cast in (ext.to_owned, ext.cast_to_queue):
        with pytest.raises(RuntimeError, match="bad_cast"):
            cast(3)


def test_an_object_that_cannot_be_cast_leaves_no_error(ext, doubles):
    for thing in (3, doubles):
        assert not ext.try_cast_to_owned(thing)
        assert not ext.try_cast_to_queue(thing)


def test_an_instance_is_what_can_be_cast(ext, queue, floats, doubles):
    on_host = np.zeros(3, np.float32)
    things = [floats, doubles, to_dlpack_tensor(floats, shape=(3, 4)), on_host, queue, 3, None]
    for is_array in (ext.is_row, ext.is_owned):
        assert [is_array(thing) for thing in things] == [True] + 6 * [False]
    assert [ext.is_queue(thing) for thing in things] == 4 * [False] + [True] + 2 * [False]


# --- Owners ---------------------------------------------------------------------------------------


def test_a_kept_view_keeps_a_foreign_tensor(ext, shared):
    foreign = ForeignTensor(shared.data, shape=(4,))
    foreign.managed.flags = IS_COPIED
    array = ForeignArray(foreign)
    ext.keep(array)
    assert ext.kept_flags() == 0  # the copy is none for who gets it next
    array.given = None
    del array
    gc.collect()
    assert foreign.deletions == 0
    ext.drop_on_a_thread()
    assert foreign.deletions == 1


def test_a_python_object_that_owns_is_dropped_by_any_thread(ext, queue):
    owner = object()
    before = sys.getrefcount(owner)
    ext.drop_owners(queue, owner, 50_000)
    assert sys.getrefcount(owner) == before


def test_an_object_owns_what_it_shows_and_one_that_is_none_does_not(ext, queue):
    made = ext.SelfOwned(queue, 3)
    gone, tensor = weakref.ref(made), made.values
    del made
    assert gone() is not None
    del tensor
    assert gone() is None
    with refused("request_unsupported", "owner", found="none"):
        ext.result_of_nobody(queue)


def test_nanobind_keeps_the_array_alive_that_an_overload_took(ext, memory):
    array = TypedArray(memory)
    gone = weakref.ref(array)
    kept = ext.kept_alive(array)
    del array
    assert gone() is not None
    del kept
    assert gone() is None


def test_a_kept_view_keeps_the_array_and_knows_its_queue(ext, queue):
    forwards = shared_floats(queue, [5, 6, 7])
    before = to_dlpack_tensor(forwards, shape=(3,), strides=(-1,), byte_offset=8)
    ext.keep(before)
    data = before.data
    del forwards, before
    gc.collect()
    assert ext.kept_queue() == queue
    assert ext.kept_values() == [7, 6, 5]
    back = ext.take_back()
    assert (back.data, back.strides, back.sycl_queue) == (data, (-1,), queue)
    assert back.numpy().tolist() == [7, 6, 5]


def test_a_kept_view_knows_the_queue_that_an_object_or_its_table_says(ext, queue, shared):
    foreign = ForeignTensor(shared.data, shape=(4,))
    saying, table = ForeignArray(foreign), Table(foreign)
    saying.sycl_queue = queue
    table.stream = queue.addressof_ref()  # as PyTorch's tensors say it
    for array in (saying, table.array()):
        ext.keep(array)
        assert ext.kept_queue() == queue
        ext.drop_on_a_thread()


def test_a_result_is_a_tensor_that_knows_its_queue(ext, queue):
    made = ext.full(queue, 3, 4, value=2.5)
    assert type(made) is usm_dlpack.DLPackTensor
    assert (made.shape, made.strides, made.dtype) == ((3, 4), (4, 1), np.float32)
    assert (made.usm_type, made.readonly, made.sycl_queue) == ("device", False, queue)
    assert made.data % 256 == 0
    assert np.all(made.numpy() == 2.5)
    empty = ext.full(queue, 0, 4)
    assert (empty.shape, empty.size, empty.data != 0) == ((0, 4), 0, True)
    assert ext.in_shared_usm(queue, 5).usm_type == "shared"


def test_a_result_outlives_what_it_was_made_of(ext, queue):
    source = shared_floats(queue, [1, 2, 3])
    taken = from_dlpack(ext.copied(source))
    del source
    gc.collect()
    assert taken.numpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("function", "context", "code", "field"),
    [
        ("readonly_result", "foreign_queue", "context_not_default", "context"),
        ("result_in_host_memory", "queue", "pointer_unknown", "data"),
        ("result_in_other_kind", "queue", "usm_type_not_accepted", "data"),
    ],
)
def test_a_result_that_is_no_usm_of_its_queue_and_kind_is_refused_and_freed(
    ext, request, function, context, code, field
):
    counter = ext.Counter()
    with refused(code, field):
        getattr(ext, function)(request.getfixturevalue(context), counter)
    assert counter.alive == 0


def test_a_queue_of_another_context_is_refused(ext, foreign_queue, floats):
    with refused("context_not_default", "context"):
        ext.full(foreign_queue, 3, 4)
    with refused("context_not_default", "queue"):
        ext.fill(foreign_queue, floats, 1.5)  # in the function


def test_the_kind_of_an_empty_result_is_told_and_never_refused(ext, queue):
    memory = usm.MemoryUSMDevice(16, queue=queue)
    for offset in (0, 16):
        empty = to_dlpack_tensor(memory, shape=(0,), dtype="float32", byte_offset=offset)
        back = ext.device_given_back(empty)
        assert (back.shape, back.data) == ((0,), empty.data)
        assert back.usm_type == empty.usm_type
    back = ext.empty_result_at_null(queue)
    assert (back.shape, back.data, back.usm_type) == ((0,), 0, "unknown")


# --- SYCL objects ---------------------------------------------------------------------------------


def test_events_order_work(ext, queue):
    pending = PendingFill(queue)
    x = from_dlpack(np.zeros(12, np.float32), device=new_queue())
    event = ext.fill_after(queue, x, depends=[pending.event])
    assert type(event) is dpctl.SyclEvent
    assert pending.is_pending
    pending.open()
    event.wait()
    assert np.all(x.numpy() == 3)
    after = ext.fill_after(queue, x, [event, event])
    after.wait()
    assert after.execution_status == dpctl.event_status_type.complete
    for events in ([None], [event, None], [None, event]):
        with no_overload():
            ext.fill_after(queue, x, events)


# --- nanobind's arrays ----------------------------------------------------------------------------


def test_an_ndarray_becomes_a_view(ext, floats):
    matrix = to_dlpack_tensor(floats, shape=(2, 3), strides=(6, 2))
    for read in (ext.of_ndarray, ext.of_readonly_ndarray):
        assert read(matrix) == (floats.data, (2, 3), (6, 2))


# --- Threads, processes, types --------------------------------------------------------------------


_IN_A_NEW_PROCESS = """
import sys
sys.path.insert(0, sys.argv[1])
import usm_dlpack
import dpctl, dpctl.memory, numpy as np
import extension_under_test_module as ext
queue = dpctl.SyclQueue()
"""


@pytest.fixture
def folder(ext: Any) -> str:
    """Return the folder of the extension, the argument of a new process."""
    return str(Path(ext.__file__).parent)


def test_nothing_leaks(folder, succeed, new_process):
    # nanobind writes to stderr what lives at the end; what is kept here goes then.
    leak = "import ctypes; ctypes.pythonapi.Py_IncRef(ctypes.py_object(ext.Counter()))"
    done = new_process(_IN_A_NEW_PROCESS + leak, arguments=(folder,))
    assert done.returncode == 0
    assert "leaked" in done.stderr
    code = """
tensor = ext.full(queue, 3, 4)
flat = usm_dlpack.to_dlpack_tensor(tensor, shape=(12,))
for wrong in (tensor, 1, np.zeros(12, "f4"), usm_dlpack.to_dlpack_tensor(flat, dtype="i2")):
    try:
        ext.fill(queue, wrong, 1)
    except (TypeError, BufferError):
        pass
ext.fill(queue, flat, 1)
constant = ext.readonly_result(queue, ext.Counter())
try:
    ext.rank_one(constant)
except BufferError as error:
    kept_error = error
ext.keep(ext.in_shared_usm(queue, 4))
ext.fill_after(queue, flat, [ext.fill_after(queue, flat)]).wait()
print(flat.numpy()[0])
"""
    assert succeed(_IN_A_NEW_PROCESS + code, arguments=(folder,)) == "3.0\n"


_BEHIND_A_TASK_THAT_NEEDS_THE_GIL = """
import threading
from pending_work import PendingFill

def go(before, act):
    kept = [before()]
    pending = PendingFill(queue)
    pending.keep_alive()  # what dpnp does after each of its kernels
    threading.Timer(0.1, pending.open).start()  # a thread of Python, which needs the GIL too
    try:
        act(kept)
    except ValueError as error:
        print(error)
    queue.wait()

go(int, lambda kept: ext.use_scratch(queue))
go(int, lambda kept: ext.use_scratch(queue, fails=True))
go(lambda: ext.full(queue, 2, 3), lambda kept: kept.clear())
queue._submit_keep_args_alive([ext.full(queue, 2, 3)], [])  # dropped in the task
queue.wait()
queue = dpctl.SyclQueue(property="in_order")
for _ in range(200):  # while this thread submits
    ext.drop_in_task(queue, ext.zeros(queue, 3))
queue.wait()
print("fine")
"""


def test_an_array_goes_while_work_before_it_needs_the_gil(folder, succeed):
    code = _IN_A_NEW_PROCESS + _BEHIND_A_TASK_THAT_NEEDS_THE_GIL
    printed = succeed(
        code, arguments=(folder,), PYTHONPATH=str(Path(__file__).with_name("support"))
    )
    assert printed == "scratch: expected no failure, found one as asked for\nfine\n"


def test_a_kernel_on_the_queue_of_an_array_of_numpy_returns_a_number(folder, succeed):
    code = """
x, y = (usm_dlpack.from_dlpack(np.arange(n, n + 3, dtype="f4"), device="cpu") for n in (0, 1))
print(x.sycl_queue == y.sycl_queue, ext.dot(x, y))
"""
    assert succeed(_IN_A_NEW_PROCESS + code, arguments=(folder,)) == "True 8.0\n"


def test_a_queue_of_another_device_is_refused(folder, succeed, several_devices):
    code = """
other = dpctl.SyclQueue(usm_dlpack.root_device(1))
here = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48, queue=queue), dtype="float32")
there = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48, queue=other), dtype="float32")
for tensor, right, wrong in ((here, queue, other), (there, other, queue)):
    ext.fill(right, tensor, 4.5)
    assert tensor.numpy().tolist() == [4.5] * 12
    try:
        ext.fill(wrong, tensor, 4.5)
    except usm_dlpack.ConversionError as error:
        print(error.code, error.field)
    assert ext.full(right, 2, 3, 1.5).device == tensor.device
"""
    printed = succeed(_IN_A_NEW_PROCESS + code, arguments=(folder,), **several_devices(2))
    assert printed == "device_mismatch queue\n" * 2


_TYPED = """
import dpctl
import dpctl.memory
import extension_under_test_module as ext
import usm_dlpack

def use(queue: dpctl.SyclQueue, memory: dpctl.memory.MemoryUSMDevice) -> None:
    tensor: usm_dlpack.DLPackTensor = ext.full(queue, 3, 4, value=2.0)
    ext.fill(queue, tensor, 1)
    ext.fill(queue, memory, 1.5)
    ext.which(tensor, 1)
    ext.keep(usm_dlpack.to_dlpack_tensor(memory))
    ext.RowSums().add(row=tensor)
    back: usm_dlpack.DLPackTensor = ext.take_back()
    print(back, ext.maybe(), ext.first_elements([tensor, back]))
"""

_WRONGLY_TYPED = """
import extension_under_test_module as ext
import usm_dlpack
tensor = usm_dlpack.from_dlpack(None)
ext.rank_one(3)
ext.scalar([tensor])
ext.fill(None, tensor)
number: int = ext.full(None, 3, 4)
"""


@pytest.mark.extended
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_know_the_extension(checker, tmp_path):
    shutil.copy(extension_under_test.build() / f"{extension_under_test.NAME}.pyi", tmp_path)
    (tmp_path / "typed.py").write_text(_TYPED)
    (tmp_path / "wrong.py").write_text(_WRONGLY_TYPED)
    settings = tmp_path / "settings.ini"
    settings.write_text("[mypy]\nstrict = true\n[mypy-dpctl.*]\nignore_missing_imports = true\n")
    done = checked_by(checker, tmp_path, *(["--config-file", settings.name] * (checker == "mypy")))
    for line in range(5, 9):
        assert f"wrong.py:{line}:" in done.stdout, done.stdout + done.stderr
    assert not re.search(r"typed\.py:.*error", done.stdout), done.stdout
    assert "is not defined" not in done.stdout, done.stdout


def test_what_can_never_be_right_does_not_compile(folder):
    commands = json.loads(Path(folder, "compile_commands.json").read_text())
    source = extension_under_test.PROJECT / "refused_extension.cpp"
    command = shlex.split(next(c["command"] for c in commands if "guide_extension" in c["file"]))
    command = [part for part in command[: command.index("-o")] if part != "-c"]
    done = subprocess.run(
        [*command, "-fsyntax-only", str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    sentences = re.findall(r"static assertion failed: (\w+: expected .*)", done.stderr)
    assert sorted(sentence.split(" found ")[1].split(";")[0] for sentence in sentences) == [
        "a Python handle, which needs the GIL",
        "a usm_array, which would own memory that is Python's",
        "a view alone, whose memory nothing keeps",
        "fewer, of which an nb::ndarray does not say whether they are padded",
    ]
    remedies = re.findall(r"deleted function .*\n(?:.*\n)*?.* = delete;  // (.*)", done.stderr)
    assert sorted(remedies) == [
        "keep the any_view in a variable",
        *["keep the tensor"] * 6,
        *["std::move it, or share it by a std::shared_ptr"] * 2,
    ]
