# SPDX-License-Identifier: Apache-2.0
#
# Types of the module, for mypy and editors.
from usm_dlpack import DLPackTensor, UsmArray

def row_sums(x: UsmArray) -> DLPackTensor: ...
