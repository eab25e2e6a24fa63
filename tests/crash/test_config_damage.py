# SPDX-License-Identifier: Apache-2.0
"""Every file of a broker's `config` folder, damaged in every way, after an orderly stop and a kill.

What such a file held is there again, or the start says of the file by its name that it is not: it
refuses, or warns. Topics are there whatever happens, since their queues tell of them. Which files
there are is asked of the broker, so that none is forgotten that comes later.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, cast

import pytest
from twisted.logger import ILogObserver, LogLevel, formatEvent, globalLogPublisher

from tests.broker.test_service import Client, Scene
from tests.crash.damages import DAMAGES, repair
from tests.crash.ledger import Shape
from txrocketmq.broker.parts import Parts
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol.body.pop import SetMessageRequestModeRequestBody
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.settings.config_file import Configuration

TOPICS: Final = ("T", "Orders", "Payments")
MESSAGES: Final = 5
FILES: Final = sorted(
    each.path.name
    for each in Parts(
        configuration=Configuration([BrokerConfig(), StoreConfig()], {}), clock=lambda: 0
    ).files
)
"""All that a broker keeps in the folder."""
UNTOLD: Final = {
    "consumerFilter.json": "consumers tell their filters again with each heartbeat",
    "consumerOrderInfo.json": "what was popped is popped once more, as after the invisible time",
    "messageRequestMode.json": "most brokers never have one",
    "timermetrics": "its counts are for people to look at, and begin anew",
    "transactionMetrics": "its counts are for people to look at, and begin anew",
}
"""Why a start need not say that such a file and its .bak are gone: nothing shows that they were."""
STATES: Final = ("stopped", "killed")
MakeStore = Callable[[str], Path]


def at_first_byte(path: Path) -> int:
    """A flipped bit that makes other JSON of the file goes unseen; this one does not."""
    data = bytearray(path.read_bytes())
    data[0] ^= 0x10
    path.write_bytes(data)
    return 0


CONFIG_DAMAGES: Final = {**DAMAGES, "bit_flipped": at_first_byte}


def touch_all(scene: Scene, number: int) -> None:
    """Changes what each file holds."""
    parts = scene.broker.parts
    parts.offsets.commit("g", "T", 0, number)
    parts.groups.find(f"g{number}")
    parts.topics.update(TopicConfig(topic_name=f"More{number}"))
    wanted = SubscriptionData("T", "a = 1", expression_type="SQL92", sub_version=1)
    assert parts.filters.register(f"g{number}", [wanted])
    parts.modes.set(
        SetMessageRequestModeRequestBody(topic="T", consumer_group=f"g{number}", mode="POP")
    )
    parts.transaction_metrics.add("T", 1)
    parts.timers.metrics.add("T", 1)
    now_ms = scene.broker.clock.now_ms()
    parts.pop.orders.popped(None, "T", f"g{number}", 0, now_ms, 60_000, [0, 1])


def fill(folder: Path, state: str) -> None:
    """A broker that has something in each file; each file has its .bak."""
    scene = Scene(folder).start()
    client = Client(scene)
    for topic in TOPICS:
        scene.broker.parts.topics.update(TopicConfig(topic_name=topic, read_queue_nums=4))
    for _ in range(MESSAGES):
        assert client.send().code == ResponseCode.SUCCESS
        assert client.send(DELAY="1").code == ResponseCode.SUCCESS
    scene.broker.parts.groups.find("g")
    for number in (1, 3):
        touch_all(scene, number)
        scene.pass_ms(15_000, 100)  # all is saved, and delivered
        client.send(DELAY="1")
    # Its name is in none but the newest topics.json.
    scene.broker.parts.topics.update(TopicConfig(topic_name="Late"))
    late = Shape(topics=1, delayed=False).message(1, 0)._replace(topic="Late")
    assert (
        scene.broker.parts.store.put([late], scene.broker.clock.now_ms())[0].status
        is PutStatus.PUT_OK
    )
    scene.pass_ms(15_000, 100)
    if state == "stopped":
        stop(scene)
    else:
        scene.broker.parts.store._marks.unlock()  # what the end of the process does


def stop(scene: Scene) -> None:
    scene.registered()
    assert scene.stop() == [None]


@pytest.fixture(scope="module")
def made_stores(tmp_path_factory: pytest.TempPathFactory) -> MakeStore:
    """The folder of a filled store, by how it was left; to be copied."""
    folders: dict[str, Path] = {}

    def make(state: str) -> Path:
        if state not in folders:
            folder = tmp_path_factory.mktemp(f"broker-{state}")
            fill(folder, state)
            folders[state] = folder
        return folders[state]

    return make


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    """What is logged as a warning or worse."""
    texts: list[str] = []

    def note(event: dict[str, Any]) -> None:
        if event["log_level"] >= LogLevel.warn:
            texts.append(formatEvent(event))

    observer = cast("ILogObserver", note)
    globalLogPublisher.addObserver(observer)
    yield texts
    globalLogPublisher.removeObserver(observer)


def state_of(scene: Scene) -> dict[str, Any]:
    """What each file is there for, as the broker answers it."""
    parts = scene.broker.parts
    filters = parts.filters
    return {
        "topics.json": {topic for topic in parts.topics.all() if topic in parts.store.topics()},
        "subscriptionGroup.json": {"g", "g1", "g3"} & set(parts.groups.all()),
        "consumerOffset.json": parts.offsets.query("g", "T", 0),
        "delayOffset.json": parts.schedule.offsets.progress(),
        "consumerFilter.json": {g for g in ("g1", "g3") if filters.get("T", g) is not None},
        "messageRequestMode.json": {topic: set(groups) for topic, groups in parts.modes.entries()},
        "transactionMetrics": parts.transaction_metrics.count("T"),
        "timermetrics": parts.timers.metrics.count("T"),
        "consumerOrderInfo.json": {
            group for group in ("g1", "g3") if parts.pop.orders.get("T", group, 0) is not None
        },
    }


def check(before: Path, folder: Path, path: Path, warnings: list[str]) -> None:
    """The rule, for a store in which the file at the path was damaged."""
    name = path.name.removesuffix(".bak")
    expected = undamaged(before, folder.with_name("undamaged"))
    scene = Scene(folder)
    try:
        scene.start()
    except (OSError, ValueError) as error:
        assert path.name in str(error), f"it refuses without naming {path.name}: {error}"
        repair(path, before / path.relative_to(folder))
        assert state_of(Scene(folder).start()) == expected
        return
    found = state_of(scene)
    assert found["topics.json"] == expected["topics.json"], "topics with messages are gone"
    for what, was in expected.items():
        if found[what] != was:
            assert what == name, f"a damaged {path.name} costs {what}: {found[what]} for {was}"
            told = [text for text in warnings if path.name in text or name in text]
            if is_gone(path) and not told:
                assert name in UNTOLD, f"{name} is gone, and nothing is said"
                continue
            assert told, f"{found[what]} is there for {was}, and nothing is said: {warnings}"
    stop(scene)
    assert state_of(Scene(folder).start()) == found, "it is another after a stop and a start"


def is_gone(path: Path) -> bool:
    return not path.exists() and not path.with_name(path.name + ".bak").exists()


def undamaged(before: Path, copied: Path) -> dict[str, Any]:
    """What a broker with this store has when nothing is damaged."""
    shutil.copytree(before, copied, symlinks=True)
    scene = Scene(copied).start()
    state = state_of(scene)
    assert state["topics.json"] >= {"T", "Late"}
    assert state["consumerOffset.json"] == 3
    assert set(state) == set(FILES)
    assert all(state.values()), "each file has something to lose"
    scene.broker.parts.store._marks.unlock()
    return state


@pytest.mark.parametrize("damage", CONFIG_DAMAGES)
@pytest.mark.parametrize("name", [f"{each}{end}" for each in FILES for end in ("", ".bak")])
@pytest.mark.parametrize("state", STATES)
def test_a_damaged_file(
    made_stores: MakeStore, tmp_path: Path, warnings: list[str], state: str, name: str, damage: str
) -> None:
    folder = tmp_path / "store"
    shutil.copytree(made_stores(state), folder, symlinks=True)
    path = folder / "config" / name
    CONFIG_DAMAGES[damage](path)
    check(made_stores(state), folder, path, warnings)


@pytest.mark.parametrize("damage", ["gone", "empty", "zeroed", "foreign"])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("state", STATES)
def test_a_file_damaged_with_its_backup(
    made_stores: MakeStore, tmp_path: Path, warnings: list[str], state: str, name: str, damage: str
) -> None:
    folder = tmp_path / "store"
    shutil.copytree(made_stores(state), folder, symlinks=True)
    path = folder / "config" / name
    CONFIG_DAMAGES[damage](path)
    CONFIG_DAMAGES[damage](path.with_name(path.name + ".bak"))
    check(made_stores(state), folder, path, warnings)


@pytest.mark.parametrize("state", STATES)
def test_the_folder_is_gone(
    made_stores: MakeStore, tmp_path: Path, warnings: list[str], state: str
) -> None:
    folder = tmp_path / "store"
    shutil.copytree(made_stores(state), folder, symlinks=True)
    shutil.rmtree(folder / "config")
    scene = Scene(folder)
    try:
        scene.start()
    except (OSError, ValueError) as error:
        assert "config" in str(error)
        return
    assert "T" in scene.broker.parts.topics.all()
    assert any("consumerOffset.json" in text for text in warnings), warnings
