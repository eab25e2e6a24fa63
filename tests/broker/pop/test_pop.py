# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from tests.broker.pop.scene import GROUP, INVISIBLE_MS, Scene
from tests.fakes import outcome_of
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.remoting.call import PendingReply


def is_answered(pending: PendingReply) -> bool:
    return pending.done


def test_time_opens_a_queue_for_who_waits(scene: Scene) -> None:
    scene.parts.put("T", body=b"a")
    scene.pop(order=True, invisible_time=5_000)
    waiting = scene.ask(order=True, poll_time=20_000)
    scene.advance(4_000)
    assert not is_answered(waiting)
    scene.advance(1_500)
    assert outcome_of(waiting).code == 0


def test_a_peer_that_has_gone_is_told_nothing(scene: Scene) -> None:
    waiting = scene.ask(poll_time=20_000)
    scene.parts.pop.disconnected(scene.peer, 0)
    scene.parts.put("T")
    scene.turn()
    assert not is_answered(waiting)
    assert len(scene.parts.pop.polling) == 0


def test_orders_are_kept_with_their_topics(scene: Scene) -> None:
    scene.parts.put("T")
    scene.pop(order=True)
    finished(scene.parts.pop.orders.save())
    text = (scene.parts.config_folder / "consumerOrderInfo.json").read_text()
    assert f'"T@{GROUP}"' in text
    scene.parts.topics.delete("T")
    finished(scene.parts.pop.orders.save())
    text = (scene.parts.config_folder / "consumerOrderInfo.json").read_text()
    assert f'"T@{GROUP}"' not in text


def test_offsets_are_settled_at_the_end(scene: Scene) -> None:
    scene.parts.put("T")
    scene.pop()
    scene.parts.store.flush.flush_all()
    scene.parts.pop.settle()
    assert scene.offset() == 1
    scene.advance(INVISIBLE_MS + 5_000)
    assert len(scene.pop()) == 1
