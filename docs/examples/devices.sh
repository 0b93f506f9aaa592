# SPDX-License-Identifier: Apache-2.0
#
# What docs/how-to/devices.md shows of the shell.
# [begin devices]
python -m usm_dlpack devices
# [end devices]
# [begin select]
ONEAPI_DEVICE_SELECTOR=opencl:cpu python -m usm_dlpack devices
# [end select]
# [begin doctor]
USM_DLPACK_CPU_DRIVER=0 python -m usm_dlpack doctor
# [end doctor]
# [begin forbid]
USM_DLPACK_CPU_DRIVER=0 python -m usm_dlpack devices
# [end forbid]
