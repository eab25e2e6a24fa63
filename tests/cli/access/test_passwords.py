# SPDX-License-Identifier: Apache-2.0
"""Where passwords come from; the commands that take them are tested beside this."""

from __future__ import annotations

import io
from pathlib import Path

import click
import pytest

from txrocketmq.cli.access.passwords import given_password

KEY = "12345678"


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_is_asked_twice_and_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def typed(prompt: str) -> str:
        asked.append(prompt)
        return KEY

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("click.termui.hidden_prompt_func", typed)
    assert given_password(None, generate=False) == KEY
    assert len(asked) == 2


def test_a_file_comes_before_the_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(f"{KEY}\r\nmore\n")
    monkeypatch.setattr("sys.stdin", Terminal())
    assert given_password(str(path), generate=False) == KEY


def test_made_ones_are_new() -> None:
    assert given_password(None, generate=True) != given_password(None, generate=True)
    with pytest.raises(click.UsageError, match="not both"):
        given_password("-", generate=True)
