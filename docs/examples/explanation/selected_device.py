# SPDX-License-Identifier: Apache-2.0
"""The same machine with ONEAPI_DEVICE_SELECTOR=opencl:1, which hides the first of two devices."""

# [begin selected]
import dpctl
import usm_dlpack

(shown,) = dpctl.get_devices()
assert usm_dlpack.device_id(shown) == 0  # it was 1 without the selector
# [end selected]
