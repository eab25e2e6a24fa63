# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.remoting.primitives.unknown_key import UnknownKey, unknown_keys

KNOWN = {"listenPort", "brokerName"}


def test_the_nearest_known_key_is_named() -> None:
    found = unknown_keys(["listenport", "listenPort", "zzz"], KNOWN)
    assert found == [UnknownKey("listenport", "listenPort"), UnknownKey("zzz", None)]
    assert str(found[0]) == "unknown key listenport (did you mean listenPort?)"
    assert str(found[1]) == "unknown key zzz"


def test_only_the_first_few_are_looked_up() -> None:
    found = unknown_keys(["listenport", "listenPorts"], KNOWN, 1)
    assert [each.nearest for each in found] == ["listenPort", None]
