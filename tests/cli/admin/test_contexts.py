# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq contexts`, and commands that use a context."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.administered import Administered
from txrocketmq.cli.admin import brokers
from txrocketmq.cli.admin.contexts import main
from txrocketmq.cli.context_file import ContextFile, contexts_path


@pytest.fixture
def two(administered: Administered) -> Administered:
    assert administered.run(main, "add", "dev", "-n", "h:1", "--use") == 0
    assert administered.run(main, "add", "prod", "-n", "p:1", "--tls-trust-cert", "ca.pem") == 0
    return administered


def test_contexts_are_added_and_listed(two: Administered) -> None:
    assert two.out == f"added context prod to {contexts_path()}\n"
    assert "use prod" in two.err
    assert two.run(main, "list") == 0
    assert two.lines[1:] == [["*", "dev", "h:1", "no", "-"], ["-", "prod", "p:1", "yes", "-"]]
    two.run(main, "list", "--json")
    assert [json.loads(line)["used"] for line in two.out.splitlines()] == [True, False]


def test_another_is_used(two: Administered) -> None:
    assert two.run(main, "use", "prod") == 0
    assert ContextFile.read().current == "prod"
    assert two.run(main, "use", "prd") == 1
    assert "there is no context prd; did you mean prod?" in two.err


def test_one_is_removed(two: Administered) -> None:
    assert two.run(main, "remove", "dev") == 0
    assert list(ContextFile.read().contexts) == ["prod"]
    assert two.run(main, "remove", "dev") == 1


def test_files_are_found_from_any_folder(two: Administered) -> None:
    assert ContextFile.read().get("prod").tls_trust_cert == str(Path.cwd() / "ca.pem")


def test_a_context_that_checks_names_encrypts(two: Administered) -> None:
    assert two.run(main, "add", "strict", "-n", "s:1", "--tls-check-name") == 0
    two.run(brokers.main, "list", "--context", "strict")
    assert (two.config.use_tls, two.config.tls_check_name) == (True, True)


def test_the_secret_key_is_not_on_the_command_line(
    two: Administered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCKETMQ_SECRET_KEY", "hush")
    assert two.run(main, "add", "acl", "-n", "a:1", "--access-key", "me") == 0
    assert ContextFile.read().get("acl").secret_key == "hush"  # noqa: S105 - of no account
    assert two.run(main, "show", "acl") == 0
    assert ["secret_key", "(hidden)"] in two.lines
    assert "hush" not in two.out


def test_the_secret_key_may_be_in_a_file(
    two: Administered, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ROCKETMQ_SECRET_KEY", "of another account")
    secret = tmp_path / "me.key"
    secret.write_text("filed\n")
    words = ("add", "acl", "-n", "a:1", "--secret-key-file", str(secret))
    assert two.run(main, *words) == 2
    assert "--secret-key-file belongs to --access-key" in two.err
    assert two.run(main, *words, "--access-key", "me") == 0
    assert ContextFile.read().get("acl").secret_key == "filed"  # noqa: S105 - of no account
    assert "filed" not in two.out + two.err


def test_the_secret_key_is_asked_for(two: Administered, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROCKETMQ_SECRET_KEY", raising=False)
    monkeypatch.setattr("click.prompt", lambda *_, **__: "typed")
    assert two.run(main, "add", "acl", "-n", "a:1", "--access-key", "me") == 0
    assert ContextFile.read().get("acl").secret_key == "typed"  # noqa: S105 - of no account


def test_commands_use_the_context(two: Administered, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCKETMQ_SECRET_KEY", "hush")
    two.run(main, "add", "acl", "-n", "a:1", "--access-key", "me")
    for words, namesrv, tls, key in (
        ([], "h:1", False, ""),
        (["--context", "prod"], "p:1", True, ""),
        (["--context", "acl", "-n", "b:2"], "b:2", False, "me"),
        (["-n", "c:3"], "c:3", False, ""),
    ):
        two.run(brokers.main, "list", *words)
        config = two.config
        assert (config.namesrv_addr, config.use_tls, config.access_key) == (namesrv, tls, key)


def test_a_context_that_cannot_be_used_ends_a_command(two: Administered) -> None:
    assert two.run(brokers.main, "list", "--context", "prd") == 1
    assert two.err == "Error: there is no context prd; did you mean prod?\n"
    contexts_path().write_text("[")
    assert two.run(brokers.main, "list") == 1
    assert "is not valid TOML" in two.err
