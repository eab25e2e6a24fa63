# SPDX-License-Identifier: Apache-2.0
"""Runs administrative commands with a client whose servers are fakes."""

from __future__ import annotations

import io
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.client.admin.fake_cluster import Cluster
from tests.client.fakes import result_of
from txrocketmq.cli import session
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.base.errors import MQClientError


class Administered:
    """Runs commands: `run` takes a command's main and words, `out` and `err` have the output."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.cluster = Cluster()
        self.config = ClientConfig()
        self.out = self.err = ""
        self._capsys = capsys
        monkeypatch.setattr(session, "run", self._run)
        monkeypatch.setattr("sys.stdin", io.StringIO())

    def _run(
        self, prog: str, config: ClientConfig, command: Callable[[Any], Awaitable[int]], **_: Any
    ) -> int:
        self.config = config
        try:
            return result_of(command(self.cluster.client))
        except (MQClientError, ValueError) as error:
            sys.stdout.write(f"{prog}: {error}\n")
            return 1

    def run(self, main: Callable[[list[str]], int], *words: str) -> int:
        """Runs a command; returns the exit code."""
        code = main(list(words))
        self.out, self.err = self._capsys.readouterr()
        return code

    @property
    def lines(self) -> list[list[str]]:
        """The words of each line of output."""
        return [line.split() for line in self.out.splitlines()]
