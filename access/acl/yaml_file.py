# SPDX-License-Identifier: Apache-2.0
"""A file of YAML with one mapping, read and written whole.

The library is imported when a file is read, so that a server without ACL 1 does without it.
Java: AclUtils.getYamlDataObject and writeDataObject.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from txrocketmq.access.acl.errors import AclError
from txrocketmq.remoting.process.replaced_file import write_replacing

MAX_BYTES: Final = 16 * 1024 * 1024
"""Larger files are not read: 10,000 accounts have some 3 MB."""
_SECRET_MODE: Final = 0o600
_QUOTED: Final = re.compile(r"'[^']{2,}'|\"[^\"]{2,}\"")
"""What the library repeats of a file, such as a tag: a secret without quotes may begin with `!`."""


def loaded(path: str, data: bytes) -> dict[Any, Any]:
    """Returns the members of a file with this content; none if it is empty.

    Raises AclError, whose text contains nothing of the file, as that may be a secret.
    """
    import yaml  # noqa: PLC0415 - see above

    try:
        content = yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}, line {mark.line + 1}" if mark is not None else path
        why = _QUOTED.sub("...", str(error.problem or error.context))
        raise AclError(f"{where}: this is no YAML: {why}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise AclError(f"{path}: this is no YAML ({type(error).__name__})") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise AclError(f"{path}: there must be members like 'accounts:', not a {_kind(content)}")
    return content


def write(path: str, members: Mapping[Any, Any]) -> None:
    """Replaces a file, which is on disk on return. Raises OSError; the file is then as it was.

    A file that a link leads to is replaced, not the link. A new one can be read by its owner alone.
    """
    import yaml  # noqa: PLC0415 - see above

    text = yaml.dump(
        dict(members),
        Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
        default_flow_style=False,
        allow_unicode=True,
        sort_keys=False,
        encoding="utf-8",
    )
    real = Path(os.path.realpath(path))
    real.parent.mkdir(parents=True, exist_ok=True)
    if not real.exists():
        os.close(os.open(real, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, _SECRET_MODE))
    write_replacing(real, text)


def _kind(content: object) -> str:
    return "list" if isinstance(content, list) else "text"
