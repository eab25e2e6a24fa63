# SPDX-License-Identifier: Apache-2.0
"""Log lines. What a whole process logs is looked at in a process of its own: one has one log."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from twisted.logger import LogLevel
from twisted.python.failure import Failure

from txrocketmq.remoting.host import console_log
from txrocketmq.remoting.host.console_log import LogFileStream, format_json, format_line

STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} "


def event(**more: Any) -> dict[str, Any]:
    return {
        "log_time": 1_700_000_000.125,
        "log_level": LogLevel.info,
        "log_namespace": "txrocketmq.broker.service",
        "log_format": "registered with {address}",
        "address": "127.0.0.1:9876",
        **more,
    }


def test_a_line() -> None:
    line = format_line(event())
    assert re.fullmatch(STAMP + "INFO broker.service: registered with 127.0.0.1:9876", line)
    assert line[19:23] == ".125"


@pytest.mark.parametrize(
    ("level", "name"),
    [
        (LogLevel.debug, "DEBUG"),
        (LogLevel.warn, "WARN"),
        (LogLevel.error, "ERROR"),
        (LogLevel.critical, "ERROR"),
    ],
)
def test_levels(level: Any, name: str) -> None:
    assert f" {name} broker.service: " in format_line(event(log_level=level))


def test_a_peers_text_starts_no_line_of_its_own() -> None:
    line = format_line(event(address="x\n2026-01-01 00:00:00.000 INFO broker: forged\r\n"))
    assert line.splitlines() == [line]
    assert line.endswith(r"x\n2026-01-01 00:00:00.000 INFO broker: forged\r\n")


def test_what_a_terminal_obeys_is_escaped() -> None:
    assert format_line(event(address="\x1b[31mred\x9b")).endswith(r"with \x1b[31mred\x9b")
    forged = ValueError("\x1b[31m\n2026-01-01 00:00:00.000 INFO broker: forged")
    _, *rest = format_line(event(log_failure=Failure(forged))).splitlines()
    assert rest[-1] == "  2026-01-01 00:00:00.000 INFO broker: forged"
    assert rest[-2].endswith(r"\x1b[31m")


def test_a_failure_is_followed_by_its_traceback() -> None:
    text = format_line(event(log_failure=Failure(ValueError("oh"))))
    first, *rest = text.splitlines()
    assert first.endswith("registered with 127.0.0.1:9876")
    assert rest[-1].endswith("builtins.ValueError: oh")


def test_an_event_without_anything() -> None:
    assert format_line({}).endswith(" INFO -: ")


def logged(program: str, encoding: str = "utf-8") -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert done.stderr == ""
    return done.stdout


def test_what_a_process_logs() -> None:
    text = logged("""
from twisted.logger import Logger, LogLevel
from txrocketmq.remoting.host.console_log import start_logging
Logger(namespace="txrocketmq.a").info("too early")
start_logging()
Logger(namespace="txrocketmq.a").info("told {n}", n=1)
Logger(namespace="txrocketmq.a").debug("detail")
Logger(namespace="twisted.internet").info("noise")
Logger(namespace="twisted.internet").warn("trouble")
""")
    assert [line.split(" ", 2)[2] for line in text.splitlines()] == [
        "INFO a: told 1",
        "WARN twisted.internet: trouble",
    ]


def test_a_log_that_nobody_reads_any_more_stops_nothing() -> None:
    text = logged("""
import io
from twisted.logger import Logger
class Stream(io.StringIO):
    writes = 0
    def write(self, text):
        self.writes += 1
        return super().write(text)
from txrocketmq.remoting.host.console_log import start_logging
out = Stream()
start_logging(out)
Logger(namespace="txrocketmq.a").info("one")
assert out.getvalue().endswith("one\\n")
out.close()
Logger(namespace="txrocketmq.a").info("two")
Logger(namespace="txrocketmq.a").info("three")
print("goes on after", out.writes)
""")
    assert text == "goes on after 2\n"  # it was tried once more, not for each line


@pytest.mark.parametrize(
    ("encoding", "seen"), [("ascii", r"caf\xe9 \ud800"), ("utf-8", r"café \ud800")]
)
def test_what_the_console_cannot_show_is_escaped_and_not_the_end(encoding: str, seen: str) -> None:
    text = logged(
        r"""
from twisted.logger import Logger
from txrocketmq.remoting.host.console_log import start_logging
start_logging()
Logger(namespace="txrocketmq.a").info("{text}", text="caf\xe9 \ud800")
Logger(namespace="txrocketmq.a").info("goes on")
""",
        encoding,
    )
    assert [line.split(" ", 2)[2] for line in text.splitlines()] == [
        f"INFO a: {seen}",
        "INFO a: goes on",
    ]


def test_a_line_of_json() -> None:
    line = format_json(event(count=3, peer=LogLevel.warn, level="mine", isError=0))
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.125Z",
        "level": "INFO",
        "logger": "broker.service",
        "message": "registered with 127.0.0.1:9876",
        "address": "127.0.0.1:9876",
        "count": 3,
        "peer": str(LogLevel.warn),
    }
    assert format_json({}).startswith('{"time":"1970-01-01T00:00:00.000Z"')


def test_a_failure_in_json_is_one_line() -> None:
    line = format_json(event(log_failure=Failure(ValueError("oh")), address="a\nb"))
    assert len(line.splitlines()) == 1
    assert json.loads(line)["traceback"].endswith("builtins.ValueError: oh")


def test_a_log_file_is_gone_on_with_and_replaced_when_it_is_large(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("before\n")
    stream = LogFileStream(str(path), 20, 2)
    for number in range(8):
        stream.write(f"line {number} \ud800\n")
    stream.flush()
    kept = sorted(each.name for each in tmp_path.iterdir())
    assert kept == ["log", "log.1", "log.2"]
    assert path.read_text() + (tmp_path / "log.1").read_text() != ""
    assert "line 7 \\ud800\n" in path.read_text()


def test_a_full_disk_loses_lines_and_not_the_log(tmp_path: Path) -> None:
    stream = LogFileStream(str(tmp_path / "log"), 1000, 2)
    real = stream._file.write

    def full(data: bytes) -> None:
        raise OSError(28, "No space left on device")

    stream._file.write = full  # type: ignore[method-assign]
    stream.write("lost\n")
    stream._file.write = real  # type: ignore[method-assign]
    stream.write("written\n")
    assert (tmp_path / "log").read_text() == "written\n"


def test_it_is_known_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_log._shown, "level", None)
    assert console_log.is_shown(LogLevel.debug), "nobody has said otherwise"
    monkeypatch.setattr(console_log._shown, "level", LogLevel.info)
    assert not console_log.is_shown(LogLevel.debug)
    assert console_log.is_shown(LogLevel.info)
