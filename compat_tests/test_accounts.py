# SPDX-License-Identifier: Apache-2.0
"""Accounts: who is allowed and who is refused, in which words, beside the original.

ACL 2 is compared with 5.4.0 and ACL 1 with 4.9.7. Both servers get the same signed requests, one
after the other, and their codes and remarks have to be the same. `DIFFERS` has the exceptions.
Official clients and mqadmin are then clients of ours, with accounts.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from compat_tests import probe
from compat_tests.account_scenes import (
    ACCOUNTS_2,
    ADMIN,
    ALICE,
    DIFFERS,
    REQUESTS_1,
    REQUESTS_2,
    ROOT,
    alice_at,
    create,
    guarded,
    send,
)
from compat_tests.engine import Engine
from compat_tests.java_client import ClientJvm, JavaError, Producer, PushConsumer, message
from compat_tests.peers import Broker, Original, Ours
from compat_tests.scene import poll
from compat_tests.signed import Answer, Ask, answer_to, error_of_send, signature

_LOG_LINE = re.compile(
    r"[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3} (ERROR|WARN) .*\n?"
    r"(((Caused by: )?[\w.$]+(Exception|Error)\b|\tat |\t[.]{3}).*\n?)*"
)
"""A line and its exception. It may begin behind what a command has printed without a line's end."""
_LOGGED = re.compile(
    r"(Caused by: )?[a-z]+([.][\w$]+)+(Exception|Error)\b|java[.]lang[.]|org[.]apache[.]"
    r"|For more information, please visit the url, "  # the second line of an exception's text
)


def answers(broker: Broker, asks: Sequence[Ask]) -> dict[str, Answer]:
    return {ask.what: answer_to(broker, ask) for ask in asks}


def compared(engine: Engine, folder: Path, release: str, version: int, asks: Sequence[Ask]) -> None:
    said = []
    for origin in (Original(release, engine), Ours()):
        with guarded(origin, folder / origin.name, version=version) as broker:
            said.append(answers(broker, asks))
    original, ours = said
    differ = {
        what: (answer, ours[what])
        for what, answer in original.items()
        if (ours[what].code if what in DIFFERS else ours[what])
        != (answer.code if what in DIFFERS else answer)
    }
    assert not differ, "\n".join(f"{what}: {one} / {two}" for what, (one, two) in differ.items())


def test_acl_2_answers_as_the_original(engine: Engine, test_folder: Path) -> None:
    compared(engine, test_folder, "5.4.0", 2, (*ACCOUNTS_2, *REQUESTS_2))


def test_acl_1_answers_as_the_original(engine: Engine, test_folder: Path) -> None:
    compared(engine, test_folder, "4.9.7", 1, REQUESTS_1)


def test_what_is_found_by_its_place_is_judged_by_its_topic(
    engine: Engine, test_folder: Path
) -> None:
    """Messages of all topics are in one log; the original believes the topic that is named.

    So whoever may consume something there reads everything, by an id or as retries of a group.
    """

    def codes(broker: Broker) -> list[int]:
        fields = {**send("Other"), "AccessKey": ROOT[0]}
        fields["Signature"] = signature(fields, b"secret", ROOT[1])
        answer, _ = probe.request(broker.port, 310, fields, b"secret")
        offset = str(int(answer["extFields"]["msgId"][16:], 16))
        back = {"offset": offset, "group": "readers", "delayLevel": "0"}
        return [
            answer_to(broker, ask).code
            for ask in (
                Ask("sent back", 36, *ALICE, {**back, "originTopic": "Orders"}),
                Ask("sent back", 36, *ALICE, back),
                Ask("viewed", 33, *ALICE, {"offset": offset}),
            )
        ]

    found = {}
    for origin in (Original("5.4.0", engine), Ours()):
        with alice_at(origin, test_folder / origin.name) as broker:
            found[origin.name] = codes(broker)
    assert found == {"original-5.4.0": [0, 0, 0], "ours": [16, 16, 16]}


# ------------------------------------------------------------------------------- official clients


def account(folder: Path, key: str, secret: str) -> Path:
    """Writes the account with which mqadmin signs; returns the folder of its JVM."""
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "tools.yml").write_text(f"accessKey: {key}\nsecretKey: {secret}\n")
    return folder


COMMANDS_2 = (
    "createUser -b BROKER -u alice -p alice-secret",
    "createUser -b BROKER -u alice -p alice-secret",
    "createUser -b BROKER -u boss -p boss-secret -t Super",
    "getUser -b BROKER -u alice",
    "listUser -b BROKER",
    "updateUser -b BROKER -u alice -s disable",
    "createAcl -b BROKER -s User:alice -r Topic:Orders -a Pub -d Allow",
    "createAcl -b BROKER -s User:alice -r Topic:Orders -a Fly -d Allow",
    "updateAcl -b BROKER -s User:alice -r Group:readers -a Sub -i 10.0.0.0/8 -d Deny",
    "getAcl -b BROKER -s User:alice",
    "listAcl -b BROKER",
    "deleteAcl -b BROKER -s User:alice -r Topic:Orders",
    "deleteUser -b BROKER -u alice",
    "listAcl -b BROKER",
)
COMMANDS_1 = (
    "updateAclConfig -b BROKER -a acl-reader -s reader-secret -t Orders=SUB -i DENY",
    "updateGlobalWhiteAddr -b BROKER -g 10.1.2.*",
    "getAclConfig -b BROKER",
    "deleteAclConfig -b BROKER -a acl-reader",
    "updateTopic -b BROKER -t Made",
)


def printed(jvm: ClientJvm, broker: Broker, commands: Sequence[str]) -> list[str]:
    """Returns what mqadmin prints, without what differs each time."""
    lines = []
    for command in commands:
        words = command.replace("BROKER", broker.address).split()
        said = jvm.call("mqadmin", line=[*words, "-n", broker.name_server.address], seconds=30)
        text = "\n".join(
            line
            for line in _LOG_LINE.sub("", f"{said['out']}{said['err']}").splitlines()
            # Not what its client logs when its connections end, with any exception's trace.
            if not line.startswith(("\tat ", "\t...")) and not _LOGGED.match(line)
        )
        text = text.replace(broker.address, "BROKER").replace(str(broker.folder), "HOME")
        text = re.sub(r", org[.]apache[^ ]*[)]|@[0-9a-f]{4,8}\b", "", text)
        lines.append(f"{command}: {text}")
    return lines


@pytest.mark.parametrize(
    ("release", "version", "signer", "commands"),
    [("5.4.0", 2, ROOT, COMMANDS_2), ("4.9.7", 1, ADMIN, COMMANDS_1)],
)
def test_mqadmin_with_tools_yml(  # one JVM for both servers
    engine: Engine,
    test_folder: Path,
    release: str,
    version: int,
    signer: tuple[str, str],
    commands: Sequence[str],
) -> None:
    jvm = ClientJvm(release, engine, account(test_folder / "mqadmin", *signer))
    stranger = ClientJvm(release, engine, account(test_folder / "stranger", "stranger", "1234567"))
    said = []
    try:
        for origin in (Original(release, engine), Ours()):
            with guarded(origin, test_folder / origin.name, version=version) as broker:
                said.append(
                    printed(stranger, broker, commands[:1]) + printed(jvm, broker, commands)
                )
    finally:
        jvm.process.kill()
        stranger.process.kill()
    assert said[1] == said[0]


@pytest.mark.both_releases
def test_java_clients_with_accounts(jvm: ClientJvm, test_folder: Path) -> None:
    """Of both releases: what is allowed arrives, and what is not is an error with our words."""
    with guarded(Ours(), test_folder / "ours", version=2) as broker:
        for ask in (*ACCOUNTS_2, Ask("a topic", 17, *ROOT, create("Orders"))):
            answer_to(broker, ask)
        namesrv = broker.name_server.address
        alice = {"access_key": ALICE[0], "secret_key": ALICE[1]}
        name = test_folder.name
        sender = Producer(jvm, f"p-{name}", namesrv, group="writers", **alice)
        consumer = PushConsumer(jvm, f"c-{name}", namesrv, group="readers", topic="Orders", **alice)
        poll(lambda: _sent(sender, "Orders"), "the route is known")
        assert consumer.wait_for(1)[0]["topic"] == "Orders"
        answer_to(broker, Ask("a topic", 17, *ROOT, create("Other")))
        poll(lambda: "Other" in error_of_send(sender, "Other"), "alice is refused")
        said = error_of_send(sender, "Other")
        assert "CODE: 16  DESC: User:alice has no permission to access Topic:Other from" in said
        assert "no matched policies." in said
        wrong = Producer(
            jvm,
            f"w-{name}",
            namesrv,
            group="writers",
            access_key="alice",
            secret_key="x",  # noqa: S106
        )
        assert "CODE: 16  DESC: check signature failed." in error_of_send(wrong, "Orders")
        unsigned = Producer(jvm, f"u-{name}", namesrv, group="writers")
        assert "CODE: 16  DESC: username cannot be null." in error_of_send(unsigned, "Orders")
        for each in (sender, consumer, wrong, unsigned):
            each.stop()


def _sent(producer: Producer, topic: str) -> bool:
    try:
        return bool(producer.send([message(topic, "m")]))
    except JavaError:
        return False
