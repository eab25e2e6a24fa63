# SPDX-License-Identifier: Apache-2.0
"""The command `txrocketmq proxy`."""

from __future__ import annotations

import pytest

from txrocketmq.cli.__main__ import main
from txrocketmq.cli.servers import proxy


def test_it_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["proxy", "-p", "-n", "a:1"]) == 0
    assert "grpcServerPort=8081" in capsys.readouterr().out


def test_its_options() -> None:
    assert proxy.make_parser().parse_args(["-n", "a:1"]).namesrvAddr == "a:1"
