# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.proxy.scene import ProxyScene, a_message, refusal
from txrocketmq.proxy.receives import renewals
from txrocketmq.remoting.call import PendingReply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.protocol import pop, send
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig

MINUTE_MS = 60_000


def received(scene: ProxyScene, count: int = 1) -> list[str]:
    """The handles of messages that the proxy keeps hidden."""
    scene.heartbeat()
    scene.on(pop.POP_MESSAGE, scene.popped(*(a_message(b"b", n) for n in range(count))))
    outcome = scene.receive(auto_renew=True, invisible_duration=None)
    answers = outcome.written("ReceiveMessageResponse")[1:-1]
    return [each.message.system_properties.receipt_handle for each in answers]


def hidings(scene: ProxyScene) -> list[int]:
    return [each.invisible_time for each in scene.asked(pop.CHANGE_MESSAGE_INVISIBLETIME)]


def live(scene: ProxyScene, ms: int) -> None:
    """Lets time pass for a client that sends heartbeats."""
    for _ in range(0, ms, 10_000):
        scene.heartbeat()
        scene.advance(10_000, 1_000)


def test_messages_are_hidden_for_a_minute_and_then_for_longer_each_time(scene: ProxyScene) -> None:
    received(scene)
    assert [each.invisible_time for each in scene.asked(pop.POP_MESSAGE)] == [MINUTE_MS]
    live(scene, 40_000)
    assert hidings(scene) == []
    live(scene, 20_000)
    assert hidings(scene) == [MINUTE_MS]
    live(scene, MINUTE_MS)
    assert hidings(scene) == [MINUTE_MS, 3 * MINUTE_MS]
    live(scene, 3 * MINUTE_MS)
    assert hidings(scene)[2:] == [5 * MINUTE_MS]


def test_an_acknowledged_message_is_left_alone(scene: ProxyScene) -> None:
    (handle,) = received(scene)
    entry = {"message_id": "ID0", "receipt_handle": handle}
    request = {"group": {"name": "G"}, "topic": {"name": "T"}, "entries": [entry]}
    scene.call("AckMessage", request)
    assert scene.messaging.renewals.count == 0
    live(scene, 2 * MINUTE_MS)
    assert hidings(scene) == []


def test_the_first_handle_stands_for_the_newest_until_an_ack_has_succeeded(
    scene: ProxyScene,
) -> None:
    (handle,) = received(scene)
    live(scene, MINUTE_MS)
    entry = {"message_id": "ID0", "receipt_handle": handle}
    request = {"group": {"name": "G"}, "topic": {"name": "T"}, "entries": [entry]}
    scene.on(pop.ACK_MESSAGE, refusal(ResponseCode.SYSTEM_BUSY))
    scene.call("AckMessage", request)
    scene.on(pop.ACK_MESSAGE, refusal(ResponseCode.SUCCESS))
    scene.call("AckMessage", request)
    first, second = scene.asked(pop.ACK_MESSAGE)
    assert first.extra_info == second.extra_info
    assert first.extra_info != handle.rpartition(" ")[0]
    assert first.extra_info.split(" ")[2] == str(MINUTE_MS)


def test_messages_of_a_client_that_is_gone_are_given_back(scene: ProxyScene) -> None:
    received(scene, 2)
    scene.call("NotifyClientTermination", {"group": {"name": "G"}})
    scene.advance(400)
    assert hidings(scene) == [1_000, 1_000]
    assert scene.messaging.renewals.count == 0


def test_a_client_that_is_silent_is_gone(scene: ProxyScene) -> None:
    received(scene)
    scene.advance(2 * MINUTE_MS, 1_000)
    assert hidings(scene)[-1] == 1_000
    assert scene.messaging.renewals.count == 0


def test_a_client_that_goes_while_its_message_is_renewed(scene: ProxyScene) -> None:
    received(scene)
    pending = PendingReply()
    scene.on(pop.CHANGE_MESSAGE_INVISIBLETIME, pending)
    live(scene, MINUTE_MS)
    assert hidings(scene) == [MINUTE_MS]
    scene.call("NotifyClientTermination", {"group": {"name": "G"}})
    scene.advance(400)
    scene.on(pop.CHANGE_MESSAGE_INVISIBLETIME, scene._hidden)
    pending.resolve(scene._hidden("", scene.asked(pop.CHANGE_MESSAGE_INVISIBLETIME)[0], b""))
    assert hidings(scene) == [MINUTE_MS, 1_000]


def test_after_some_failures_a_message_is_given_up(scene: ProxyScene) -> None:
    received(scene)
    scene.on(pop.CHANGE_MESSAGE_INVISIBLETIME, refusal(ResponseCode.SYSTEM_BUSY))
    live(scene, 2 * MINUTE_MS)
    assert len(hidings(scene)) == scene.config.max_renew_retry_times
    assert scene.messaging.renewals.count == 0


def test_messages_in_order_are_hidden_no_longer_than_their_group_may_take(
    scene: ProxyScene,
) -> None:
    scene.groups["G"] = SubscriptionGroupConfig(
        group_name="G", consume_message_orderly=True, consume_timeout_minute=4
    )
    received(scene)
    live(scene, 15 * MINUTE_MS)
    assert hidings(scene) == [MINUTE_MS, 3 * MINUTE_MS, 10_000]
    assert scene.messaging.renewals.count == 0


def test_after_a_change_of_the_client_nothing_is_renewed_but_its_handle_is_known(
    scene: ProxyScene,
) -> None:
    (handle,) = received(scene)
    names = {"group": {"name": "G"}, "topic": {"name": "T"}}
    change = {**names, "receipt_handle": handle, "invisible_duration": {"seconds": 100}}
    answer = scene.call("ChangeInvisibleDuration", change).answer
    live(scene, 90_000)
    assert hidings(scene) == [100_000]
    entry = {"message_id": "ID0", "receipt_handle": handle}
    scene.call("AckMessage", {**names, "entries": [entry]})
    (header,) = scene.asked(pop.ACK_MESSAGE)
    assert header.extra_info == answer.receipt_handle.rpartition(" ")[0]


def test_what_was_changed_is_forgotten_when_it_is_visible(scene: ProxyScene) -> None:
    (handle,) = received(scene)
    change = {
        "group": {"name": "G"},
        "topic": {"name": "T"},
        "receipt_handle": handle,
        "invisible_duration": {"seconds": 20},
    }
    scene.call("ChangeInvisibleDuration", change)
    assert scene.messaging.renewals.count == 1
    live(scene, 30_000)
    assert scene.messaging.renewals.count == 0
    assert hidings(scene) == [20_000]


def test_an_acknowledgement_waits_for_a_renewal_that_is_under_way(scene: ProxyScene) -> None:
    (handle,) = received(scene)
    pending = PendingReply()
    scene.on(pop.CHANGE_MESSAGE_INVISIBLETIME, pending)
    live(scene, MINUTE_MS)
    entry = {"message_id": "ID0", "receipt_handle": handle}
    request = {"group": {"name": "G"}, "topic": {"name": "T"}, "entries": [entry]}
    outcome = scene.call("AckMessage", request)
    assert scene.asked(pop.ACK_MESSAGE) == []
    pending.resolve(scene._hidden("", scene.asked(pop.CHANGE_MESSAGE_INVISIBLETIME)[0], b""))
    assert outcome.code == 20_000
    (header,) = scene.asked(pop.ACK_MESSAGE)
    assert header.extra_info.split(" ")[3] == "3"


def settles(handle: str) -> dict[str, Any]:
    return {"group": {"name": "G"}, "topic": {"name": "T"}, "receipt_handle": handle}


@pytest.mark.parametrize("together", [True, False])
def test_nothing_is_renewed_that_is_just_acknowledged(together: bool) -> None:
    """A renewal behind the acknowledgement would bring the message again."""
    scene = ProxyScene(enable_batch_ack=together)
    handles = received(scene, 2)
    live(scene, 40_000)
    waiting: list[PendingReply] = []

    def wait(*_: object) -> PendingReply:
        waiting.append(PendingReply())
        return waiting[-1]

    for call in (pop.ACK_MESSAGE, pop.BATCH_ACK_MESSAGE):
        scene.on(call, wait)
    entries = [{"message_id": "ID", "receipt_handle": each} for each in handles]
    request = {"group": {"name": "G"}, "topic": {"name": "T"}, "entries": entries}
    outcome = scene.call("AckMessage", request, deadline_ms=None)
    live(scene, 20_000)
    assert hidings(scene) == []
    for each in waiting:
        each.resolve(refusal(ResponseCode.SUCCESS))
    assert outcome.code == 20_000
    assert scene.messaging.renewals.count == 0
    live(scene, 2 * MINUTE_MS)
    assert hidings(scene) == []


def test_what_could_not_be_acknowledged_is_renewed_on(scene: ProxyScene) -> None:
    (handle,) = received(scene)
    pending = PendingReply()
    scene.on(send.CONSUMER_SEND_MSG_BACK, pending)
    scene.call("ForwardMessageToDeadLetterQueue", settles(handle), deadline_ms=None)
    live(scene, MINUTE_MS)
    assert hidings(scene) == []
    pending.resolve(refusal(ResponseCode.SYSTEM_BUSY))
    live(scene, 10_000)
    assert hidings(scene) == [MINUTE_MS]


def test_a_client_that_goes_while_its_message_is_acknowledged(scene: ProxyScene) -> None:
    """What was not acknowledged is given back, and nothing else."""
    for code, expected in ((ResponseCode.SUCCESS, []), (ResponseCode.SYSTEM_BUSY, [1_000])):
        (handle,) = received(scene)
        pending = PendingReply()
        scene.on(send.CONSUMER_SEND_MSG_BACK, pending)
        scene.call("ForwardMessageToDeadLetterQueue", settles(handle), deadline_ms=None)
        scene.call("NotifyClientTermination", {"group": {"name": "G"}})
        scene.advance(400)
        pending.resolve(refusal(code))
        scene.advance(400)
        assert hidings(scene) == expected


def test_an_acknowledgement_waits_for_a_change_that_is_under_way(scene: ProxyScene) -> None:
    (handle,) = received(scene)
    pending = PendingReply()
    scene.on(pop.CHANGE_MESSAGE_INVISIBLETIME, pending)
    change = {**settles(handle), "invisible_duration": {"seconds": 20}}
    changed = scene.call("ChangeInvisibleDuration", change)
    entry = {"message_id": "ID0", "receipt_handle": handle}
    request = {"group": {"name": "G"}, "topic": {"name": "T"}, "entries": [entry]}
    outcome = scene.call("AckMessage", request)
    assert scene.asked(pop.ACK_MESSAGE) == []
    pending.resolve(scene._hidden("", scene.asked(pop.CHANGE_MESSAGE_INVISIBLETIME)[0], b""))
    assert outcome.code == 20_000
    (header,) = scene.asked(pop.ACK_MESSAGE)
    assert changed.answer.receipt_handle.startswith(header.extra_info)


def test_there_is_a_limit_for_each_client_and_for_all(
    scene: ProxyScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewals, "MAX_HIDDEN_OF_CLIENT", 2)
    received(scene, 3)
    assert scene.messaging.renewals.count == 2
    monkeypatch.setattr(renewals, "MAX_HIDDEN_OF_CLIENT", 10)
    monkeypatch.setattr(renewals, "MAX_HIDDEN", 2)
    received(scene, 3)
    assert scene.messaging.renewals.count == 2


def test_renewals_are_so_many_in_a_turn(scene: ProxyScene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewals, "AT_ONCE", 2)
    received(scene, 5)
    scene.call("NotifyClientTermination", {"group": {"name": "G"}})
    counts = []
    for _ in range(4):
        scene.time.advance(renewals.LOOK_MS / 1_000)
        counts.append(len(hidings(scene)))
    assert counts == [2, 4, 5, 5]


def test_without_the_setting_the_client_says_how_long() -> None:
    scene = ProxyScene(enable_proxy_auto_renew=False)
    scene.heartbeat()
    scene.on(pop.POP_MESSAGE, scene.popped(a_message()))
    scene.receive(auto_renew=True)
    assert [each.invisible_time for each in scene.asked(pop.POP_MESSAGE)] == [30_000]
    assert scene.messaging.renewals.count == 0
