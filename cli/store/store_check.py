# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq store check`: reads a whole store in several processes and reports what is wrong.

Nothing is changed. On a terminal a bar shows how it comes along.

Opening a store reads the CRCs of the last file of its log, or of more; then the look reads those
of all. For a sound store that is once too often, so at first it is opened without, and the end of
the log is believed to be where it was when the store was closed; and the files of the log are
looked at in pieces, so that no process waits for another. Where something is found, or is not as
was believed, all is done again with a proper opening and file by file, to say what a broker would
say and do.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

import orjson

from txrocketmq.broker.store.check.check import LOG, Finding, Looked, Part, StoreCheck
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.cli.command_line import progress
from txrocketmq.cli.store.store_directory import DONE, FAILED, kinds_of_queues, known_topics
from txrocketmq.remoting.primitives.plain_text import plain, plain_json
from txrocketmq.remoting.process.kept_json import read_kept

_CONFIG: Final = "config"
_NO_SUFFIX: Final = frozenset({"transactionMetrics", "timermetrics"})
"""Names of files of JSON that do not end with .json."""
_LEAST_PIECE_BYTES: Final = 16 * 1024 * 1024
_PIECES_A_WORKER: Final = 8
"""How many pieces each process gets to check. When the last piece is being checked, the others wait
only for a small part of the whole."""
_check: StoreCheck | None = None
"""What the processes check; they inherit it from the process that has forked them."""


def check_store(config: StoreConfig, root: Path, *, workers: int | None, as_json: bool) -> int:
    """Checks the store; returns 0 if nothing is wrong with it."""
    started = time.monotonic()
    # On copies the index is not worth building: it is looked at as it is.
    config = dataclasses.replace(config, message_index_enable=False)
    unchecked = dataclasses.replace(config, check_crc_on_recover=False)
    report = _look_at_all(unchecked, root, workers, shows=not as_json, in_pieces=True)
    if report.is_in_doubt:
        report = _look_at_all(config, root, workers, shows=not as_json, in_pieces=False)
    report.check.findings += config_findings(root)
    report.seconds = time.monotonic() - started
    print(report.json() if as_json else plain(report.text(), keep="\n"))
    return FAILED if report.check.findings else DONE


def _look_at_all(
    config: StoreConfig, root: Path, workers: int | None, *, shows: bool, in_pieces: bool
) -> Report:
    check = StoreCheck(config, kinds_of_queues(root))
    looked: dict[str, Looked] = {}
    found: list[tuple[Part, list[Finding]]] = []
    try:
        if check.open(int(time.time() * 1000), known_topics(root), trusts=in_pieces):
            for each in look_at_parts(check, workers, shows=shows, in_pieces=in_pieces):
                found.append((each.part, each.findings))
                if each.part.kind in looked:
                    looked[each.part.kind].add(each)
                else:
                    looked[each.part.kind] = each
            for _, findings in sorted(found, key=lambda each: _place(each[0])):
                check.findings += findings
            check.findings += check.finish(looked.values())
        return Report(check, list(looked.values()))
    finally:
        check.close()


def _place(part: Part) -> tuple[bool, int, int]:
    return part.kind != LOG, part.number, part.position


def look_at_parts(
    check: StoreCheck, workers: int | None, *, shows: bool, in_pieces: bool
) -> Iterator[Looked]:
    """Checks all parts, several at a time; yields each result as soon as it is there."""
    global _check  # noqa: PLW0603 - forked processes have it so
    workers = workers or os.cpu_count() or 1
    piece_bytes = (check.end - check.start) // (workers * _PIECES_A_WORKER)
    parts = check.parts(max(piece_bytes, _LEAST_PIECE_BYTES) if in_pieces else None)
    workers = max(min(workers, len(parts)), 1)
    with _bar(sum(part.size_bytes for part in parts), shows=shows) as advance:
        if workers == 1:
            for part in parts:
                yield check.look(part)
                advance(part.size_bytes)
            return
        _check = check
        context = multiprocessing.get_context("fork")
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_ignore_interrupts)
        try:
            for done in as_completed([pool.submit(_look, part) for part in parts]):
                looked = done.result()
                advance(looked.part.size_bytes)
                yield looked
        finally:
            pool.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    """A terminal interrupts all processes; the first of them ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _look(part: Part) -> Looked:
    assert _check is not None
    return _check.look(part)


def _bar(total_bytes: int, *, shows: bool) -> AbstractContextManager[Callable[[int], None]]:
    """Shows a bar on a terminal; yields a function to be called with the number of bytes read."""
    return progress("reading", total_bytes) if shows else nullcontext(lambda _: None)


def config_findings(store: Path) -> Iterator[Finding]:
    """Yields what is wrong with files of `config/`: damaged, only a .bak, or no JSON object."""
    folder = store / _CONFIG
    names = {path.name.removesuffix(".bak") for path in folder.glob("*")}
    for name in sorted(name for name in names if name.endswith(".json") or name in _NO_SUFFIX):
        path = folder / name
        try:
            kept = read_kept(path)
        except ValueError as error:
            yield Finding(_CONFIG, f"{error}.", str(path))
            continue
        if kept.warning:
            yield Finding(_CONFIG, f"{kept.warning}.", str(path))
        elif not isinstance(kept.content, dict):
            yield Finding(_CONFIG, f"{path} holds no JSON object.", str(path))


@dataclasses.dataclass
class Report:
    """What was found in a store, to be printed."""

    check: StoreCheck
    looked: list[Looked]
    """The results, one for each kind of part."""
    seconds: float = 0.0

    @property
    def more(self) -> int:
        """Returns how many findings there are that are not listed."""
        return sum(each.more for each in self.looked)

    @property
    def is_in_doubt(self) -> bool:
        """Whether something is wrong, or is not as was believed: the end, or where pieces begin."""
        return bool(self.check.findings) or not all(each.is_joined for each in self.looked)

    @property
    def read_bytes(self) -> int:
        """How many bytes of the store were read."""
        return sum(each.part.size_bytes for each in self.looked)

    def text(self) -> str:
        """Returns the report in sentences for a person."""
        check = self.check
        lines = [finding.text for finding in check.findings]
        if self.more:
            lines.append(f"{self.more:,} more findings are not listed.")
        if check.recovered is not None:
            if not check.recovered.was_closed:
                lines.append("The store was not closed in order; opening it will recover it.")
            speed = self.read_bytes / max(self.seconds, 1e-9) / 1e6
            lines.append(f"Read {check.summary(self.looked)}")
            lines.append(f"{self.read_bytes:,} bytes in {self.seconds:.1f} s, {speed:,.0f} MB/s.")
        count = len(check.findings) + self.more
        many = "1 thing is wrong." if count == 1 else f"{count:,} things are wrong."
        lines.append(many if count else "Nothing is wrong.")
        return "\n".join(lines)

    def json(self) -> str:
        """Returns the report as JSON for a program."""
        check, done = self.check, self.check.recovered
        value = {
            "sound": not check.findings,
            "canBeOpened": check.refusal is None,
            "wasClosed": None if done is None else done.was_closed,
            "log": {"start": check.start, "end": check.end},
            "messages": sum(each.messages for each in self.looked if each.part.kind == "log"),
            "bytes": self.read_bytes,
            "seconds": round(self.seconds, 3),
            "findings": [each._asdict() for each in check.findings],
            "notListed": self.more,
        }
        return plain_json(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
