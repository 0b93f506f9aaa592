# SPDX-License-Identifier: Apache-2.0
#
# Invalid uses of `python -m usm_dlpack`, one for each argument of this script.
case "$1" in
  devices_where_there_are_none)
    ONEAPI_DEVICE_SELECTOR="level_zero:*" python -m usm_dlpack devices
    ;;
  explain_without_an_expression)
    python -m usm_dlpack explain numpy
    ;;
  explain_of_a_module_that_is_nowhere)
    python -m usm_dlpack explain numpi:zeros
    ;;
  explain_of_an_expression_without_a_value)
    python -m usm_dlpack explain numpy:zeroes
    ;;
  explain_where_there_is_no_device)
    ONEAPI_DEVICE_SELECTOR="level_zero:*" python -m usm_dlpack explain "dpctl.memory:MemoryUSMHost(8)"
    ;;
  errors_of_an_unknown_code)
    python -m usm_dlpack errors out_of_bound
    ;;
  stdout_that_is_full)
    python -m usm_dlpack devices >/dev/full
    ;;
esac
