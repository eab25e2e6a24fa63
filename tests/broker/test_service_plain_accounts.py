# SPDX-License-Identifier: Apache-2.0
"""A whole broker with accounts of RocketMQ 4: refusals, and changes while messages flow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.broker.test_service import Client, Scene
from tests.broker.test_service_accounts import Account
from tests.broker.test_service_guards import REQUESTS, send_fields
from txrocketmq.remoting.codes import RequestCode as C
from txrocketmq.remoting.command import ONEWAY_FLAG, RemotingCommand
from txrocketmq.remoting.protocol.body.route import TopicConfig

SECRET = "hunter2-x"
ADMIN = f"- accessKey: operator\n  secretKey: {SECRET}\n  admin: true\n"
WRITER = f"- accessKey: writer-1\n  secretKey: {SECRET}\n  topicPerms:\n  - T=PUB\n"
EXCEPTION = "org.apache.rocketmq.acl.common.AclException: "


class Guarded(Scene):
    """A broker with aclEnable, and its file of accounts."""

    def __init__(self, folder: Path, text: str, **settings: Any) -> None:
        self.path = folder / "home/conf/plain_acl.yml"
        self.path.parent.mkdir(parents=True)
        self.path.write_text(text)
        self.times = 0
        super().__init__(
            folder / "store", acl_enable=True, rocketmq_home=str(folder / "home"), **settings
        )

    def write(self, text: str) -> None:
        self.path.write_text(text)
        self.times += 1
        os.utime(self.path, ns=(self.times, self.times))
        self.pass_ms(5_000)


@pytest.fixture
def scene(tmp_path: Path) -> Guarded:
    made = Guarded(tmp_path, f"accounts:\n{ADMIN}{WRITER}")
    made.start()
    made.broker.parts.topics.update(TopicConfig(topic_name="T"))
    return made


@pytest.mark.parametrize("port", [0, 1])
@pytest.mark.parametrize("kind", list(REQUESTS))
def test_nobody_gets_in_without_an_account(scene: Guarded, kind: str, port: int) -> None:
    code, fields, body = REQUESTS[kind]
    stranger = Account(Client(scene, port))
    for flag, count in ((0, 1), (ONEWAY_FLAG, 0)):
        answers = stranger.tell(RemotingCommand(code, fields, body, flag=flag))
        assert [(each.code, each.remark) for each in answers] == [
            (1, f"{EXCEPTION}No accessKey is configured")
        ] * count
    assert scene.broker.parts.store.max_physical_offset == 0


def test_one_refusal_in_a_run_harms_no_other(scene: Guarded) -> None:
    writer = Account(Client(scene), "writer-1", SECRET)
    stranger = Account(writer.client, "writer-1", "hunter2-y")
    made = [writer.signed(310, send_fields(), b"x", opaque=at) for at in range(8)]
    made[3] = stranger.signed(310, send_fields(), b"x", opaque=3)
    made[5] = writer.signed(310, send_fields("U"), b"x", opaque=5)
    answers = {each.opaque: (each.code, each.remark) for each in writer.tell(*made)}
    assert answers.pop(3) == (1, f"{EXCEPTION}Check signature failed for accessKey=writer-1")
    assert answers.pop(5) == (1, f"{EXCEPTION}No default permission for topic:U")
    assert {code for code, _ in answers.values()} == {0}
    assert len(answers) == 6


def test_changes_of_the_file_count_while_messages_flow(scene: Guarded) -> None:
    writer = Account(Client(scene), "writer-1", SECRET)
    assert writer.ask(310, send_fields(), b"x").code == 0
    scene.write("accounts: [")
    assert writer.ask(310, send_fields(), b"x").code == 0, "the old accounts stay"
    scene.write(f"accounts:\n{ADMIN}")
    answer = writer.ask(310, send_fields(), b"x")
    assert (answer.code, answer.remark) == (1, f"{EXCEPTION}No acl config for writer-1")
    scene.write(f"accounts:\n{ADMIN}{WRITER}")
    assert writer.ask(310, send_fields(), b"x").code == 0


def test_accounts_are_changed_by_administrators_only(scene: Guarded) -> None:
    fields = {"accessKey": "newcomer", "secretKey": SECRET, "admin": "true"}
    writer = Account(Client(scene), "writer-1", SECRET)
    for code in (50, 51, 53, 54):
        answer = writer.ask(code, {**fields, "globalWhiteAddrs": "*"})
        assert (answer.code, "Need admin permission" in (answer.remark or "")) == (1, True)
    operator = Account(Client(scene), "operator", SECRET)
    assert operator.ask(C.UPDATE_AND_CREATE_ACL_CONFIG, fields).code == 0
    newcomer = Account(Client(scene), "newcomer", SECRET)
    assert newcomer.ask(C.DELETE_ACL_CONFIG, {"accessKey": "writer-1"}).code == 0
    assert writer.ask(310, send_fields(), b"x").code == 1
    assert "newcomer" in scene.path.read_text()


def test_a_broken_file_stops_the_start_before_the_store_is_opened(tmp_path: Path) -> None:
    made = Guarded(tmp_path, "accounts: [")
    with pytest.raises(ValueError, match=r"plain_acl.yml.*no YAML"):
        made.start()
    assert not (tmp_path / "store/commitlog").exists()
