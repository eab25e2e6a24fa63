# SPDX-License-Identifier: Apache-2.0
"""mqadmin of 4.9.7 with accounts of RocketMQ 4 (ACL 1): what it changes, and what it may not."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.engine import Engine
from compat_tests.java_client import ClientJvm
from compat_tests.peers import Broker, NameServer, Origin, Ours, running
from compat_tests.scene import Scene
from compat_tests.test_python_secured import Closed

RELEASE = "4.9.7"
ADMIN, READER = "operator1", "readerkey"
ACL_1 = f"""
accounts:
- accessKey: {ADMIN}
  secretKey: 12345678
  admin: true
- accessKey: {READER}
  secretKey: 12345678
  defaultTopicPerm: SUB
"""

Run = Callable[[str, str], str]


@pytest.fixture
def guarded(origin: Origin, test_folder: Path) -> Iterator[Broker]:
    if not isinstance(origin, Ours) and origin.behaves_as != RELEASE:
        pytest.skip("only 4.9.7 has these accounts")
    folder = test_folder / "guarded"
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "plain_acl.yml").write_text(ACL_1)
    settings = {"aclEnable": "true"}
    if isinstance(origin, Ours):
        settings["rocketmqHome"] = str(folder)
    names = NameServer(origin, test_folder / "namesrv")
    broker = Closed(origin, folder, names, "broker-g", settings)
    with running(names, broker):
        yield broker


@pytest.fixture
def run(guarded: Broker, engine: Engine, test_folder: Path) -> Iterator[Run]:
    """Runs a command as the account of tools.yml."""
    folder = test_folder / "tools"
    (folder / "conf").mkdir(parents=True)
    jvm = ClientJvm(RELEASE, engine, folder)
    scene = Scene(jvm, guarded)

    def run(account: str, line: str) -> str:
        text = f"accessKey: {account}\nsecretKey: 12345678\n"
        (folder / "conf" / "tools.yml").write_text(text)
        return scene.mqadmin_here(line)

    yield run
    jvm.kill()


def test_commands_change_and_show_accounts(run: Run, guarded: Broker) -> None:
    said = run(ADMIN, "updateAclConfig -a newcomer1 -s abcdefgh -t a=PUB,b=SUB -g g=SUB -u SUB")
    assert "success" in said
    shown = run(ADMIN, "getAclConfig")
    for text in ("newcomer1", "abcdefgh", "[a=PUB, b=SUB]", "[g=SUB]"):
        assert text in shown
    assert "plain_acl.yml" in run(ADMIN, "clusterAclConfigVersion")
    assert "success" in run(ADMIN, "updateGlobalWhiteAddr -g 10.10.103.*,192.168.0.*")
    assert "10.10.103.*" in (guarded.folder / "conf" / "plain_acl.yml").read_text()
    assert "success" in run(ADMIN, "deleteAclConfig -a newcomer1")
    again = run(ADMIN, "deleteAclConfig -a newcomer1")
    assert "CODE: 210" in again
    assert "corresponding to accessConfig has been deleted failed." in again


def test_refusals_have_the_words_of_the_original(run: Run) -> None:
    said = run(READER, "updateTopic -t X")
    assert (
        "CODE: 1  DESC: org.apache.rocketmq.acl.common.AclException: Need admin permission for"
        f" request code=17, but accessKey={READER} is not" in said
    )
    assert "AclException: No acl config for nobody12" in run("nobody12", "updateTopic -t X")
