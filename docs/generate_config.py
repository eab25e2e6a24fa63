# SPDX-License-Identifier: Apache-2.0
"""Writes docs/config.md from the dataclasses of the settings; `make docs` runs it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from pathlib import Path
from typing import Any

from txrocketmq.broker.config import BrokerConfig
from txrocketmq.broker.store.config import StoreConfig
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.remoting.config_file import as_properties
from txrocketmq.remoting.header import camel_case

PAGE = Path(__file__).with_name("config.md")

INTRODUCTION = """\
# Settings

<!-- Written by docs/generate_config.py from the settings' dataclasses; run `make docs`. -->

`mqnamesrv -c FILE` and `mqbroker -c FILE` read files as the original does: Java's properties
syntax, the original's keys, the original's defaults. `-p` prints all settings and exits; `mqbroker
-m` the important ones. A broker's file holds the settings of the broker and of its store.

- A value that does not parse stops the start, with the key and what is valid. (The original ignores
  most of these.)
- An unknown key gets a warning that names the nearest known one.
- A key that the original knows and that changes nothing here is accepted, and named at the start.
- *Live* settings take effect at once when `mqadmin updateBrokerConfig` or `updateNamesrvConfig`
  sets them; the others are stored and count after a restart.
"""

PARTS: tuple[tuple[str, type], ...] = (
    ("Name server", NamesrvConfig),
    ("Broker", BrokerConfig),
    ("Store", StoreConfig),
)


def field_texts(cls: type) -> dict[str, str]:
    """The text that follows each field in the source, by the field's name."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(definition, ast.ClassDef)
    texts: dict[str, str] = {}
    name: str | None = None
    for statement in definition.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)):
                pass
            case ast.Expr(value=ast.Constant(value=str(text))) if name is not None:
                texts[name] = " ".join(text.split())
                name = None
            case _:
                name = None
    return texts


def _default(value: Any, cls: type, key: str) -> str:
    if value is None or value == "":
        return ""
    text = as_properties(cls())[key].replace(str(Path.home()), "~")
    return f"`{text}`"


def _table(cls: type) -> list[str]:
    texts = field_texts(cls)
    instance = cls()
    lines = ["| key | default | live | what it is |", "|---|---|---|---|"]
    for spec in dataclasses.fields(cls):
        if not spec.init or not spec.metadata.get("effect", True):
            continue
        key = spec.metadata.get("java") or camel_case(spec.name)
        default = _default(getattr(instance, spec.name), cls, key)
        live = "yes" if spec.metadata.get("live") else ""
        lines.append(f"| `{key}` | {default} | {live} | {texts.get(spec.name, '')} |")
    return lines


def _without_effect(cls: type) -> list[str]:
    keys = set(getattr(cls, "IGNORED", ()))
    for spec in dataclasses.fields(cls):
        if not spec.metadata.get("effect", True):
            keys.add(spec.metadata.get("java") or camel_case(spec.name))
    words = textwrap.wrap(" ".join(sorted(keys)), 98, break_long_words=False)
    return [
        f"Accepted and without effect ({len(keys)}): thread pools, Netty, features not served.",
        "",
        "```text",
        *words,
        "```",
    ]


def pages() -> dict[Path, str]:
    """Each page's path and what it has to be."""
    lines = [INTRODUCTION]
    for title, cls in PARTS:
        lines += [f"## {title}", "", inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0], ""]
        lines += [*_table(cls), "", *_without_effect(cls), ""]
    return {PAGE: "\n".join(lines).rstrip() + "\n"}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
