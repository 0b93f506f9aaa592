# SPDX-License-Identifier: Apache-2.0
#
# Invalid uses of `python -m usm_dlpack`, one for each argument of this script.
case "$1" in
  devices_where_there_are_none)
    # [begin devices_where_there_are_none]
    ONEAPI_DEVICE_SELECTOR="level_zero:*" python -m usm_dlpack devices
    # [end devices_where_there_are_none]
    ;;
  explain_without_an_expression)
    # [begin explain_without_an_expression]
    python -m usm_dlpack explain numpy
    # [end explain_without_an_expression]
    ;;
  explain_of_a_module_that_is_nowhere)
    # [begin explain_of_a_module_that_is_nowhere]
    python -m usm_dlpack explain numpi:zeros
    # [end explain_of_a_module_that_is_nowhere]
    ;;
  explain_of_an_expression_without_a_value)
    # [begin explain_of_an_expression_without_a_value]
    python -m usm_dlpack explain numpy:zeroes
    # [end explain_of_an_expression_without_a_value]
    ;;
  explain_where_there_is_no_device)
    # [begin explain_where_there_is_no_device]
    ONEAPI_DEVICE_SELECTOR="level_zero:*" python -m usm_dlpack explain "dpctl.memory:MemoryUSMHost(8)"
    # [end explain_where_there_is_no_device]
    ;;
  stdout_that_is_full)
    # [begin stdout_that_is_full]
    python -m usm_dlpack devices >/dev/full
    # [end stdout_that_is_full]
    ;;
esac
