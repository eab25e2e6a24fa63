# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.access.acl.errors import AclError


def test_it_is_an_error_of_values_which_ends_a_start_with_its_text() -> None:
    assert isinstance(AclError("x"), ValueError)
