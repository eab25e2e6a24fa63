# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.remoting.settings.idle_settings import tell_idle


def test_misspelt_keys_and_those_without_effect_are_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = {"listenPort": "1", "clusterTest": "true", "serverWorkerThreads": "8"}
    tell_idle("mqnamesrv", "a.conf", ["unknown key listenPrt"], (NamesrvConfig,), given)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "mqnamesrv: a.conf: unknown key listenPrt",
        "mqnamesrv: a.conf: accepted, without effect here: clusterTest, serverWorkerThreads",
    ]


def test_nothing_is_told_of_a_file_that_is_as_it_should_be(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tell_idle("mqnamesrv", "a.conf", (), (NamesrvConfig,), {"listenPort": "1"})
    assert capsys.readouterr().err == ""
