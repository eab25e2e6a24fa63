# SPDX-License-Identifier: Apache-2.0
"""Changes values in the text of a properties file and leaves everything else as it is.

Comments, the order of the keys, blank lines and line ends belong to the person who wrote the file.
The original rewrites the whole file without them (java.util.Properties.store,
common.Configuration.persist).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from txrocketmq.remoting.settings.config_file import read_properties, write_properties

_LINE: Final = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")


def edited(text: str, changes: Mapping[str, str]) -> str:
    """Returns the text with these values: in place where a key has a line, else at the end.

    Raises ConfigError for a text that is not in the syntax of properties files.
    """
    parts: list[str] = []
    added = dict(changes)
    pieces = list(_logical_parts(text))
    first_end = (pieces[0][1] if pieces else "") or "\n"
    for part, end, _ in pieces:
        key = next(iter(read_properties(part)), None)
        if key is None or key not in changes:
            parts.append(part)
            continue
        added.pop(key, None)  # the last line of a key counts, so all of them get the value
        parts.append(_line(key, changes[key], end))
    if added:
        _, end, is_open = pieces[-1] if pieces else ("", "\n", False)
        parts.append(("" if end else first_end) + (first_end if is_open else ""))
        parts += [_line(key, value, first_end) for key, value in added.items()]
    return "".join(parts)


def _line(key: str, value: str, end: str) -> str:
    return write_properties({key: value}).removesuffix("\n") + end


def _logical_parts(text: str) -> Iterator[tuple[str, str, bool]]:
    """Cuts the text after each line that no backslash continues, and says how that line ends.

    The last line counts as open if its backslash would continue it.
    """
    pending = end = ""
    for found in _LINE.finditer(text):
        line, this_end = found.groups()
        if not line and not this_end:
            break
        end = this_end
        is_comment = not pending and line.lstrip(" \t\f")[:1] in ("#", "!")
        pending += line + end
        if is_comment or (len(line) - len(line.rstrip("\\"))) % 2 == 0:
            yield pending, end, False
            pending = ""
    if pending:
        yield pending, end, True
