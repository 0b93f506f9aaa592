# SPDX-License-Identifier: Apache-2.0
"""What docs/how-to/libraries.md shows: two ranks, `mpiexec -n 2 python with_mpi.py`."""

# [begin exchange]
import dpctl
import numpy as np
import usm_dlpack
from mpi4py import MPI

world = MPI.COMM_WORLD
queue = dpctl.SyclQueue(usm_dlpack.root_device(0))
mine = np.full((4, 6), 1 + world.rank, "float32")
x = usm_dlpack.from_dlpack(mine, device=queue, usm_type="shared")

if world.rank == 0:
    queue.wait()  # mpi4py waits for no queue
    world.Send(x, dest=1)  # out of the USM itself
elif world.rank == 1:
    world.Recv(x, source=0)  # into the USM itself
    print(x.numpy()[0])
# [end exchange]

# [begin device usm]
y = usm_dlpack.from_dlpack(x, usm_type="device")
if world.rank == 0:
    host = y.numpy()  # a copy on the host; waits for the tensor's queue
    world.Send(host, dest=1)
elif world.rank == 1:
    host = np.empty(y.shape, y.dtype)
    world.Recv(host, source=0)
    y = usm_dlpack.from_dlpack(host, device=queue)
# [end device usm]
