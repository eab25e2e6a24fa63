# SPDX-License-Identifier: Apache-2.0
"""Writes what docs/compatibility.md says of request codes; `make docs` runs it.

What is served comes from the registries of a name server and a broker, as they are built to run.
Who serves a code in the original is written down here, from the processors of both versions. The
table of all codes is in docs/request_codes.md, which generate_request_headers.py writes.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from docs.sections import replaced
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.broker.parts import Parts
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.service import NameServer
from txrocketmq.remoting import protocol
from txrocketmq.remoting.call import CALLS, Call
from txrocketmq.remoting.dispatch import Registry
from txrocketmq.remoting.settings.config_file import Configuration

PAGE = Path(__file__).with_name("compatibility.md")
ROOT = PAGE.parent.parent
NOBODY = "-"
NAME_SERVER, BROKER, CLIENT = "name server", "broker", "client"


def _numbers(text: str) -> frozenset[int]:
    codes: set[int] = set()
    for word in text.split():
        first, _, last = word.partition("-")
        codes.update(range(int(first), int(last or first) + 1))
    return frozenset(codes)


_NAME_SERVER_4 = _numbers("100-106 205 206 216 219 224 304 311-313 318 319 322 327")
_BROKER_BOTH = _numbers(
    "10-12 14 15 17 21 25 26 28-38 41-43 45 46 200-204 207 208 215 222 223 300 303 305-310 "
    "314-317 320 321 323-325 328 329"
)
_CLIENT = _numbers("39 40 220 221 307 309 326")
ORIGINAL: dict[str, dict[str, frozenset[int]]] = {
    "4.9.7": {
        NAME_SERVER: _NAME_SERVER_4,
        BROKER: _BROKER_BOTH | _numbers("50-54"),
        CLIENT: _CLIENT,
    },
    "5.4.0": {
        NAME_SERVER: _NAME_SERVER_4 | _numbers("217 901 904"),
        BROKER: _BROKER_BOTH
        | _numbers(
            "18 60 61 225 343 345 351-355 361 370 400-402 513 905-908 1007 1008 2001-2004 "
            "3001-3010 5001 200050-200056 200151"
        ),
        CLIENT: _CLIENT,
        "controller": _numbers("1001-1006 1009-1018"),
        "container": _numbers("902 903"),
    },
}
"""Who serves which codes in the original: registerProcessor, the processors' switches."""

RECEIVERS = {
    39: "the broker asks producers",
    40: "the broker tells consumers",
    220: "the broker tells consumers",
    221: "the broker asks consumers",
    326: "the broker tells who asked",
    905: "the name server tells brokers",
}
"""Codes that the other side serves; here they are "yes" when our servers send them."""

PARTLY: dict[int, str] = {
    12: "not `lastKey`, which pages through an index in RocksDB",
}
"""Codes that are served with something missing, and what."""

_MISSING_BY_FAMILY: tuple[tuple[ModuleType, str], ...] = (
    (protocol.auth, "ACL"),
    (protocol.ha, "replication"),
)
_MISSING: dict[int, str] = {
    **dict.fromkeys((354, 355), "RocksDB"),
    **dict.fromkeys((2001, 2002, 2003, 2004), "cold data"),
    **dict.fromkeys((52, 54), "ACL"),
    **dict.fromkeys((513,), "static topics"),
    **dict.fromkeys((902, 903), "broker container"),
    **dict.fromkeys(_numbers("1001-1006 1009-1018"), "controller"),
}


def served() -> dict[int, str]:
    """Codes to who serves them here."""
    with tempfile.TemporaryDirectory() as folder:
        settings = BrokerConfig(), StoreConfig(store_path_root_dir=folder)
        parts = Parts(configuration=Configuration(settings, {}), clock=lambda: 0)
        name_server = NameServer(NamesrvConfig(kv_config_path=f"{folder}/kv.json"))
        found = dict.fromkeys(Registry(*all_processors(parts)).bindings, BROKER)
        found |= dict.fromkeys(name_server.registry().bindings, NAME_SERVER)
    return found


def sent() -> set[str]:
    """Names of calls that the servers' sources name, served or sent."""
    sources = [p for part in ("broker", "namesrv") for p in (ROOT / part).rglob("*.py")]
    return {
        word for path in sources for word in re.findall(r"\b[A-Z_]{6,}\b", path.read_text("utf-8"))
    }


def _families() -> dict[int, ModuleType]:
    modules = [value for value in vars(protocol).values() if isinstance(value, ModuleType)]
    return {
        value.code: module
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Call)
    }


def in_original(code: int, version: str) -> str:
    """Who serves a code in a version of the original."""
    names = [name for name, codes in ORIGINAL[version].items() if code in codes]
    return ", ".join(names) or NOBODY


class Status(NamedTuple):
    """Whether a code is served here: "yes", "partly", "no" or "-"; and what is missing."""

    served: str
    remark: str


def _status(code: int, ours: set[int], families: dict[int, ModuleType]) -> Status:
    if code in RECEIVERS and CALLS[code].name in sent():
        return Status("yes", RECEIVERS[code])
    if code in ours:
        return Status("partly", PARTLY[code]) if code in PARTLY else Status("yes", "")
    if all(in_original(code, version) == NOBODY for version in ORIGINAL):
        return Status(NOBODY, "")
    for module, missing in _MISSING_BY_FAMILY:
        if families[code] is module:
            return Status("no", _MISSING.get(code, missing))
    return Status("no", _MISSING.get(code, ""))


def statuses() -> dict[int, Status]:
    """What is served of all codes that are declared."""
    ours, families = set(served()), _families()
    return {code: _status(code, ours, families) for code in sorted(CALLS)}


def summary() -> Iterator[str]:
    """How many codes are served, and a table of those that are not."""
    found = statuses()
    counted = Counter(status.served for status in found.values())
    yield (
        f"Of {len(CALLS)} declared codes, {counted['yes']} are served, {counted['partly']} in part "
        f"and {counted['no']} not. The\nother {counted[NOBODY]} are declared in the original, but "
        f"not served by it either."
    )
    yield ""
    yield "| not served | codes |"
    yield "|---|---|"
    missing: dict[str, list[str]] = {}
    for code, status in found.items():
        if status.served == "partly":
            missing[f"{CALLS[code].name}: {status.remark}"] = [str(code)]
        elif status.served == "no":
            missing.setdefault(status.remark, []).append(str(code))
    for what, codes in missing.items():
        yield f"| {what} | {', '.join(codes)} |"


def pages() -> dict[Path, str]:
    """Each page's path and what it has to be."""
    return {PAGE: replaced(PAGE.read_text("utf-8"), "request codes", summary())}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
