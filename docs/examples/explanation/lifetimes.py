# SPDX-License-Identifier: Apache-2.0
"""What docs/explanation/lifetimes.md shows; it ends in silence where all of it is true."""

# [begin owners]
import weakref

import dpctl.memory
import usm_dlpack


class Owner:
    """An array of a library: it owns USM, and says when it goes."""

    def __init__(self) -> None:
        self.memory = dpctl.memory.MemoryUSMDevice(48)
        self.__sycl_usm_array_interface__ = self.memory.__sycl_usm_array_interface__


owner = Owner()
alive = weakref.ref(owner)
tensor = usm_dlpack.to_dlpack_tensor(owner)
capsule = tensor.__dlpack__(max_version=(1, 3))
del owner, tensor
assert alive() is not None  # the capsule keeps the tensor, and that its owner
del capsule
assert alive() is None
# [end owners]

# [begin consumer]
owner = Owner()
alive = weakref.ref(owner)
taken = usm_dlpack.from_dlpack(usm_dlpack.to_dlpack_tensor(owner))
del owner
assert alive() is not None  # the consumer's tensor keeps what it took
del taken
assert alive() is None
# [end consumer]
