# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.broker.store.conftest import ROOT, SMALL
from tests.disk import MemoryFiles
from tests.kernel.installed import needs_kernel
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.message_store import MessageStore, PutMessage
from txrocketmq.broker.store.opening.known_units import KnownUnits
from txrocketmq.broker.store.upkeep.reput import Reput
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.process.compiled_kernel import VARIABLE

NOW_MS = 1_700_000_000_000
Build = Callable[..., PutMessage]


def _killed(message: Build, count: int) -> MemoryFiles:
    """The files of a store that was killed."""
    files = MemoryFiles()
    store = MessageStore(StoreConfig(store_path_root_dir=ROOT, **SMALL), files=files)
    store.load(NOW_MS)
    for number in range(count):
        text: dict[str, Any] = {"keys": f"k{number}"}
        if not number % 5:
            text |= {"uniq_key": f"u{number}", "tags": "a", "tags_code": tags_code("a")}
        store.put([message("AB"[number % 2], number % 3, bytes(60), **text)], NOW_MS + number)
        if number == count * 2 // 3:
            store._index.write_pending(NOW_MS)
    return files.after_kill()


def _recovered(files: MemoryFiles) -> tuple[Any, dict[str, bytes]]:
    """What opening the store says, and the files of queues and index afterwards."""
    store = MessageStore(StoreConfig(store_path_root_dir=ROOT, **SMALL), files=files)
    said = store.load(NOW_MS + 99_999)
    store._index.write_pending(NOW_MS)
    return said, {path: bytes(data) for path, data in files.maps.items() if "index" not in path} | {
        f"index {at}": bytes(each.file.map()) for at, each in enumerate(store._index.files)
    }


@needs_kernel
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 60),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 8191), st.integers(0, 255)), max_size=4),
)
def test_a_damaged_store_is_opened_as_without_it(
    message: Build, count: int, damages: list[tuple[int, int, int]]
) -> None:
    found: list[Any] = []
    for word in ("off", "require"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(VARIABLE, word)
            files = _killed(message, count)
            paths = sorted(path for path in files.maps if "index" not in path)
            for number, at, value in damages if paths else ():
                data = files.maps[paths[number % len(paths)]]
                data[at % len(data)] = value
            try:
                found.append(_recovered(files))
            except Exception as error:  # noqa: BLE001 - both must fail in the same way
                found.append(repr(error))
    assert found[0] == found[1]


@needs_kernel
@pytest.mark.parametrize("lost", [False, True])
def test_only_records_without_their_units_are_dispatched(
    message: Build, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "require")
    files = _killed(message, 60)
    if lost:
        path = next(path for path in sorted(files.maps) if "/consumequeue/A/0/" in path)
        files.maps[path][:20] = bytes(20)
    seen: list[int] = []
    dispatch = Reput.dispatch

    def noted(self: Reput, record: Any) -> Any:
        seen.append(record.physical_offset - self.dispatchers.index_from)
        return dispatch(self, record)

    monkeypatch.setattr(Reput, "dispatch", noted)
    _recovered(files)
    assert len([at for at in seen if at >= 0]) == 19  # these are not in the index yet
    assert len([at for at in seen if at < 0]) == 41 * lost


def test_without_a_kernel_all_records_are_dispatched(monkeypatch: pytest.MonkeyPatch) -> None:
    class Walk:
        def records(self, start: int, end: int) -> Any:
            return iter((start, end))

    monkeypatch.setenv(VARIABLE, "off")
    nothing: Any = None
    walk: Any = Walk()
    known = KnownUnits(nothing, nothing, nothing, 5, True)
    assert list(known.others(walk, 3, 9)) == [3, 9]
