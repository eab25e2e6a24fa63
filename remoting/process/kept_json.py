# SPDX-License-Identifier: Apache-2.0
"""Reading JSON files that are replaced as a whole, with the previous one kept as .bak.

`replaced_file.write_replacing` writes them. Counterpart of the reading half of ConfigManager.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any, NamedTuple

from txrocketmq.remoting.serialize.json import decode_body
from txrocketmq.remoting.serialize.json_scanner import JsonError


class KeptJson(NamedTuple):
    """What `read_kept` has read, and a warning if that is not the file itself."""

    path: Path
    """The file that `content` was read from: the file itself, or its .bak."""
    content: Any
    """The decoded JSON, or None if neither file holds anything."""
    warning: str
    """What was wrong with the file, as a sentence without its full stop; empty if nothing was."""


def read_kept(path: Path, *, is_private: bool = False, falls_back: bool = True) -> KeptJson:
    """Returns the content of a file, or of its .bak where the file is missing, empty or damaged.

    Unless it `falls_back`, the .bak is not read, as if there were none.
    Raises ValueError, whose text names the files, if there is something and nothing of it can be
    read; and if the file `is_private`, but others than its owner and group may read or write it.
    """
    if is_private:
        _check_private(path)
        _check_private(path.with_name(path.name + ".bak"))
    wrong: list[str] = []
    for each in (path, path.with_name(path.name + ".bak"))[: 1 + falls_back]:
        try:
            data = each.read_bytes()
            if not data.strip():
                wrong.append(f"{each} is empty")
                continue
            zeros = data.find(0)
            if zeros >= 0:  # nobody writes them, but the scanner accepts them in texts
                wrong.append(f"{each} is damaged: it has zero bytes from byte {zeros} on")
                continue
            content = decode_body(data)
        except FileNotFoundError:
            continue
        except OSError as error:
            wrong.append(f"{each}: {error.strerror}")
        except JsonError as error:
            # The rest of the error repeats a part of the file, which may be a password.
            told = f"no JSON at character {error.position}" if is_private else error
            wrong.append(f"{each}: {told}")
        else:
            if each == path:
                return KeptJson(each, content, "")
            why = "; ".join(wrong) or f"{path} is missing"
            return KeptJson(each, content, f"{why}; {each} was read instead, the state before")
    if any(not text.endswith(" is empty") for text in wrong):
        raise ValueError("; ".join(wrong))
    return KeptJson(path, None, "; ".join(wrong))


def _check_private(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError:  # reading it says why
        return
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        raise ValueError(
            f"{path} holds passwords, and everybody on this machine may read or write it: run"
            f" chmod 600 {path}"
        )
