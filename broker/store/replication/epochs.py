# SPDX-License-Identifier: Apache-2.0
"""The terms of masters that a log is made of, as a controller has numbered them (epochs).

Each term begins where the log ended when its master began. Two logs that have a term which began at
the same offset are the same up to where the first of them ends it. The table is kept in a text file
of the original's form: how many entries there are, the CRC-32 of their lines, and a line for each.
It is replaced as a whole, so that a crash leaves the old one or the new one, and the one before is
kept beside it.

A term without a message makes room for the next one that begins at the same offset: nothing is
missed, and a log with messages of such a term, which this one lacks, is not taken for the same. The
original keeps the older entry; at the very beginning of a log that is done here as well, because an
original slave that has heard of the first term could not follow otherwise.

Java: EpochFileCache, EpochEntry, CheckpointFile.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from txrocketmq.broker.store.disk.files import Files

MOST_EPOCHS: Final = 1_000
"""How many entries are kept: original masters can tell a slave no more."""
OPEN_END: Final = (1 << 63) - 1


class Epoch(NamedTuple):
    """A term: its number, and where it begins in the log."""

    number: int
    start: int


class EpochsError(ValueError):
    """The table of epochs, or its file, cannot be right; the text says why."""


def checked(entries: Iterable[Epoch]) -> list[Epoch]:
    """The entries, if numbers and offsets ascend; raises EpochsError."""
    found = list(entries)
    if len(found) > MOST_EPOCHS:
        raise EpochsError(f"there are {len(found)} epochs, more than {MOST_EPOCHS}")
    last = Epoch(-1, -1)
    for each in found:
        if each.number <= last.number or each.start <= last.start:
            raise EpochsError(
                f"epoch {each.number} begins at {each.start}, which does not follow epoch"
                f" {last.number} at {last.start}"
            )
        last = each
    return found


def consistent_point(own: Sequence[Epoch], end: int, theirs: Sequence[Epoch], its_end: int) -> int:
    """Up to where two logs are the same by their epochs; -1 if they share none."""
    ends = dict(zip(theirs, [*(each.start for each in theirs[1:]), its_end], strict=False))
    own_end = end
    for each in reversed(own):
        if each in ends:
            return min(own_end, ends[each])
        own_end = each.start
    return -1


def to_text(entries: Sequence[Epoch]) -> bytes:
    """The content of the file."""
    lines = "".join(f"{each.number}-{each.start}\n" for each in entries)
    return f"{len(entries)}\n{zlib.crc32(lines.encode())}\n{lines}".encode()


def from_text(data: bytes) -> list[Epoch]:
    """The entries in a file; raises EpochsError."""
    try:
        count, crc, *lines = data.decode("ascii").splitlines()
        found = [Epoch(*map(int, line.split("-"))) for line in lines]
        wanted, said = int(count), int(crc)
    except (ValueError, TypeError) as error:
        raise EpochsError(f"it is no table of epochs: {error}") from None
    text = "".join(f"{line}\n" for line in lines)
    if wanted != len(found) or (said and said != zlib.crc32(text.encode())):
        raise EpochsError(f"it has {len(found)} epochs, of {wanted}, or they were changed")
    return checked(found)


class EpochTable:
    """The epochs of a log, kept in a file."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._entries: list[Epoch] = []

    def load(self) -> None:
        """Reads the file, or the one before if that cannot be used; raises EpochsError, OSError."""
        paths = [self._path, f"{self._path}.bak"]
        error: EpochsError | None = None
        for path in filter(self._files.exists, paths):
            try:
                self._entries = from_text(self._files.read(path))
            except EpochsError as found:
                error = error or EpochsError(f"{path}: {found}")
            else:
                return
        if error is not None:
            raise error

    @property
    def entries(self) -> Sequence[Epoch]:
        """The entries, the oldest first."""
        return self._entries

    @property
    def last(self) -> Epoch | None:
        """The newest entry; None if there is none."""
        return self._entries[-1] if self._entries else None

    def at(self, offset: int) -> tuple[Epoch, int] | None:
        """The epoch of what begins at an offset, and where that epoch ends."""
        end = OPEN_END
        for each in reversed(self._entries):
            if each.start <= offset:
                return each, end
            end = each.start
        return None

    def begin(self, epoch: Epoch) -> None:
        """Notes that an epoch begins; raises OSError."""
        last = self.last
        if last is not None and (epoch.number <= last.number or epoch.start == last.start == 0):
            return
        entries = [each for each in self._entries if each.start < epoch.start]
        self._write([*entries, epoch][-MOST_EPOCHS:])

    def cut(self, end: int) -> None:
        """Forgets epochs that begin at the end of the log or later; raises OSError."""
        self._write([each for each in self._entries if each.start < end or not each.start])

    def adopt(self, theirs: Sequence[Epoch], end: int) -> None:
        """Takes the epochs of another log, which is the same up to `end`; raises OSError."""
        self._write([each for each in theirs if each.start < end or not each.start])

    def _write(self, entries: list[Epoch]) -> None:
        if entries == self._entries:
            return
        files, path = self._files, self._path
        part = f"{path}.tmp"
        files.write(part, to_text(entries))
        files.sync(part)
        if files.exists(path):
            files.move(path, f"{path}.bak")
        files.move(part, path)
        self._entries = entries
