# SPDX-License-Identifier: Apache-2.0
"""No answer is longer than its reader takes, whatever is asked of a broker with much of everything.

The limit is made so small here that most answers would exceed it. A request is answered all the
same, with a part or with a sentence. test_turns.py names every request that is served.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.conftest import STORE_HOST
from tests.broker.test_turns import BODIES, FIELDS, IN_TWENTY_YEARS_MS, LOOKS, POP, Scene
from tests.fakes import NOW_MS, FakePeer
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.pop import queues
from txrocketmq.broker.store.get import get_result, stored_messages
from txrocketmq.broker.work import walks
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher
from txrocketmq.remoting.frame import frame
from txrocketmq.remoting.frame.frame import FrameDecoder

FRAME_BYTES = 4_000
BODY_BYTES = 3_500
REFUSED = {26, 38, 43, 202, 203, 204, 208, 222, 300, 303, 317, 321, 328, 343, 402}
"""Requests whose whole answer does not fit. Of others a part is an answer, or it is short."""
ASKED = {code: (code, fields) for code, fields in FIELDS.items()}
ASKED |= {code: (code, fields) for code, fields in LOOKS.values()}
PAGES = {
    21: {"topicSeq": "0", "maxTopicNum": "10"},
    201: {"groupSeq": "0", "maxGroupNum": "4"},
}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, many=600)
    yield made
    made.parts.store.stop(NOW_MS)


@pytest.fixture(autouse=True)
def _limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "MAX_FRAME_BYTES", FRAME_BYTES)
    monkeypatch.setattr(walks, "MAX_FRAME_BYTES", FRAME_BYTES)
    monkeypatch.setattr(stored_messages, "MAX_BODY_BYTES", BODY_BYTES)
    monkeypatch.setattr(get_result, "_MAX_PULL_BYTES", BODY_BYTES)
    monkeypatch.setattr(queues, "MAX_BODY_BYTES", BODY_BYTES)


@pytest.mark.parametrize("code", sorted(ASKED), ids=lambda code: RequestCode(code).name)
def test_an_answer_fits_in_a_frame(scene: Scene, code: int) -> None:
    peer = FakePeer()
    dispatcher = Dispatcher(scene.registry, lambda: IN_TWENTY_YEARS_MS, lambda: 0)
    fields = {**ASKED[code][1], **PAGES.get(code, {})}
    dispatcher.serve(peer, [RemotingCommand(code, fields, BODIES.get(code, b""), opaque=7)])
    scene.run()
    if code == RequestCode.POP_MESSAGE:
        scene.parts.pop.polling.tick(10**9)
    if code == RequestCode.NOTIFICATION:
        scene.parts.pop.notifications.tick(10**9)
    scene.run()
    data = b"".join(peer.written)
    decoder = FrameDecoder(FRAME_BYTES)
    answers = decoder.receive(data)
    assert decoder.error is None
    assert len(answers) <= 1
    if answers:
        assert answers[0].opaque == 7
        is_refused = "the answer is too long" in (answers[0].remark or "")
        assert is_refused == (code in REFUSED)


def test_a_pop_of_large_messages_ends_before_its_answer_is_too_long(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each queue gives one message at least, however few bytes are left."""
    for queue_id in range(20):
        message = InnerMessage("W", queue_id, bytes(1_000), NOW_MS, STORE_HOST, STORE_HOST, {})
        scene.put(message.to_put())
    monkeypatch.setattr(queues, "_ROOM_BYTES", 200)
    scene.parts.configuration.update({"maxMessageSize": "1000"})
    scene.turns(200050, {**POP, "bornTime": str(NOW_MS)})
    assert scene.answer.code == ResponseCode.SUCCESS
    assert scene.answer.header.msg_offset_info.count(";") + 1 == 3
    assert scene.answer.header.rest_num == 20 - 3 - 8, "of 8 queues the group has an offset"
