# SPDX-License-Identifier: Apache-2.0
"""Changes of accounts that were answered are there after SIGKILL, of either version.

No power fails here, so the files are what the process had written when it was killed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.beside.probe import Asking
from txrocketmq.client import Admin, RemotingError
from txrocketmq.client.admin.accounts import Policy
from txrocketmq.client.base.errors import MQClientError
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.credentials import seal_of
from txrocketmq.remoting.frame.frame import encode_frame
from txrocketmq.testing.server import Server, running


@pytest.fixture
def server() -> Iterator[Server]:
    with running(accounts=True) as made:
        yield made


def known(server: Server) -> dict[str, tuple[str | None, bool]]:
    """The accounts after a restart: password, and whether they are enabled."""
    with Admin(**server.client_settings({})) as admin:
        (accounts,) = admin.accounts(broker=server.broker_addr).values()
        return {each.name: (each.password, each.is_enabled) for each in accounts}


def allowed(server: Server) -> dict[tuple[str, str], tuple[str, ...]]:
    """The policies after a restart."""
    with Admin(**server.client_settings({})) as admin:
        (policies,) = admin.policies(broker=server.broker_addr).values()
        return {(each.account, each.resource): tuple(each.actions) for each in policies}


def test_what_was_answered_is_there_after_a_kill(server: Server) -> None:
    one, two = "the first word", "another word"
    broker = server.broker_addr

    def killed_behind(*changes: str) -> None:
        """Kills the server as soon as the last change is answered."""
        with Admin(**server.client_settings({})) as admin:
            for change in changes:
                if change == "create":
                    admin.create_account("alice", one, broker=broker)
                elif change == "allow":
                    policies = [
                        Policy(account="alice", resource=f"Topic:{name}", actions=["Pub"])
                        for name in ("Orders", "Bills")
                    ]
                    admin.set_policies(policies, broker=broker)
                elif change == "password":
                    admin.update_account("alice", password=two, is_enabled=False, broker=broker)
                elif change == "deny":
                    admin.delete_policies("alice", "Topic:Orders", broker=broker)
                else:
                    admin.delete_account("alice", broker=broker)
            server.kill()
        server.restart()

    killed_behind("create")
    assert known(server)["alice"] == (one, True)
    killed_behind("allow")
    assert set(allowed(server)) == {("alice", "Topic:Orders"), ("alice", "Topic:Bills")}
    killed_behind("password")
    assert known(server)["alice"] == (two, False)
    killed_behind("deny")
    assert set(allowed(server)) == {("alice", "Topic:Bills")}
    killed_behind("delete")
    assert "alice" not in known(server)
    killed_behind("create")
    assert allowed(server) == {}, "the policies of the old account are gone for good"


def test_a_kill_among_changes_loses_none_that_was_answered(server: Server) -> None:
    answered: list[str] = []
    enough = threading.Event()

    def create() -> None:
        with Admin(**server.client_settings({}), api_timeout_ms=5_000) as admin:
            try:
                for number in range(10_000):
                    admin.create_account(f"user{number}", "p", broker=server.broker_addr)
                    policy = Policy(account=f"user{number}", resource="Topic:T", actions=["Sub"])
                    admin.set_policies([policy], broker=server.broker_addr)
                    answered.append(f"user{number}")
                    if number == 20:
                        enough.set()
            except (MQClientError, RemotingError):
                return

    thread = threading.Thread(target=create)
    thread.start()
    assert enough.wait(60)
    server.kill()
    thread.join(60)
    server.restart()
    users, policies = set(known(server)), {account for account, _ in allowed(server)}
    assert len(answered) > 20
    assert set(answered) <= users
    assert set(answered) <= policies <= users, "no policy without its user"
    assert len(users) <= len(answered) + 2, "the first user, and one that was not answered"


# --------------------------------------------------------------------------------- RocketMQ 4

YML = """
accounts:
- accessKey: operator
  secretKey: operator-secret
  admin: true
"""


def signed(code: int, fields: Mapping[str, str]) -> bytes:
    seal = seal_of("operator", "operator-secret")
    assert seal is not None
    given = dict(fields)
    seal(given, b"")
    return b"".join(map(bytes, encode_frame(RemotingCommand(code, given, opaque=1))))


def test_accounts_of_4_are_in_their_file_after_a_kill(tmp_path: Path) -> None:
    file = tmp_path / "conf" / "plain_acl.yml"
    file.parent.mkdir()
    file.write_text(YML)
    with running(aclEnable=True, rocketmqHome=str(tmp_path)) as server:
        for code, fields, expected in (
            (50, {"accessKey": "newcomer", "secretKey": "newcomer-1", "admin": "false"}, "-1"),
            (50, {"accessKey": "newcomer", "secretKey": "newcomer-2", "admin": "false"}, "-2"),
            (53, {"globalWhiteAddrs": "10.9.8.7"}, "10.9.8.7"),
            (51, {"accessKey": "newcomer"}, ""),
        ):
            asking = Asking(int(server.broker_addr.rpartition(":")[2]))
            answer = asking.ask(signed(code, fields))
            server.kill()
            assert (code, answer.code) == (code, 0), answer.remark
            asking.close()
            text = file.read_text()
            assert expected in text
            assert ("newcomer" in text) == (code != 51)
            server.restart()
