# SPDX-License-Identifier: Apache-2.0
"""Hash codes as Java computes them; the values are String.hashCode and Long.hashCode of a JVM."""

from __future__ import annotations

from typing import Any

import pytest

from txrocketmq.client.base.java_hash import java_hash_code


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("", 0),
        ("hello", 99162322),
        ("orderId", -1207110391),
        ("\U0001f600", 1772899),
        (7, 7),
        (-7, -7),
        (1 << 40, 256),
        (-1 << 40, -256),
        (True, 1231),
        (False, 1237),
    ],
)
def test_the_values_of_java(key: Any, code: int) -> None:
    assert java_hash_code(key) == code


@pytest.mark.parametrize("key", [None, 1.5, 1 << 70, object()])
def test_what_the_two_clients_could_not_agree_on(key: Any) -> None:
    with pytest.raises(TypeError, match="a key is a text or a whole number"):
        java_hash_code(key)
