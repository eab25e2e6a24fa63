# SPDX-License-Identifier: Apache-2.0
"""Writes docs/config.md from the dataclasses of the settings; `make docs` runs it."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
from pathlib import Path
from typing import Any

from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.proxy.accounts.config import AccountsConfig
from txrocketmq.proxy.config import MessagingConfig, ProxyConfig
from txrocketmq.remoting.header import camel_case
from txrocketmq.remoting.settings.config_file import INT_MAX, Unserved, as_properties
from txrocketmq.remoting.settings.field_texts import field_texts
from txrocketmq.remoting.settings.tls import TlsConfig

PAGE = Path(__file__).with_name("config.md")

INTRODUCTION = """\
# Settings

<!-- Written by docs/generate_config.py from the settings' dataclasses; run `make docs`. -->

This page lists all settings of the name server, the broker and the proxy, for whoever writes their
configuration files. `mqnamesrv -c FILE` and `mqbroker -c FILE` read the files of the original: the
same keys and defaults, in the syntax of Java's properties. `-p` prints all settings except those
about TLS and exits; `mqbroker -m` prints the important ones. The file of a broker contains the
settings of its store as well, and both files may contain those about TLS. `txrocketmq proxy -pc
FILE` reads rmq-proxy.json of the original, an object of JSON with the keys of the last three parts.

- A value of the wrong form, and a number that is too small or too large, stops the start with a
  message that names the key and the valid values. (The original ignores most such mistakes.)
- A value with control characters stops the start as well: it could become part of messages, or of
  lines of the log.
- Passwords and the like are shown to nobody. `-p`, mqadmin and the log have `***` in their place,
  and whoever writes that back changes nothing.
- An unknown key causes a warning that suggests the nearest known one.
- A key of the original that has no effect here is accepted, at the start and later. The
  server names these keys when it starts, and logs them when they are changed.
- A value that promises something which is not served, such as a controller, stops the start, so
  that nobody relies on it. Each part of this page lists these values.
- *Live* settings can be changed with `mqadmin updateBrokerConfig` or `updateNamesrvConfig`, and
  take effect at once. To change one of the others, edit the file and restart the server; mqadmin's
  request is refused.
"""

PARTS: tuple[tuple[str, type], ...] = (
    ("Name server", NamesrvConfig),
    ("Broker", BrokerConfig),
    ("Store", StoreConfig),
    ("TLS", TlsConfig),
    ("Proxy", ProxyConfig),
    ("Calls of the proxy", MessagingConfig),
    ("Accounts at the proxy", AccountsConfig),
)


def _default(value: Any, cls: type, key: str) -> str:
    if value is None or value == "":
        return ""
    text = as_properties(cls())[key].replace(str(Path.home()), "~")
    return f"`{text}`"


def _table(cls: type) -> list[str]:
    texts = field_texts(cls)
    instance = cls()
    lines = ["| key | default | live | what it is |", "|---|---|---|---|"]
    own = cls.__annotations__
    for spec in sorted(dataclasses.fields(cls), key=lambda spec: spec.name not in own):
        if not spec.init or not spec.metadata.get("effect", True):
            continue
        key = spec.metadata.get("java") or camel_case(spec.name)
        default = _default(getattr(instance, spec.name), cls, key)
        live = "yes" if spec.metadata.get("live") else ""
        text = texts.get(spec.name, "") + _range(spec)
        lines.append(f"| `{key}` | {default} | {live} | {text} |")
    return lines


def _range(spec: dataclasses.Field[Any]) -> str:
    """The bounds of a number that are narrower than those of its type in Java."""
    is_number = isinstance(spec.default, int) and not isinstance(spec.default, bool)
    most = spec.metadata.get("most", INT_MAX)
    if not is_number or most >= INT_MAX:
        return ""
    return f" From {spec.metadata['least']} to {most}."


def _without_effect(cls: type) -> list[str]:
    keys = set(getattr(cls, "IGNORED", ()))
    for spec in dataclasses.fields(cls):
        if not spec.metadata.get("effect", True):
            keys.add(spec.metadata.get("java") or camel_case(spec.name))
    if not keys:
        return []
    words = textwrap.wrap(" ".join(sorted(keys)), 98, break_long_words=False)
    told = f"These {len(keys)} keys are accepted without effect"
    unless = ", unless the table above refuses their value" if hasattr(cls, "UNSERVED") else ""
    return [
        f"{told}{unless}:",
        "",
        "```text",
        *words,
        "```",
        "",
    ]


def _refused(cls: type) -> list[str]:
    promises: tuple[Unserved, ...] = getattr(cls, "UNSERVED", ())
    lines = [
        "These values are refused, because what they promise is not served:",
        "",
        "| key | value | feature |",
        "|---|---|---|",
    ]
    for each in promises:
        values = ", ".join(f"`{value}`" for value in each.values) or "any"
        lines.append(f"| `{each.key}` | {values} | {each.feature} |")
    return lines


def pages() -> dict[Path, str]:
    """Each page's path and what it has to be."""
    lines = [INTRODUCTION]
    for title, cls in PARTS:
        lines += [f"## {title}", "", inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0], ""]
        lines += [*_table(cls), ""]
        if hasattr(cls, "UNSERVED"):
            lines += [*_refused(cls), ""]
        lines += _without_effect(cls)
    return {PAGE: "\n".join(lines).rstrip() + "\n"}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
