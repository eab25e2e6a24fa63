# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq accounts` with a client among fakes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tests.cli.administered import Administered
from tests.client.admin.guarded_cluster import Guarded
from tests.client.fakes import BROKER_A, BROKER_B
from txrocketmq.cli.access import accounts, policies
from txrocketmq.cli.access.accounts import main

KEY = "12345678"


@pytest.fixture
def guarded(administered: Administered) -> Guarded:
    administered.cluster = cluster = Guarded()
    return cluster


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    path = tmp_path / "key"
    path.write_text(f"{KEY}\nanother line\n")
    return str(path)


def test_an_account_is_added_shown_and_removed(
    administered: Administered, guarded: Guarded, key_file: str
) -> None:
    assert administered.run(main, "add", "alice", "--password-file", key_file) == 0
    assert administered.out == "added account alice\n"
    assert guarded.users[BROKER_A]["alice"].password == KEY
    assert administered.run(main, "add", "root", "--super", "--password-file", key_file) == 0
    assert administered.run(main, "list") == 0
    assert administered.lines == [
        ["ACCOUNT", "TYPE", "ENABLED", "BROKERS"],
        ["alice", "Normal", "yes", "all"],
        ["root", "Super", "yes", "all"],
    ]
    administered.run(main, "show", "alice", "-b", "broker-a", "--json")
    assert json.loads(administered.out) == {
        "broker": "broker-a", "address": BROKER_A, "account": "alice", "type": "Normal",
        "enabled": True, "policies": 0,
    }  # fmt: skip
    assert administered.run(main, "remove", "alice", "--yes") == 0
    assert administered.run(main, "remove", "alice", "--yes") == 1
    assert "no broker has the account alice" in administered.out
    assert KEY not in administered.out + administered.err


def test_lists_say_where_an_account_differs(
    administered: Administered, guarded: Guarded, key_file: str
) -> None:
    administered.run(main, "add", "alice", "--password-file", key_file)
    administered.run(main, "change", "alice", "--disable", "-b", "broker-b")
    administered.run(main, "list", "ali")
    assert administered.lines[1:] == [
        ["alice", "Normal", "yes", "broker-a,", "broker-a/1"],
        ["alice", "Normal", "no", "broker-b"],
    ]


def test_a_password_is_made_and_printed_once(administered: Administered, guarded: Guarded) -> None:
    assert administered.run(main, "add", "alice", "--generate") == 0
    made = administered.out.strip()
    assert len(made) == 32
    assert guarded.users[BROKER_B]["alice"].password == made
    assert administered.run(main, "change", "alice", "--generate") == 0
    assert guarded.users[BROKER_B]["alice"].password == administered.out.strip() != made


def test_a_password_is_read_from_standard_input(
    administered: Administered, guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (["add", "alice"], ["change", "alice", "--password"]):
        text = io.TextIOWrapper(io.BytesIO(f"{KEY}-{words[0]}\n".encode()))
        monkeypatch.setattr("sys.stdin", text)
        assert administered.run(main, *words) == 0
        assert guarded.users[BROKER_A]["alice"].password == f"{KEY}-{words[0]}"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["add", "a", "--password-file", "/none"], "/none cannot be read: No such file"),
        (["add", "a", "--generate", "--password-file", "/none"], "not both"),
        (["change", "a"], "nothing is to be changed"),
        (["copy", "--from", "broker-a"], "--to"),
    ],
)
def test_what_is_wrong_with_a_command(
    administered: Administered, guarded: Guarded, words: list[str], why: str
) -> None:
    assert administered.run(main, *words) != 0
    assert why in administered.err


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\n", "is empty"),
        (b"", "is empty"),
        (b"\xff\n", "UTF-8"),
        (b"x" * 5000, "longer than 4096"),
    ],
)
def test_files_without_a_password(
    administered: Administered, guarded: Guarded, tmp_path: Path, data: bytes, why: str
) -> None:
    path = tmp_path / "key"
    path.write_bytes(data)
    assert administered.run(main, "add", "a", "--password-file", str(path)) == 1
    assert why in administered.err


def test_an_account_is_shown_where_it_is(
    administered: Administered, guarded: Guarded, key_file: str
) -> None:
    words = ["--password-file", key_file, "-b", "broker-a"]
    assert administered.run(main, "add", "alice", *words) == 0
    assert administered.run(main, "show", "alice", "--json") == 0
    assert [json.loads(line)["broker"] for line in administered.out.splitlines()] == ["broker-a"]


def test_accounts_are_copied_with_policies(
    administered: Administered, guarded: Guarded, key_file: str
) -> None:
    for name in ("alice", "bob"):
        administered.run(main, "add", name, "--password-file", key_file, "-b", "broker-a")
    administered.run(policies.main, "add", "alice", "Topic:T", "--allow", "pub", "-b", "broker-a")
    assert administered.run(main, "copy", "--from", "broker-a", "--to", "broker-b") == 0
    assert (
        administered.out
        == "copied account alice with 1 policy\ncopied account bob with 0 policies\n"
    )
    assert guarded.users[BROKER_B]["alice"].password == KEY
    assert administered.run(main, "copy", "bob", "--from", "broker-b", "--to", "broker-a") == 0


def test_help_names_all(administered: Administered) -> None:
    administered.run(accounts.main, "--help")
    for name in ("list", "show", "add", "change", "remove", "copy"):
        assert f"  {name} " in administered.out
