# SPDX-License-Identifier: Apache-2.0
"""Reading JSON files that are replaced as a whole, with the previous one kept as .bak.

`replaced_file.write_replacing` writes them. Counterpart of the reading half of ConfigManager.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from txrocketmq.remoting.serialize.json import JsonError, decode_body


class KeptJson(NamedTuple):
    """What was read, and what is to be said about it."""

    path: Path
    """The file that `content` is of: the file itself, or its .bak."""
    content: Any
    """None when neither of them holds anything."""
    warning: str
    """What was wrong with the file, in a sentence without its end; empty when all is well."""


def read_kept(path: Path) -> KeptJson:
    """The content of a file, or of its .bak where the file is missing, empty or broken.

    Raises ValueError, whose text names the files, when there is something and none can be read.
    """
    wrong: list[str] = []
    for each in (path, path.with_name(path.name + ".bak")):
        try:
            data = each.read_bytes()
            if not data.strip():
                wrong.append(f"{each} is empty")
                continue
            zeros = data.find(0)
            if zeros >= 0:  # nobody writes them, yet within texts the scanner would let them pass
                wrong.append(f"{each} is damaged: it has zero bytes from byte {zeros} on")
                continue
            content = decode_body(data)
        except FileNotFoundError:
            continue
        except OSError as error:
            wrong.append(f"{each}: {error.strerror}")
        except JsonError as error:
            wrong.append(f"{each}: {error}")
        else:
            if each == path:
                return KeptJson(each, content, "")
            why = "; ".join(wrong) or f"{path} is missing"
            return KeptJson(each, content, f"{why}; {each} was read instead, the state before")
    if any(not text.endswith(" is empty") for text in wrong):
        raise ValueError("; ".join(wrong))
    return KeptJson(path, None, "; ".join(wrong))
