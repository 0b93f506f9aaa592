# SPDX-License-Identifier: Apache-2.0
"""What docs/how-to/libraries.md shows.

Where PyTorch has an XPU it exchanges device USM with it; the part for the host runs everywhere.
"""

# [begin xpu]
import dpctl
import torch
import usm_dlpack


def exchange_with_xpu():
    """Exchange device USM both ways with PyTorch's first XPU."""
    theirs = torch.arange(24, dtype=torch.float32, device="xpu").reshape(4, 6)
    torch.xpu.synchronize()
    ours = usm_dlpack.from_dlpack(theirs)  # no copy
    assert ours.data == theirs.data_ptr()

    queue = dpctl.SyclQueue(ours.sycl_device)
    made = usm_dlpack.from_dlpack(torch.zeros(4, 6), device=queue)  # a copy in device USM
    queue.wait()
    back = torch.from_dlpack(made)  # no copy
    assert back.data_ptr() == made.data


# [end xpu]

# [begin host]
queue = dpctl.SyclQueue(usm_dlpack.root_device(0))
on_host = torch.arange(6, dtype=torch.float32)
shared = usm_dlpack.from_dlpack(on_host, device=queue, usm_type="shared")  # a copy
seen = torch.from_dlpack(shared.host_view())  # no copy
assert seen.data_ptr() == shared.data
print(seen)
# [end host]

# [begin which]
if torch.xpu.is_available():
    exchange_with_xpu()
    print("XPU: both ways, without a copy")
else:
    try:
        torch.from_dlpack(shared)
    except RuntimeError as error:
        print(error)
# [end which]
