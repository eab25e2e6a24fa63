# SPDX-License-Identifier: Apache-2.0
"""What the proxy needs, and what is said if it is missing."""

from __future__ import annotations

from importlib import util

import pytest

from txrocketmq.proxy import needs


def test_nothing_is_missing_here() -> None:
    assert needs.missing() == ""


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "find_spec", lambda name: None if name == "h2" else util)
    assert needs.missing() == "the proxy needs h2: pip install 'txrocketmq[grpc]'"


def test_a_package_whose_parent_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_spec(name: str) -> None:
        raise ModuleNotFoundError

    monkeypatch.setattr(needs, "find_spec", find_spec)
    assert "h2 and google.protobuf" in needs.missing()
