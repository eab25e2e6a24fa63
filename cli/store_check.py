# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq store check`: reads a store whole, in several processes, and says what is wrong.

Nothing is changed. On a terminal a bar shows how it comes along.

Opening a store reads the CRCs of the last file of its log, or of more; then the look reads those
of all. For a sound store that is once too often, so at first it is opened without. Where something
is found, all is done again with a proper opening, to say what a broker would say and do.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

import orjson

from txrocketmq.broker.store.check import Finding, Looked, Part, StoreCheck
from txrocketmq.broker.store.config import StoreConfig
from txrocketmq.cli.command_line import progress
from txrocketmq.cli.store_directory import DONE, FAILED, kinds_of_queues, known_topics
from txrocketmq.remoting.kept_json import read_kept

_CONFIG: Final = "config"
_NO_SUFFIX: Final = frozenset({"transactionMetrics", "timermetrics"})
"""Files of JSON that are not called so."""
_check: StoreCheck | None = None
"""What the processes look at, which have it from the one that has forked them."""


def check_store(config: StoreConfig, root: Path, *, workers: int | None, as_json: bool) -> int:
    """Looks at the store; 0 when nothing is wrong with it."""
    started = time.monotonic()
    # On copies the index is not worth building: it is looked at as it is.
    config = dataclasses.replace(config, message_index_enable=False)
    unchecked = dataclasses.replace(config, check_crc_on_recover=False)
    report = _look_at_all(unchecked, root, workers, shows=not as_json)
    if report.check.findings and config.check_crc_on_recover:
        report = _look_at_all(config, root, workers, shows=not as_json)
    report.check.findings += config_findings(root)
    report.seconds = time.monotonic() - started
    print(report.json() if as_json else report.text())
    return FAILED if report.check.findings else DONE


def _look_at_all(config: StoreConfig, root: Path, workers: int | None, *, shows: bool) -> Report:
    check = StoreCheck(config, kinds_of_queues(root))
    looked: list[Looked] = []
    try:
        if check.open(int(time.time() * 1000), known_topics(root)):
            looked = list(look_at_parts(check, workers, shows=shows))
            check.findings += [each for part in looked for each in part.findings]
            check.findings += check.finish(looked)
        return Report(check, looked, sum(part.more for part in looked))
    finally:
        check.close()


def look_at_parts(check: StoreCheck, workers: int | None, *, shows: bool) -> Iterator[Looked]:
    """Looks at all parts, several at a time, in the order in which they come."""
    global _check  # noqa: PLW0603 - forked processes have it so
    parts = check.parts()
    workers = max(min(workers or os.cpu_count() or 1, len(parts)), 1)
    with _bar(sum(part.size_bytes for part in parts), shows=shows) as advance:
        if workers == 1:
            for part in parts:
                yield check.look(part)
                advance(part.size_bytes)
            return
        _check = check
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            for done in as_completed([pool.submit(_look, part) for part in parts]):
                looked = done.result()
                advance(looked.part.size_bytes)
                yield looked


def _look(part: Part) -> Looked:
    assert _check is not None
    return _check.look(part)


def _bar(total_bytes: int, *, shows: bool) -> AbstractContextManager[Callable[[int], None]]:
    """A bar on a terminal; it is given the bytes that were read."""
    return progress("reading", total_bytes) if shows else nullcontext(lambda _: None)


def config_findings(store: Path) -> Iterator[Finding]:
    """Files of `config/` that are damaged, missing beside their .bak, or no JSON objects."""
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
    """What was found, to be printed."""

    check: StoreCheck
    looked: list[Looked]
    more: int
    seconds: float = 0.0

    @property
    def read_bytes(self) -> int:
        """How much of the store was read."""
        return sum(each.part.size_bytes for each in self.looked)

    def text(self) -> str:
        """Sentences for a person."""
        check = self.check
        lines = [finding.text for finding in check.findings]
        if self.more:
            lines.append(f"There is more of that: {self.more:,} things that are not listed.")
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
        """The same for a program."""
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
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
