# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.access.acl.test_edits import NEW
from tests.access.acl.test_files import account_text, home_of
from txrocketmq.access.acl import edits
from txrocketmq.access.acl.errors import AclError
from txrocketmq.access.acl.table import PERIOD_MS, READING, PlainAccounts
from txrocketmq.remoting.host.life import Done, Opening

ONE = "accounts:\n" + account_text("someone")
TWO = ONE + account_text("another")


class Threads:
    """Does the work when it is told to."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], None], Done]] = []

    def run(self, work: Callable[[], None], done: Done) -> None:
        self.waiting.append((work, done))

    def do(self) -> None:
        work, done = self.waiting.pop(0)
        try:
            work()
        except AclError as error:
            done(error)
        else:
            done(None)


class Server:
    def __init__(self, tmp_path: Path, text: str = ONE) -> None:
        self.home = home_of(tmp_path, plain_acl=text)
        self.threads = Threads()
        self.told: list[str] = []
        self.errors: list[Exception | None] = []
        self.accounts = PlainAccounts(self.home, self.threads.run, lambda: 5, self.told.append)
        self.accounts.on_read.append(self.errors.append)
        self.accounts.load()
        self._times = 0

    @property
    def keys(self) -> set[str]:
        return set(self.accounts.files.accounts)

    def write(self, text: str) -> None:
        Path(self.home.default_file).write_text(text)
        self._times += 1
        os.utime(self.home.default_file, ns=(self._times, self._times))

    def look(self) -> None:
        self.accounts.look()
        self.threads.do()


def test_it_looks_every_five_seconds(tmp_path: Path) -> None:
    life = Server(tmp_path).accounts.life()
    assert [beat.period_ms for beat in life.beats] == [PERIOD_MS] == [5_000]
    assert READING in life.troubles


def test_files_that_have_changed_are_read_again_in_a_thread(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.look()
    assert (server.told, server.errors) == ([], [])
    server.write(TWO)
    server.accounts.look()
    assert server.keys == {"someone"}
    server.threads.do()
    assert server.keys == {"someone", "another"}
    assert server.told == ["the accounts were read again: 2 accounts of 1 files"]
    assert server.errors == [None]


def test_a_broken_file_leaves_the_accounts_and_is_told_once(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.write("accounts: [")
    server.look()
    server.look()
    assert server.keys == {"someone"}
    assert len(server.errors) == 1
    server.write(TWO)
    server.look()
    assert server.keys == {"someone", "another"}
    assert server.errors[1:] == [None]


def test_an_emptied_file_has_no_accounts_any_more(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.write("")
    server.look()
    assert server.keys == set()


def test_one_look_at_a_time(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.accounts.look()
    server.accounts.look()
    assert len(server.threads.waiting) == 1


def test_changes_are_made_one_after_the_other_and_count_when_they_are_told(tmp_path: Path) -> None:
    server = Server(tmp_path)
    done: list[Exception | None] = []
    server.accounts.edit(edits.update(NEW), done.append)
    server.accounts.edit(edits.delete("someone"), done.append)
    server.accounts.edit(edits.delete("nobody"), done.append)
    assert (len(server.threads.waiting), done) == (1, [])
    server.threads.do()
    assert (server.keys, done) == ({"someone", "newcomer"}, [None])
    server.threads.do()
    assert (server.keys, done) == ({"newcomer"}, [None, None])
    server.threads.do()
    assert isinstance(done[2], AclError)
    server.look()  # what we have written is no news
    assert server.told == []


def test_a_start_with_a_broken_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AclError, match=r"plain_acl.yml.*Repair the file"):
        Server(tmp_path, "accounts: [")


def test_a_start_without_accounts_is_warned_about(tmp_path: Path) -> None:
    life = Server(tmp_path, "").accounts.life()
    assert "no accounts" in next(iter(life.opens(Opening())))
    assert not list(Server(tmp_path, ONE).accounts.life().opens(Opening()))
