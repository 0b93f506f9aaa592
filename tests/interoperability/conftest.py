# SPDX-License-Identifier: Apache-2.0
"""What the tests of both peers share: asserts in the contract explain themselves, too."""

import pytest

pytest.register_assert_rewrite("exchange_contract", "extension_contract")
