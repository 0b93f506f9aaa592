# SPDX-License-Identifier: Apache-2.0
"""Children of fork() and sub-interpreters: refused in words where the SYCL runtime is lost."""

import pytest

# What every forking process begins with. The import alone asks the runtime for nothing.
BEGIN = """
import gc, os, signal, sys, traceback, warnings
import dpctl, dpctl.memory, numpy as np, usm_dlpack
from usm_dlpack import ConversionError, from_dlpack, to_dlpack_tensor, validate

warnings.filterwarnings("ignore", "This process", DeprecationWarning)  # of fork() with threads

def fork(act, leave=os._exit):
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)  # ends it, instead of hanging
        try:
            act()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        leave(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

def refusal_of(act):
    try:
        act()
    except ConversionError as error:
        assert isinstance(error, BufferError), type(error)
        return f"{error.code} of {error.field}"
    except Exception as error:
        return repr(error)
    return "none"

def refused(act):
    assert refusal_of(act) == "process_forked of process"

def use():
    memory = dpctl.memory.MemoryUSMShared(48)
    tensor = to_dlpack_tensor(memory, dtype="f4", shape=(3, 4))
    assert from_dlpack(tensor, copy=True).numpy().shape == (3, 4)
    assert validate(tensor).device_id == usm_dlpack.device_id(usm_dlpack.root_device(0))
"""

USED = """
from c_exchange_api import ExchangeAPI
from capsules import ForeignArray, ForeignTensor, OldArray

memory = dpctl.memory.MemoryUSMShared(48)
queue = dpctl.SyclQueue()
device = usm_dlpack.root_device(0)
tensor = to_dlpack_tensor(memory, dtype="f4", shape=(3, 4), queue=queue)
capsule = tensor.__dlpack__(max_version=(1, 3))
proof = validate(tensor)
foreign = ForeignTensor(tensor.data)
api = ExchangeAPI(usm_dlpack.DLPackTensor)

class Named:
    __sycl_usm_array_interface__ = {**memory.__sycl_usm_array_interface__, "syclobj": "cpu"}
"""

# Whatever asks the runtime, itself or through dpctl.
ASKING = """
entries = {
    "to_dlpack_tensor": lambda: to_dlpack_tensor(memory),
    "to_dlpack_tensor of a filter string": lambda: to_dlpack_tensor(Named()),
    "to_dlpack_tensor with a queue": lambda: to_dlpack_tensor(memory, queue=queue),
    "from_dlpack of ours": lambda: from_dlpack(tensor),
    "from_dlpack of a producer": lambda: from_dlpack(ForeignArray(foreign)),
    "from_dlpack of a capsule": lambda: from_dlpack(OldArray(capsule)),
    "from_dlpack of a bare capsule": lambda: from_dlpack(capsule),
    "from_dlpack to a device": lambda: from_dlpack(tensor, device=(14, 0)),
    "from_dlpack to a filter string": lambda: from_dlpack(tensor, device="cpu"),
    "from_dlpack to a dpctl device": lambda: from_dlpack(tensor, device=device),
    "from_dlpack for a queue": lambda: from_dlpack(tensor, device=queue),
    "from_dlpack to where an array is": lambda: from_dlpack(tensor, device=tensor),
    "validate": lambda: validate(tensor),
    "validate of a capsule": lambda: validate(capsule),
    "validate for a device": lambda: validate(tensor, device=device),
    "validate for a filter string": lambda: validate(tensor, device="cpu"),
    "device_id": lambda: usm_dlpack.device_id(device),
    "root_device": lambda: usm_dlpack.root_device(0),
    "devices": usm_dlpack._core.device_rows,
    "__dlpack__": tensor.__dlpack__,
    "numpy": tensor.numpy,
    "host_view": tensor.host_view,
    "empty": lambda: usm_dlpack.empty(3),
    "wait": tensor.wait,
    "copy_from": lambda: tensor.copy_from(np.zeros((3, 4), np.float32)),
    "numpy.from_dlpack": lambda: np.from_dlpack(tensor, device="cpu"),
    "exchange API, export": lambda: api.export(tensor),
    "exchange API, take": lambda: api.take(foreign.managed),
    "exchange API, borrow": lambda: api.borrow(tensor),
    "exchange API, stream": lambda: api.stream(0),
    "sycl_device": lambda: tensor.sycl_device,
    "sycl_context": lambda: tensor.sycl_context,
    "sycl_queue": lambda: tensor.sycl_queue,
    "__sycl_usm_array_interface__": lambda: tensor.__sycl_usm_array_interface__,
    "sycl_device of a proof": lambda: proof.sycl_device,
    "root_device of a proof": lambda: proof.root_device,
    "sycl_context of a proof": lambda: proof.sycl_context,
}
"""


def test_every_question_to_the_runtime_is_refused_in_a_child(succeed):
    child = """
def act():
    allocated = refusal_of(lambda: api.allocate(foreign.tensor))
    assert "BufferError: process: expected" in allocated, allocated
    for name, entry in entries.items():
        assert refusal_of(entry) == "process_forked of process", name

fork(act)
del entries["exchange API, take"]  # it steals
for name, entry in entries.items():
    assert refusal_of(entry) != "process_forked of process", name
"""
    assert succeed(BEGIN + USED + ASKING + child) == ""


# What a process does before and in a child, and why; each ends in silence.
CHILDREN = {
    "what a tensor knows itself is there": """
text = repr(tensor)

def act():
    assert (tensor.shape, tensor.strides, tensor.dtype) == ((3, 4), (4, 1), np.float32)
    assert (tensor.device, tensor.__dlpack_device__()) == ((14, 0), (14, 0))
    assert (tensor.data, tensor.usm_type, tensor.readonly) == (proof.data, "shared", False)
    assert (proof.base, proof.size, proof.nbytes) == (tensor.data, 48, 48)
    name = text[text.index("name=") : text.index(", sycl_queue")]
    assert repr(tensor) == text.replace(name, "name=?")
    assert repr(proof).startswith("UsmAllocation(usm_type='shared'")

fork(act)
""",
    "objects die, and the parent keeps its own": """
copy = from_dlpack(tensor, copy=True)
taken = from_dlpack(ForeignArray(foreign))
names = ["capsule", "tensor", "proof", "copy", "taken"]

def act():
    for name in names:
        del globals()[name]
        gc.collect()

before = copy.numpy().tobytes()
fork(act)
assert foreign.deletions == 0
assert copy.numpy().tobytes() == before
assert validate(capsule).base == tensor.data
del taken
gc.collect()
assert foreign.deletions == 1
""",
    "what work is pending on dies without waiting": """
from dpctl.memory import as_usm_memory
from pending_work import PendingFill
copy = from_dlpack(np.zeros(12, np.int32), device=queue)
capsules = [copy.__dlpack__(copy=True, stream=queue), copy.__dlpack__(stream=queue)]
pending = PendingFill(dpctl.SyclQueue())
of_the_copy = PendingFill(queue, behind_host_task=True, into=as_usm_memory(copy))
tensor = to_dlpack_tensor(pending.memory, queue=pending.queue)
capsules.append(tensor.__dlpack__(stream=-1))

def act():
    global tensor, copy
    del pending.queue, pending.memory, of_the_copy.memory  # the tensors' are the last
    gc.collect()
    del tensor, copy
    capsules.clear()
    gc.collect()

fork(act)
pending.end()
of_the_copy.end()
queue.wait()
""",
    "what an extension owns dies without waiting": """
import extension_under_test
from dpctl.memory import as_usm_memory
from pending_work import PendingFill

ext = extension_under_test.load()
queue = dpctl.SyclQueue(device, property="in_order")
field = ext.Field(queue, 12)
array = ext.zeros(queue, 12)
ext.keep(ext.zeros(queue, 12))
pending = PendingFill(queue, into=as_usm_memory(field.values))

def act():
    global array, field
    del pending.queue, pending.memory, array, field
    gc.collect()
    ext.drop_on_a_thread()

fork(act)
fork(lambda: [refused(lambda: field.scale(2)), refused(lambda: ext.rank_two_const(tensor))])
pending.end()
""",
    "a python object that an extension owns is not dropped": """
import extension_under_test

class Owner:
    memory = dpctl.memory.MemoryUSMShared(48)
    described = {"data": (memory._pointer, False), "shape": (12,), "typestr": "<f4", "version": 1}
    __sycl_usm_array_interface__ = described | {"syclobj": queue}
    def __del__(self):
        os.write(2, b"dropped")

ext = extension_under_test.load()
ext.keep(Owner())
fork(ext.drop_on_a_thread)
""",
    "functions of an extension refuse SYCL objects": """
import extension_under_test
from pending_work import PendingFill

ext = extension_under_test.load()
pending = PendingFill(queue)

def act():
    refused(lambda: ext.zeros(queue, 12))
    refused(lambda: ext.has_queue(queue))
    refused(lambda: ext.cast_to_queue(queue))
    refused(lambda: ext.device_of(queue.sycl_context))
    refused(lambda: ext.queue_on(device))
    refused(lambda: ext.wait_for(pending.event))
    assert ext.has_queue(None) is False

fork(act)
pending.end()
ext.wait_for(pending.event)
""",
    "the handlers of its end do not wait for the work of the parent": """
import atexit
from pending_work import PendingFill
pending = PendingFill(dpctl.SyclQueue())  # out of order
tensor = to_dlpack_tensor(pending.memory, queue=pending.queue)
fork(atexit._run_exitfuncs)
pending.end()
""",
    "it ends after a refusal, and a child of it is refused too": """
import threading

fork(lambda: refusal_of(use), leave=sys.exit)
fork(lambda: fork(lambda: refused(tensor.__dlpack__)))
thread = threading.Thread(target=fork, args=(lambda: refused(tensor.__dlpack__),))
thread.start()
thread.join()
""",
    "it ends after a host task, whose thread the parent has": """
from pending_work import PendingFill

pending = PendingFill(queue)
pending.keep_alive()
pending.end()
queue.wait()
fork(lambda: None, leave=sys.exit)
""",
    "before the first use, both go on working": "fork(use, leave=sys.exit); fork(use); use()",
    "use by dpctl alone is use": """
device = dpctl.get_devices()[0]

def act():
    refused(lambda: usm_dlpack.root_device(0))
    refused(lambda: usm_dlpack.device_id(device))
    refused(lambda: from_dlpack(np.zeros(3), device=device))

fork(act)
use()
""",
    "a fork while threads exchange is refused and ends": """
import threading

stop = threading.Event()

def exchange():
    while not stop.is_set():
        from_dlpack(from_dlpack(tensor, copy=True)).numpy()

def act():
    refused(lambda: from_dlpack(tensor))
    for name in ("tensor", "capsule"):
        del globals()[name]
    gc.collect()

threads = [threading.Thread(target=exchange) for _ in range(4)]
for thread in threads:
    thread.start()
for _ in range(20):
    fork(act)
stop.set()
for thread in threads:
    thread.join()
""",
    "a thread that lets go meanwhile does not hold the end": """
import ctypes, time
from capsules import consume

managed = consume(tensor.__dlpack__())
libc, locked = ctypes.CDLL(None), ctypes.PyDLL(None)
sys.setswitchinterval(1000)  # no other thread gets the GIL before it is given up
thread = ctypes.c_ulong()
deleter = ctypes.cast(managed.deleter, ctypes.c_void_p)
argument = ctypes.c_void_p(ctypes.addressof(managed))
assert locked.pthread_create(ctypes.byref(thread), None, deleter, argument) == 0
locked.usleep(100_000)  # the thread now waits for the GIL, which this one holds
begun = time.monotonic()
pid = os.fork()
if pid == 0:
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert time.monotonic() - begun < 8  # of the ten seconds that the end would wait for the thread
libc.pthread_join(thread, None)
""",
}


# In these the parent has not used the package before.
UNUSED = ("before the first use, both go on working", "use by dpctl alone is use")


@pytest.mark.parametrize("name", CHILDREN)
def test_in_a_child(name, succeed):
    used = "" if name in UNUSED else USED
    assert succeed(BEGIN + used + CHILDREN[name]) == ""


SUB_INTERPRETER = """
import os
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

def create():  # one that shares the GIL, in Python 3.13, 3.12 and before
    for arguments, keywords in ((["legacy"], {}), ([], {"isolated": False}), ([], {})):
        try:
            return interpreters.create(*arguments, **keywords)
        except TypeError:
            pass

def try_import(number):
    reader, writer = os.pipe()
    interpreters.run_string(number, f'''if True:
        import os
        try:
            import usm_dlpack
            answer = "imported"
        except ImportError as error:
            answer = str(error)
        os.write({writer}, answer.encode())
    ''')
    os.close(writer)
    return os.read(reader, 10_000).decode()
"""

EXCHANGE = """
import dpctl.memory, usm_dlpack
tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMHost(16))
assert usm_dlpack.from_dlpack(tensor).data == tensor.data
"""

REFUSED = """
sub = create()
for _ in range(2):
    answer = try_import(sub)
    sentence = (
        "usm_dlpack: expected the main interpreter, found a sub-interpreter, whose objects the "
        "SYCL runtime and dpctl would share with it; import the package in the main one"
    )
    assert answer == sentence, answer
interpreters.destroy(sub)
sub = interpreters.create()  # with a GIL of its own
answer = try_import(sub)
interpreters.destroy(sub)
assert "interpreter" in answer, answer
"""


@pytest.mark.parametrize("before", ["", EXCHANGE], ids=["first", "after use"])
def test_a_sub_interpreter_is_refused_and_the_main_one_unharmed(before, succeed):
    assert succeed(SUB_INTERPRETER + before + REFUSED + EXCHANGE) == ""
