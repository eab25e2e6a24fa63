# SPDX-License-Identifier: Apache-2.0
"""The command `txrocketmq` finds its commands, and says what there is."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest

import txrocketmq
from txrocketmq.cli.__main__ import COMMANDS, main, module_of, usage


def test_each_command_has_a_module_with_a_main() -> None:
    for name in COMMANDS:
        assert callable(module_of(name).main)


def test_the_rest_of_the_line_goes_to_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[list[str]] = []

    def command(arguments: list[str]) -> int:
        got.append(arguments)
        return 7

    monkeypatch.setitem(sys.modules, "txrocketmq.cli.clients.send", SimpleNamespace(main=command))
    assert main(["send", "T", "--count", "2"]) == 7
    assert got == [["T", "--count", "2"]]


@pytest.mark.parametrize("arguments", [["-h"], ["--help"]])
def test_help_lists_the_commands(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert out.strip() == usage()
    assert all(f"  {name} " in out for name in COMMANDS)
    assert max(map(len, out.splitlines())) <= 80


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    first, kernel = capsys.readouterr().out.splitlines()
    assert first == f"txrocketmq {txrocketmq.__version__}"
    assert kernel.startswith("kernel: ")
    assert txrocketmq.__version__[0].isdigit()


def test_produce_is_another_name_of_send(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["produce", "--help"]) == 0
    assert "Usage: txrocketmq send" in capsys.readouterr().out


def test_no_command_and_options_alone_are_those_of_the_overview(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    got: list[list[str]] = []

    def command(arguments: list[str]) -> int:
        got.append(arguments)
        return 0

    status = SimpleNamespace(main=command)
    monkeypatch.setitem(sys.modules, "txrocketmq.cli.admin.status", status)
    lines = [[], ["-n", "a:1"], ["--json"], ["--context", "store"], ["--tls", "x"]]
    for arguments in lines:
        assert main(arguments) == 0
    assert got == lines


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        ("--context prod topics list", "topics list --context prod"),
        ("-n a:1 --tls send Orders x", "send Orders x -n a:1 --tls"),
        ("--namesrv=a:1 dlq list", "dlq list --namesrv=a:1"),
    ],
)
def test_options_before_the_command(
    arguments: str, right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments.split()) == 2
    assert capsys.readouterr().err == (
        f"txrocketmq: options follow the command: txrocketmq {right}\n"
    )


def test_an_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing-like-it"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no command 'nothing-like-it'" in captured.err
    assert usage() in captured.err


@pytest.mark.parametrize(("wrong", "meant"), [("sned", "send"), ("topcs", "topics")])
def test_a_misspelt_command(wrong: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([wrong]) == 2
    said = capsys.readouterr().err
    assert said == f"txrocketmq: there is no command '{wrong}'; did you mean '{meant}'?\n"


def test_threads_that_would_only_wait_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    of_command = SimpleNamespace(main=lambda _: int(os.environ["OPENBLAS_NUM_THREADS"]))
    monkeypatch.setitem(sys.modules, "txrocketmq.cli.clients.send", of_command)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert main(["send"]) == 1
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    assert main(["send"]) == 2, "what the user sets counts"
