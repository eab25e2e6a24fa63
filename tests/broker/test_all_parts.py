# SPDX-License-Identifier: Apache-2.0
"""The lives of a broker's parts, together: their order, and that no file is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.conftest import Parts
from tests.broker.test_service import Scene

LAST_WRITES = [
    "writing down what is popped",
    "flushing the store",
    "keeping the progress of timers",
    "writing timermetrics",
    "keeping the progress of transactions",
    "keeping the progress of pops",
    "writing consumerOffset.json",
    "writing consumerOrderInfo.json",
    "writing transactionMetrics",
    "keeping the progress of delay levels",
    "writing delayOffset.json",
    "writing messageRequestMode.json",
    "writing consumerFilter.json",
    "writing topics.json",
    "writing subscriptionGroup.json",
    "closing the store",
]
"""Records of the store first, then the log, progress that depends on it, and tables; its end."""


def test_what_is_written_at_the_end_is_written_in_this_order(parts: Parts) -> None:
    writes = [each.what for life in reversed(parts.lives()) for each in life.stops()]
    expected = [*LAST_WRITES]
    places = {what: at for at, what in enumerate(writes)}
    assert sorted(writes) == sorted(expected)
    assert writes == expected, places


def test_what_was_only_in_memory_is_in_the_files(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.topic("T")
    parts.put("T", 0)
    parts.offsets.commit("g", "T", 0, 1)
    assert not (parts.config_folder / "consumerOffset.json").exists()
    parts.walked().stop(parts.now_ms, lambda what, _: pytest.fail(what), ())
    assert not (tmp_path / "store" / "abort").exists(), "the store is closed in order"
    again = Parts(tmp_path)
    again.load()
    assert again.store.max_offset("T", 0) == 1
    assert again.offsets.query("g", "T", 0) == 1
    assert again.topics.get("T") is not None
    again.store.stop(again.now_ms)


@pytest.mark.parametrize("is_light", [False, True])
def test_each_file_has_a_part_that_keeps_it(tmp_path: Path, is_light: bool) -> None:
    settings = {"enable_lmq": is_light, "enable_multi_dispatch": is_light}
    parts = Parts(tmp_path, store_settings=settings)
    kept = [name for life in parts.lives() for name in life.files]
    kept += [life.table.saving.name for life in parts.lives() if life.table is not None]
    assert len(kept) == len(set(kept)), "no file has two"
    assert {file.path.name for file in parts.files} | {"timercheck"} == set(kept)
    parts.store.stop(parts.now_ms)


def test_each_part_has_a_name_of_its_own(parts: Parts) -> None:
    names = [life.name for life in parts.lives()]
    assert len(names) == len(set(names))


def lists_of_listeners(of: object, seen: set[int]) -> Iterator[tuple[str, list[object]]]:
    """All lists with names of `on_...` that can be reached from an object of the broker."""
    if id(of) in seen or not type(of).__module__.startswith("txrocketmq.broker"):
        return
    seen.add(id(of))
    for name, value in getattr(of, "__dict__", {}).items():
        if name.startswith("on_") and isinstance(value, list):
            yield f"{type(of).__qualname__}.{name}", value
        yield from lists_of_listeners(value, seen)


OF_SLAVES = {"Registration.on_master"}
"""The lists that only the parts of a slave listen to."""


@pytest.mark.parametrize("role", ["ASYNC_MASTER", "SLAVE"])
def test_somebody_hears_each_list_of_listeners(tmp_path: Path, role: str) -> None:
    """In a whole broker; before its start most of them are empty."""
    scene = Scene(tmp_path, {"broker_role": role}, broker_id=int(role == "SLAVE"))
    silent = [name for name, heard in lists_of_listeners(scene.broker.parts, set()) if not heard]
    assert len(silent) > 20
    scene.start()
    lists = list(lists_of_listeners(scene.broker.parts, set()))
    assert len(lists) > 25
    unheard = {name for name, heard in lists if not heard}
    assert unheard == (set() if role == "SLAVE" else OF_SLAVES)
