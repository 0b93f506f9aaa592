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
esac
