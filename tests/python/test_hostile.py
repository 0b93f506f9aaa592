# SPDX-License-Identifier: Apache-2.0
"""Objects that lie about their types, names and methods, and random ones."""

import dpctl
import pytest
import usm_dlpack
from memory_sources import address_of
from refusals import refused, wrong_argument
from usm_dlpack import DLPackTensor, from_dlpack, to_dlpack_tensor, validate


def test_a_method_of_a_stranger_is_refused(memory):
    # The allocation is of a compiled class too, so that it looks like a tensor from outside.
    for stranger in (42, object(), None, validate(to_dlpack_tensor(memory))):
        with pytest.raises(TypeError):
            DLPackTensor.__dlpack__(stranger)
        with pytest.raises(TypeError):
            DLPackTensor.copy_from(stranger, bytes(96))


@pytest.mark.parametrize("kind", [dpctl.SyclQueue, dpctl.SyclDevice, dpctl.SyclContext])
def test_an_object_that_claims_to_be_dpctls_is_not_believed(memory, kind):
    class Liar:
        __class__ = property(lambda self: kind)

        def addressof_ref(self):
            return 8

    for act in (
        lambda: to_dlpack_tensor(memory, queue=Liar()),
        lambda: usm_dlpack.device_id(Liar()),
    ):
        with pytest.raises(TypeError, match="found an object of type Liar"):
            act()


def test_a_subclass_cannot_change_the_address(memory):
    class Queue(dpctl.SyclQueue):
        def addressof_ref(self):
            return 8

    assert to_dlpack_tensor(memory, queue=Queue()).data == address_of(memory)


def test_a_type_whose_name_cannot_be_printed_is_named_all_the_same():
    class Nameless(type):
        __name__ = property(lambda cls: "\udc80")

    class Thing(metaclass=Nameless):
        def __dlpack__(self, **keywords):
            return self

    with wrong_argument(TypeError, "device", "Thing"):
        usm_dlpack.device_id(Thing())
    with refused("capsule_unusable", "capsule", found="Thing"):
        from_dlpack(Thing())


@pytest.mark.extended
def test_random_exchanges_on_opencl_end_as_documented_and_leave_nothing_behind(
    new_process, driver, driver_copies, project_root
):
    drivers = [driver, driver_copies["second"], driver_copies["broken"]]
    program = project_root / "tests" / "hostile" / "run.py"
    done = new_process(
        arguments=(str(program), "--count", "20000", "--seed", "1"),
        OCL_ICD_FILENAMES=":".join(map(str, drivers)),
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
