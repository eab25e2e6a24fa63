# SPDX-License-Identifier: Apache-2.0
"""What the original's brokers and mqadmin said to the original's name server, said to ours.

Each answer must be the original's: byte for byte where the versions agree, and with the differences
listed in `_as_49` for 4.9.7, since we answer as 5.4.0 does.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import NOW_MS, FakePeer
from tests.namesrv.conftest import MakeNames, Names
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.remoting.call import Buffer
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher
from txrocketmq.remoting.frame.frame import FrameDecoder
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol.body.route import RegisterBrokerBody, TopicRouteData
from txrocketmq.remoting.protocol.route import (
    GetRouteInfoRequestHeader,
    RegisterBrokerRequestHeader,
)
from txrocketmq.remoting.serialize.json import decode_body
from txrocketmq.remoting.settings.config_file import read_properties

FRAMES = Path(__file__).parent.parent / "golden" / "frames"
RECORDINGS = sorted(path.stem for path in FRAMES.glob("name-server-*.jsonl"))


@dataclasses.dataclass(frozen=True)
class Said:
    """A request of a recording, and what it was answered; None when it was one-way."""

    peer: int
    request: RemotingCommand
    answer: RemotingCommand | None


def conversation(recording: str) -> list[Said]:
    """The requests of a recording in order, with their answers."""
    requests: list[tuple[int, RemotingCommand]] = []
    answers: dict[tuple[int, int], RemotingCommand] = {}
    for line in (FRAMES / f"{recording}.jsonl").read_text("utf-8").splitlines():
        said = json.loads(line)
        (command,) = FrameDecoder().receive(base64.b64decode(said["frame"]))
        if said["from"] == "client":
            requests.append((said["peer"], command))
        else:
            answers[said["peer"], command.opaque] = command
    return [Said(peer, it, answers.get((peer, it.opaque))) for peer, it in requests]


def replay(names: Names, said: Sequence[Said]) -> Iterator[tuple[Said, RemotingCommand | None]]:
    """Says it all to a name server of ours; gives what it answers."""
    dispatcher = Dispatcher(names.registry, lambda: NOW_MS, lambda: NOW_MS)
    peers: dict[int, FakePeer] = {}
    for each in said:
        peer = peers.setdefault(each.peer, FakePeer())
        peer.written.clear()
        dispatcher.serve(peer, [each.request])
        yield each, _answer(peer.written)


def _answer(written: Sequence[Buffer]) -> RemotingCommand | None:
    commands = FrameDecoder().receive(b"".join(written))
    return commands[0] if commands else None


@pytest.mark.parametrize("recording", RECORDINGS)
def test_our_answers_are_the_original_ones(recording: str, make_names: MakeNames) -> None:
    said = conversation(recording)
    assert len(said) > 8
    for each, answer in replay(make_names(), said):
        if each.answer is None:
            assert answer is None or not each.request.is_oneway
            continue
        assert answer is not None, each.request
        if each.request.code == RequestCode.GET_NAMESRV_CONFIG:
            _check_settings(answer.body.decode(), each.answer.body.decode())
            continue
        ours, theirs = _facts(answer), _facts(each.answer)
        if recording.endswith("4.9.7"):
            ours, theirs = _as_49(ours), _as_49(theirs)
        elif each.request.code != RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER:
            assert answer.body == each.answer.body, each.request
        assert ours == theirs, each.request


def _facts(answer: RemotingCommand) -> dict[str, Any]:
    body = decode_body(answer.body) if answer.body else None
    if isinstance(body, dict) and "topicList" in body:
        body["topicList"].sort()  # of a hash set
    return {
        "code": answer.code,
        "remark": answer.remark,
        "fields": dict(answer.ext_fields or {}),
        "body": body,
    }


def _as_49(facts: dict[str, Any]) -> dict[str, Any]:
    """Without what 5.4.0 added: two members of bodies, another FAQ, more refused settings."""
    remark = facts["remark"] or ""
    text = json.dumps(facts["body"])
    for added in (', "enableActingMaster": false', '"stateVersion": 0, '):
        text = text.replace(added, "")
    refused = "Can not update config"
    return {
        **facts,
        "remark": refused if remark.startswith(refused) else remark.partition("\n")[0],
        "body": json.loads(text),
    }


def _check_settings(ours: str, theirs: str) -> None:
    """All settings of the original's NamesrvConfig are shown, and have the values it shows."""
    mine, original = read_properties(ours), read_properties(theirs)
    common = mine.keys() & original.keys()
    for key in common - {"kvConfigPath", "configStorePath", "listenPort", "rocketmqHome"}:
        assert mine[key] == original[key], key
    assert {"kvConfigPath", "configStorePath", "orderMessageEnable", "clusterTest"} <= common


@pytest.mark.parametrize("recording", RECORDINGS)
def test_registrations_of_the_original_are_understood_whole(recording: str) -> None:
    found = [each.request for each in conversation(recording) if each.request.code == 103]
    assert found
    for command in found:
        header = RegisterBrokerRequestHeader.decode(command.ext_fields)
        assert (header.broker_name, header.broker_addr) == ("broker-a", "127.0.0.1:30911")
        body = (
            finished(RegisterBrokerBody.reading_compressed(command.body, command.version))
            if header.compressed
            else RegisterBrokerBody.decode(command.body)
        )
        table = body.topic_config_serialize_wrapper.topic_config_table
        assert table
        assert all(topic.topic_name == name for name, topic in table.items())


def test_a_compressed_registration_is_among_them() -> None:
    commands = [each.request for each in conversation("name-server-modes-4.9.7")]
    assert any((it.ext_fields or {}).get("compressed") == "true" for it in commands)


@pytest.mark.parametrize("version", ["4.9.7", "5.4.0"])
def test_a_registered_broker_is_found_by_its_topics(version: str, names: Names) -> None:
    said = conversation(f"name-server-{version}")
    first = next(each for each in said if each.request.code == RequestCode.REGISTER_BROKER)
    list(replay(names, [first]))
    header = GetRouteInfoRequestHeader(topic="TBW102")
    reply = names.ask(route.GET_ROUTEINFO_BY_TOPIC, header)
    found = TopicRouteData.decode(reply.body)
    (broker,) = found.broker_datas
    assert dict(broker.broker_addrs) == {0: "127.0.0.1:30911"}
    assert [(it.broker_name, it.perm, it.write_queue_nums) for it in found.queue_datas] == [
        ("broker-a", 7, 8)
    ]
