# SPDX-License-Identifier: Apache-2.0
"""What standalone says when it is ready can be copied and run."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import pytest

from txrocketmq.cli.clients import send, tail
from txrocketmq.cli.command_line import DEFAULT_NAMESRV
from txrocketmq.cli.context_file import Context, ContextFile, contexts_path
from txrocketmq.cli.servers import welcome
from txrocketmq.cli.servers.welcome import own_command


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: "/bin/txrocketmq")


def text(namesrv: str, *, needs_account: bool = False) -> str:
    return welcome.welcome(
        namesrv, "127.0.0.1:1", "c", "broker-a", "/s", needs_account=needs_account
    )


def commands(namesrv: str) -> list[list[str]]:
    lines = [line.strip() for line in text(namesrv).splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("txrocketmq ")]


@pytest.mark.parametrize("namesrv", ["127.0.0.1:9876", "127.0.0.1:4711"])
def test_the_commands_are_what_the_commands_understand(
    namesrv: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    (first, *tail_arguments), (second, *send_arguments) = commands(namesrv)
    assert (first, second) == ("tail", "send")
    for command, arguments in ((tail.command, tail_arguments), (send.command, send_arguments)):
        with command.make_context("prog", arguments) as context:
            assert (context.params["namesrv"] or DEFAULT_NAMESRV) == namesrv


def test_the_name_server_is_named_where_another_is_used_by_default() -> None:
    ContextFile(contexts_path()).with_context("a", Context(namesrv="h:1")).using("a").write()
    assert "--namesrv 127.0.0.1:9876" in text("127.0.0.1:9876")
    contexts_path().write_text("[")
    assert "--namesrv 127.0.0.1:9876" in text("127.0.0.1:9876")


def test_it_says_where_everything_is() -> None:
    said = text("127.0.0.1:4711")
    for part in ("127.0.0.1:4711", "127.0.0.1:1", "broker-a of c", "/s", "mqadmin clusterList -n"):
        assert part in said
    assert 'setNamesrvAddr("127.0.0.1:4711")' in said


def test_whoever_needs_an_account_is_shown_where_it_belongs() -> None:
    said, open_to_all = text("127.0.0.1:4711", needs_account=True), text("127.0.0.1:4711")
    for part in ("ROCKETMQ_SECRET_KEY", "AclClientRPCHook", '"group", account)', "tools.yml"):
        assert part in said
        assert part not in open_to_all
    assert 'new DefaultMQProducer("group");' in open_to_all
    assert 'new DefaultMQProducer("group");' not in said


def test_the_command_is_named_so_that_a_shell_finds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert own_command() == "txrocketmq"
    monkeypatch.setattr(shutil, "which", lambda _: None)
    scripts = tmp_path / "venv" / "bin"
    scripts.mkdir(parents=True)
    python = scripts / "python"
    monkeypatch.setattr(sys, "executable", str(python))
    assert own_command() == f"{python} -m txrocketmq.cli"
    (scripts / "txrocketmq").touch()
    assert own_command() == str(scripts / "txrocketmq")
    monkeypatch.chdir(tmp_path)
    assert own_command() == "venv/bin/txrocketmq"
