# SPDX-License-Identifier: Apache-2.0
"""Types of options, and how commands end."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any

import click
import pytest

from tests.zones import in_zone
from txrocketmq.broker import __main__ as broker
from txrocketmq.cli.__main__ import COMMANDS, module_of
from txrocketmq.cli.command_line import (
    DEFAULT_NAMESRV,
    Servers,
    above_zero,
    moment,
    pair,
    parse_time,
    positive,
    progress,
    run,
    servers_options,
)
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.namesrv import __main__ as namesrv


def test_no_server_imports_click() -> None:
    modules = "servers.standalone __main__".split()
    imports = "; ".join(f"import txrocketmq.cli.{name}" for name in modules)
    servers = "import txrocketmq.broker.__main__, txrocketmq.namesrv.__main__"
    code = f"import sys; {imports}; {servers}; sys.exit('click' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("words", "code"), [([], 3), (["--wrong"], 2), (["-n"], 2)])
def test_the_exit_code_is_the_commands_own(words: list[str], code: int) -> None:
    @click.command()
    @servers_options
    def command(servers: Servers) -> int:
        return 3

    assert run(command, "prog", words) == code


def test_the_name_servers_are_of_the_flag_the_environment_or_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    got: list[str] = []

    @click.command()
    @servers_options
    def command(servers: Servers) -> None:
        got.append(servers.config().namesrv_addr)

    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    assert run(command, "prog", []) == 0
    monkeypatch.setenv("NAMESRV_ADDR", "env:1")
    for words in ([], ["--namesrv", "flag:1"], ["-n", "flag:1"]):
        run(command, "prog", words)
    assert got == [DEFAULT_NAMESRV, "env:1", "flag:1", "flag:1"]


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ([], {}),
        (["--tls"], {"use_tls": True}),
        (["--tls-check-name"], {"use_tls": True, "tls_check_name": True}),
        (["--tls-trust-cert", "t.pem"], {"use_tls": True, "tls_trust_cert_path": "t.pem"}),
        (
            ["--tls-cert", "c.pem", "--tls-key", "k.pem"],
            {"use_tls": True, "tls_cert_path": "c.pem", "tls_key_path": "k.pem"},
        ),
        (["--tls-key", "k.pem"], {"use_tls": True, "tls_key_path": "k.pem"}),
    ],
)
def test_connections_are_encrypted_on_request_and_where_there_are_certificates(
    words: list[str], changed: dict[str, Any]
) -> None:
    got: list[tuple[ClientConfig, str]] = []

    @click.command()
    @click.argument("topic")
    @servers_options
    def command(topic: str, servers: Servers) -> None:
        got.append((servers.config(), topic))

    assert run(command, "prog", ["T", "-n", "h:1", *words]) == 0
    assert got == [(ClientConfig(namesrv_addr="h:1", **changed), "T")]


def test_numbers() -> None:
    assert (positive("12"), above_zero("0.5")) == (12, 0.5)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "two"])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a whole number of at least 1"):
        positive(text)


@pytest.mark.parametrize("text", ["0", "-1", "inf", "nan", "", "two"])
def test_what_is_no_number_above_zero(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a number above 0"):
        above_zero(text)


@pytest.mark.parametrize(
    ("text", "parts"), [("a=1", ("a", "1")), ("a=", ("a", "")), ("a=b=c", ("a", "b=c"))]
)
def test_pairs(text: str, parts: tuple[str, str]) -> None:
    assert pair(text) == parts


@pytest.mark.parametrize("text", ["a", "=1", ""])
def test_what_is_no_pair(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not NAME=VALUE"):
        pair(text)


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("1795248930123", 1_795_248_930_123),
        ("20261121101530", 1_795_248_930_000),
        ("2026-11-21T10:15:30", 1_795_248_930_000),
        ("2026-11-21T08:15:30Z", 1_795_248_930_000),
        ("2026-11-21 10:15:30.123", 1_795_248_930_123),
    ],
)
def test_times(text: str, time_ms: int) -> None:
    with in_zone("UTC-2"):
        assert parse_time(text) == time_ms
        assert moment("first")(text) == time_ms


@pytest.mark.parametrize(
    "text", ["", "now", "17952489301234567", "20261321101530", "2026-11-41", "0001-01-01"]
)
def test_what_is_neither_a_word_nor_a_time(text: str) -> None:
    with (
        in_zone("UTC-2"),
        pytest.raises(click.BadParameter, match="neither first, last, nor a time"),
    ):
        moment("first", "last")(text)


def test_what_is_no_time() -> None:
    assert moment("first", "last")("last") == "last"
    assert moment("first", "last")("earliest") == "first"
    assert moment("first", "last")("end") == "last"
    with pytest.raises(click.BadParameter, match="'lst' is neither first, last, nor a time"):
        moment("first", "last")("lst")
    with pytest.raises(click.BadParameter, match="is not a time such as"):
        moment()("2026-13-01")


def test_a_bar_is_for_terminals_only(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("working", 3) as step:
        step(3)
    assert capsys.readouterr().err == ""


def test_a_bar_comes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with progress("working", 4) as step:
        step(1)
        step(3)
    assert "working" in terminal.getvalue()
    assert "100%" in terminal.getvalue()


def every_help() -> Iterator[tuple[str, click.Command | None, str]]:
    """The name of each command, itself if it is made with click, and its help."""
    for name in COMMANDS:
        module = module_of(name)
        command = getattr(module, "command", None)
        if isinstance(command, click.Command):
            yield from _helps(f"txrocketmq {name}", command)
        else:
            yield name, None, module.make_parser().format_help()
    for server in (broker, namesrv):
        with pytest.raises(SystemExit), redirect_stdout(io.StringIO()) as shown:
            server.parse_arguments(["--help"])
        yield server.__name__, None, shown.getvalue()


def _helps(
    name: str, command: click.Command, parent: click.Context | None = None
) -> Iterator[tuple[str, click.Command, str]]:
    context = click.Context(command, parent, name, **command.context_settings)
    yield context.command_path, command, command.get_help(context)
    if isinstance(command, click.Group):
        for each, below in command.commands.items():
            yield from _helps(each, below, context)


def test_all_help_has_one_style(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    faults = []
    for name, command, text in every_help():
        first, *lines = text.splitlines()
        if not first.startswith("Usage: "):
            faults.append(f"{name}: {first}")
        if not re.search(r"^  -h, --help +Show this message and exit\.$", text, re.MULTILINE):
            faults.append(f"{name}: --help")
        faults += [f"{name}: {line}" for line in lines if len(line) > 80]
        faults += [f"{name}: {line}" for line in lines if line.endswith("...")]
        faults += [
            f"{name}: {line}"
            for line in lines
            if re.search(r"\b(TEXT|INTEGER|RANGE|PATH)\b|\[default: ", line)
        ]
        for option in command.params if command is not None else ():
            said = getattr(option, "help", None) or "?."
            if isinstance(option, click.Option) and (said[0].islower() or not said.endswith(".")):
                faults.append(f"{name}: {said}")
    assert not faults, "\n".join(faults)


def test_where_servers_are_is_a_section_of_its_own() -> None:
    shown = {name: text for name, _, text in every_help() if "--namesrv ADDR" in text}
    assert len(shown) > 25
    for name, text in shown.items():
        if "contexts" in name:
            continue
        _, _, section = text.partition("\nServers:\n")
        for option in ("--namesrv", "--context", "--tls ", "--tls-trust-cert", "--tls-key"):
            assert f"  {option}" in section or f", {option}" in section, name
            assert text.count(f"{option.strip()} ") == section.count(f"{option.strip()} "), name


def test_an_option_before_the_command_of_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert module_of("topics").main(["--namesrv", "a:1", "list"]) == 2
    assert "--namesrv follows the command, as in 'txrocketmq topics COMMAND --namesrv ...'" in (
        capsys.readouterr().err
    )
    assert module_of("topics").main(["--namesvr", "a:1", "list"]) == 2
    assert "No such option '--namesvr'" in capsys.readouterr().err
