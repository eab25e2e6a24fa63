# SPDX-License-Identifier: Apache-2.0
"""A made-up part in a whole broker: what it declares happens."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from twisted.logger import capturedLogs, formatEvent

from tests.broker.test_service import Client, Scene
from txrocketmq.broker import service
from txrocketmq.broker.all_parts import all_parts
from txrocketmq.broker.journal import Journal
from txrocketmq.broker.parts import Parts
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.life import (
    AtStop,
    Beat,
    Hears,
    Life,
    Opening,
    SlicedBeat,
    Tick,
    WalkBeat,
)
from txrocketmq.broker.work.patience import Patience, Reading
from txrocketmq.broker.work.saving import Saving
from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.serialize.json import encode_pretty


class Tides:
    """A part that no broker has."""

    def __init__(self, folder: Path, parts: Parts, journal: Journal) -> None:
        self._file = JsonFile(folder / "config" / "tides.json")
        self._parts = parts
        self._journal = journal
        self.saving = Saving(self._file, lambda: lambda: encode_pretty({"tides": self.count}))
        self.reading = Reading(Patience())
        self.is_behind = False
        self.count = -1
        self.on_flood: list[Callable[[object], None]] = []
        self.calls: list[str] = []
        self.causes: list[str] = []

    def load(self) -> None:
        with self._file.content() as content:
            self.count = int(content.get("tides", 0))

    def rise(self) -> None:
        self.count += 1
        self._file.is_stale = True

    def tick(
        self, now_ms: int, steady_ms: int, is_time_up: Callable[[], bool] = lambda: False
    ) -> None:
        self.calls.append("sliced")
        self.is_behind = self.calls.count("sliced") < 3

    def steps(self, now_ms: int, steady_ms: int) -> Steps[None] | None:
        if "walked" in self.calls:
            return None
        return self._steps()

    def _steps(self) -> Steps[None]:
        yield
        self.calls.append("walked")
        self.causes.append(self._journal.who())

    def opened(self, opening: Opening) -> Iterable[str]:
        self.calls.append(f"opened after {self.count} {opening.after_crash}")
        return ["the tides are high"]

    def gone(self, peer: Peer, steady_ms: int) -> None:
        self.calls.append("gone")
        self.causes.append(self._journal.who())

    def life(self) -> Life:
        return Life(
            "tides",
            table=self,
            opens=self.opened,
            hears=(Hears(self._parts.topics.on_change, self.calls.append),),
            troubles={"holding back the flood": self.on_flood},
            beats=(
                Beat(1_000, self.rise),
                Tick(lambda: 2_000, lambda now_ms, _: self.calls.append(str(now_ms)), first_ms=50),
                SlicedBeat(1_000, self),
                WalkBeat(1_000, "walking", self.steps, because="the moon"),
            ),
            forgets=self.gone,
            at_stop=(AtStop("drying up", lambda _: self.calls.append("dry")),),
        )


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Tides]:
    """The made-up part of each broker that starts."""
    made: list[Tides] = []

    def with_tides(parts: Parts, journal: Journal) -> list[Life]:
        made.append(Tides(tmp_path, parts, journal))
        return [*all_parts(parts, journal), made[-1].life()]

    monkeypatch.setattr(service, "all_parts", with_tides)
    return made


def texts(events: Iterable[Any]) -> list[str]:
    return [formatEvent(event) for event in events]


def test_a_made_up_part_is_loaded_ticked_saved_and_stopped(
    made: list[Tides], tmp_path: Path
) -> None:
    with capturedLogs() as events:
        scene = Scene(tmp_path).start()
    (tides,) = made
    assert tides.calls == ["opened after 0 False"]
    assert "config: the tides are high" in texts(events)
    tides.calls.clear()
    scene.pass_ms(50)
    assert tides.calls == [str(scene.clock.now_ms())]
    tides.calls.clear()
    scene.broker.parts.topics.update(TopicConfig(topic_name="Sea"))
    assert tides.calls == ["Sea"]
    scene.pass_ms(1_000)
    assert (tides.count, tides.calls) == (1, ["Sea", "sliced", "sliced", "sliced", "walked"])
    tides.saving.begin()
    assert scene.saved("tides.json") == {"tides": 1}
    scene.pass_ms(1_050)
    tides.calls.clear()
    client = Client(scene)
    client.protocol.connectionLost()
    assert tides.calls == ["gone"]
    assert tides.causes[0] == "the moon"
    assert tides.causes[1].startswith("the end of the connection of ")
    with capturedLogs() as events:
        for trouble in (OSError("wet"), OSError("wet"), None):
            for heard in tides.on_flood:
                heard(trouble)
    assert texts(events) == [
        "holding back the flood failed: wet; it is tried again",
        "holding back the flood works again",
    ]
    scene.registered()
    assert scene.stop() == [None]
    assert tides.calls == ["gone", "dry"]
    assert scene.saved("tides.json") == {"tides": 2}
    scene.pass_ms(5_000, 1_000)
    assert (tides.count, tides.calls) == (2, ["gone", "dry"])
    Scene(tmp_path).start()
    assert made[1].calls == ["opened after 2 False"]


def test_what_it_cannot_write_is_told(
    made: list[Tides], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path).start()
    scene.registered()
    scene.pass_ms(1_050)
    folder = tmp_path / "config" / "tides.json"
    folder.mkdir()
    with capturedLogs() as events:
        made[0].saving.begin()
        scene.stop()
    told = [each for each in texts(events) if "tides.json" in each]
    assert told[0].startswith("writing tides.json failed: ")
    assert told[0].endswith("; it is tried again")
    assert told[1].startswith("writing tides.json failed: ")
    assert len(told) == 2


def test_steps_that_fail_are_told_and_are_taken_again(
    made: list[Tides], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[tuple[str, str]] = []

    def fails() -> Steps[None]:
        yield
        raise ValueError("ebb")

    scene = Scene(tmp_path)
    monkeypatch.setattr(
        scene.broker._failures, "by_itself", lambda what, why: failed.append((what, str(why)))
    )
    scene.start()
    made[0]._steps = fails  # type: ignore[method-assign]
    scene.pass_ms(2_150)
    assert failed == [("walking", "ebb")] * 2


def test_a_beat_of_no_kind_is_a_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd:
        period_ms = 1_000
        first_ms = None

    monkeypatch.setattr(service, "all_parts", lambda *_: [Life("odd", beats=(Odd(),))])
    with pytest.raises(TypeError, match="no kind of beat"):
        Scene(tmp_path).start()
