# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.spark.live.position import Position
from txrocketmq.spark.live.stream_lag import BYTES, MESSAGES, Lag, LagListener, lags_of
from txrocketmq.spark.log.log_position import LogPosition, to_offset


def _source(end: Any, latest: Any) -> SimpleNamespace:
    return SimpleNamespace(endOffset=json.dumps(end), latestOffset=json.dumps(latest))


def _progress(*sources: SimpleNamespace, name: str | None = "copy") -> Any:
    return SimpleNamespace(sources=sources, name=name, id="i", runId="r", batchId=7)


def _at(*offsets: tuple[str, str, int, int]) -> dict[str, Any]:
    return Position({MessageQueue(t, b, q): offset for t, b, q, offset in offsets}).to_json()


LIVE = _source(
    _at(("t", "a", 0, 5), ("t", "a", 1, 9), ("u", "b", 0, 2)),
    _at(("t", "a", 0, 8), ("t", "a", 1, 7), ("t", "a", 2, 4), ("u", "b", 0, 2)),
)
STORES = _source(
    to_offset({"a": LogPosition(log=100)}),
    to_offset({"a": LogPosition(log=350), "b": LogPosition(log=40)}),
)
KAFKA = _source({"t": {"0": 5}}, {"t": {"0": 8}})


def test_the_lag_of_each_source() -> None:
    """An offset behind which a queue was cut is no negative lag; what is new counts whole."""
    assert lags_of(_progress(KAFKA, LIVE, STORES)) == [
        Lag(1, "t", "a", MESSAGES, 7), Lag(1, "u", "b", MESSAGES, 0),
        Lag(2, "", "a", BYTES, 250), Lag(2, "", "b", BYTES, 40),
    ]  # fmt: skip


@pytest.mark.parametrize("text", [None, "null", "5", "{", '"x"', '{"v": 1}'])
def test_a_source_that_does_not_tell(text: str | None) -> None:
    source = SimpleNamespace(endOffset=text, latestOffset=LIVE.latestOffset)
    assert lags_of(_progress(source)) == []


def test_the_log_and_the_file_have_streams_that_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "txrocketmq.spark")
    path = tmp_path / "streams.prom"
    listener = LagListener(str(path))
    listener.onQueryProgress(SimpleNamespace(progress=_progress(KAFKA)))  # type: ignore[arg-type]
    assert not caplog.text
    assert not path.exists()
    event: Any = SimpleNamespace(progress=_progress(LIVE, STORES))
    listener.onQueryProgress(event)
    assert "stream copy is 7 messages and 290 bytes behind after batch 7" in caplog.text
    text = path.read_text()
    line = 'lag_messages{broker="a",query="copy",source="0",topic="t"} 7.0'
    assert f"txrocketmq_stream_{line}" in text
    assert 'txrocketmq_stream_lag_bytes{broker="a",query="copy",source="1"} 250.0' in text
    ended: Any = SimpleNamespace(runId="r")
    listener.onQueryTerminated(ended)
    assert "copy" not in path.read_text()


def test_a_file_that_cannot_be_written_ends_no_stream(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    event: Any = SimpleNamespace(progress=_progress(LIVE))
    LagListener(str(tmp_path / "none" / "f")).onQueryProgress(event)
    assert "the lag of streams cannot be written" in caplog.text
