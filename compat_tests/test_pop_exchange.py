# SPDX-License-Identifier: Apache-2.0
"""A store with popped messages that changes from our broker to the original and back.

What was not acknowledged comes back there, and what was acknowledged does not: messages of a topic
and of its retry topic, one by one and in batches, hidden for longer, and in order.
"""

import time
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from compat_tests.engine import Engine
from compat_tests.java_client import ClientJvm, message
from compat_tests.peers import Broker, NameServer, Origin, Original, Ours
from compat_tests.pops import Popped, Taken, text_of
from compat_tests.scene import Scene, poll

RELEASE: Final = "5.4.0"
HIDDEN_MS: Final = 50_000
"""Longer than it takes until the other broker is there."""
BACK_S: Final = 150.0
KEPT_S: Final = 12.0
"""The original keeps offsets every 5 s, and its timers every second."""


class Handed:
    """What was popped of one broker, and what has to come of the next."""

    def __init__(self, broker: Broker, jvm: ClientJvm, word: str) -> None:
        self.scene = Scene(jvm, broker)
        self.topic, self.ordered = f"{word}-any", f"{word}-ordered"
        self.any = Popped(broker, self.topic, f"{word}-group")
        self.in_order = Popped(broker, self.ordered, f"{word}-ordered-group")
        self._sent: Counter[str] = Counter()

    def begin(self) -> None:
        """Pops, acknowledges some, and leaves messages that nobody has popped."""
        scene, popped = self.scene, self.any
        for topic in (self.topic, self.ordered):
            scene.admin().create_topic(scene.broker.address, topic, 1)
            scene.wait_for_route(topic)
        self._send(self.topic, [f"again-{n}" for n in range(4)])
        assert len(popped.take(invisibleTime=3_000)) == 4
        again = self._of_retry_topic()
        assert popped.ack_taken(again["again-0"])["code"] == 0
        hidden = popped.hide_taken(again["again-1"], HIDDEN_MS)
        assert popped.ack_taken(hidden)["code"] == 0
        popped.hide_taken(again["again-2"], HIDDEN_MS)
        self._send(self.topic, [f"once-{n}" for n in range(8)])
        once = popped.take(invisibleTime=HIDDEN_MS)
        assert [each.text for each in once] == [f"once-{n}" for n in range(8)]
        assert popped.ack_taken(once[0])["code"] == 0
        assert popped.ack_together(once[2:4])["code"] == 0
        hidden = popped.hide_taken(once[4], HIDDEN_MS)
        assert popped.ack_taken(hidden)["code"] == 0
        popped.hide_taken(once[5], HIDDEN_MS)
        self._send(self.topic, [f"never-{n}" for n in range(4)])
        self._send(self.ordered, [f"o{n}" for n in range(6)])
        first = self.in_order.ask(order="true", maxMsgNums=4, invisibleTime=HIDDEN_MS)
        assert [text_of(each) for each in first] == ["o0", "o1", "o2", "o3"]
        for offset in (0, 1, 3):
            assert self.in_order.ack(offset)["code"] == 0
        time.sleep(KEPT_S)
        scene.close()

    def go_on(self) -> None:
        """All of the others come, and only they."""
        expected = {"again-2", "again-3", "once-1", "once-5", "once-6", "once-7"}
        expected |= {f"never-{n}" for n in range(4)}
        found: list[str] = []

        def is_there() -> bool:
            found.extend(each.text for each in self.any.take(invisibleTime=600_000))
            return expected <= set(found)

        poll(is_there, "all of them are back", BACK_S)
        said: list[str] = []

        def is_open() -> bool:
            asked = self.in_order.ask(order="true", maxMsgNums=8, invisibleTime=600_000)
            said.extend(text_of(each) for each in asked)
            return bool(said)

        poll(is_open, "the queue is open", BACK_S)
        assert said == ["o2", "o3", "o4", "o5"]
        time.sleep(HIDDEN_MS / 1_000 / 5)
        is_there()
        assert sorted(found) == sorted(expected)
        self.scene.close()

    def _send(self, topic: str, texts: list[str]) -> None:
        """Sends, and waits until the queue has them."""
        self.scene.producer().send([message(topic, text) for text in texts])
        self._sent[topic] += len(texts)
        self.scene.read(topic, self._sent[topic])

    def _of_retry_topic(self) -> dict[str, Taken]:
        """What has come back, by text."""
        again: dict[str, Taken] = {}

        def is_back() -> bool:
            again.update((each.text, each) for each in self.any.take(invisibleTime=HIDDEN_MS))
            return len(again) == 4

        poll(is_back, "they are in the retry topic", BACK_S)
        assert {each.topic.startswith("%RETRY%") for each in again.values()} == {True}
        return again


@pytest.mark.timeout(500)
@pytest.mark.parametrize(
    ("end", "merge", "v2"),
    [
        pytest.param("stop", "false", "false", id="stopped", marks=pytest.mark.whole_matrix),
        pytest.param("kill", "false", "true", id="killed"),
        pytest.param("stop", "true", "true", id="merged"),
    ],
)
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_what_is_popped_goes_from_hand_to_hand(
    origin: Origin,
    engine: Engine,
    test_folder: Path,
    jvms: dict[str, ClientJvm],
    first: str,
    end: str,
    merge: str,
    v2: str,
) -> None:
    """With retry topics of either kind."""
    if not isinstance(origin, Ours):
        pytest.skip("one of both sides is ours")
    word = f"pops-handed-{first}-{end}-{merge}"
    folder = test_folder / word
    names = NameServer(origin, folder / "namesrv")
    settings = {
        "popFromRetryProbability": "0", "enablePopBufferMerge": merge, "enableRetryTopicV2": v2,
    }  # fmt: skip
    ours = Broker(origin, folder, names, "broker-h", settings)
    official = ours.under(Original(RELEASE, engine))
    one, other = (ours, official) if first == "ours" else (official, ours)
    names.start()
    try:
        one.start()
        Handed(one, jvms[RELEASE], word).begin()
        getattr(one, end)()
        one.close()
        other.start()
        Handed(other, jvms[RELEASE], word).go_on()
        other.stop()
    finally:
        ours.close()
        official.close()
        names.close()
