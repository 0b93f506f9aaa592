# SPDX-License-Identifier: Apache-2.0
"""What a producer and a consumer of DLPack's kDLOneAPI must do, as tests for any library.

``pytest --pyargs usm_dlpack_conformance --adapter my_library.dlpack_adapter`` runs the cases. The
adapter is a module with a class ``Adapter``, below `usm_dlpack_conformance.Adapter`.
"""

from .adapter import Adapter, NotSupportedError

__all__ = ["Adapter", "NotSupportedError"]
