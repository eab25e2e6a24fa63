# SPDX-License-Identifier: Apache-2.0
"""Names with and without a namespace."""

from __future__ import annotations

import pytest

from txrocketmq.client.base.namespace import with_namespace, without_namespace


@pytest.mark.parametrize(
    ("name", "wrapped"),
    [
        ("T", "ns%T"),
        ("%RETRY%g", "%RETRY%ns%g"),
        ("%DLQ%g", "%DLQ%ns%g"),
    ],
)
def test_there_and_back(name: str, wrapped: str) -> None:
    assert with_namespace("ns", name) == wrapped
    assert with_namespace("ns", wrapped) == wrapped
    assert without_namespace("ns", wrapped) == name
    assert without_namespace("ns", name) == name
    assert without_namespace("other", wrapped) == wrapped


@pytest.mark.parametrize(
    "name", ["", "TBW102", "rmq_sys_x", "RMQ_SYS_TRACE_TOPIC", "CID_RMQ_SYS_x"]
)
def test_the_servers_own_have_none(name: str) -> None:
    assert with_namespace("ns", name) == name
    assert without_namespace("ns", name) == name


def test_without_a_namespace_nothing_happens() -> None:
    assert with_namespace("", "T") == "T"
    assert without_namespace("", "ns%T") == "ns%T"
