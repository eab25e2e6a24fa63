# SPDX-License-Identifier: Apache-2.0
"""Lists the files of a log, which may be many, without looking at all of them again and again.

A read asks often which files there are, and a stream asks with each micro-batch. A folder in which
no file was made or deleted has not changed, as its own time tells, and neither has the size of a
file that is full. So only files that are smaller than others, as copies under way are, are looked
at again.
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from txrocketmq.spark.store.files import FILE_NAME, Files, LocalFiles, NumberedFile, numbered

_MOST_KNOWN: Final = 64
_SETTLED_NS: Final = 2_000_000_000
"""A folder may change twice within one step of the clock of its file system."""


class _Known(NamedTuple):
    changed_ns: int
    """When the folder was changed last, before it was listed."""
    files: list[NumberedFile]
    growing: list[int]
    """Places in `files` of those that are smaller than the largest one."""


_known: dict[str, _Known] = {}
"""What local folders had when they were listed, by path."""


def log_files(files: Files, directory: str) -> list[NumberedFile]:
    """Returns the numbered files of a folder as they are now, in order, without empty ones.

    The list is not to be changed: as long as the folder has not changed, it is the same one, so
    that a table may ask for each queue which files there are. Raises FileNotFoundError if there is
    no such folder.
    """
    if not isinstance(files, LocalFiles) or files.is_remote:
        return numbered(directory, files.list(directory))
    changed_ns = files.changed_ns(directory)
    known = _known.get(directory)
    if known is not None and known.changed_ns == changed_ns:
        if not known.growing:
            return known.files
        now = list(known.files)
        for place in known.growing:
            now[place] = now[place]._replace(size=files.size_of(now[place].path))
        return [file for file in now if file.size]
    entries = files.list(directory)
    found = numbered(directory, entries)
    has_empty = len(found) < sum(FILE_NAME.fullmatch(each.name) is not None for each in entries)
    if not has_empty and time.time_ns() - changed_ns > _SETTLED_NS:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        full_bytes = max((file.size for file in found), default=0)
        growing = [place for place, file in enumerate(found) if file.size < full_bytes]
        _known[directory] = _Known(changed_ns, found, growing)
    return found
