# SPDX-License-Identifier: Apache-2.0
#
# What docs/how-to/errors.md shows of the shell, beside explain.py.
# [begin explain]
python -m usm_dlpack explain explain.py:elsewhere
# [end explain]
