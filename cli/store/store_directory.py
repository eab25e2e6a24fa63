# SPDX-License-Identifier: Apache-2.0
"""The directory that is given to `txrocketmq store`, and how its store can be opened."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final

from txrocketmq.broker.store.disk.files import OsFiles
from txrocketmq.broker.store.disk.shape import config_of
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.tables.attributes import has_batch_queues
from txrocketmq.remoting.process.kept_json import read_kept
from txrocketmq.remoting.settings.config_file import load, read_file

PROG: Final = "txrocketmq store"
DONE: Final = 0
FAILED: Final = 1


class NoStore(Exception):
    """The error of a directory that holds no store; its text is a sentence for a person."""


def config_from(store: Path, file: str | None) -> StoreConfig:
    """Returns the settings of a store, from a broker's file or inferred. Raises NoStore."""
    root = str(store)
    if not store.is_dir():
        raise NoStore(f"there is no directory {root}")
    if file is not None:
        config, _ = load(StoreConfig, read_file(file))
        return dataclasses.replace(config, store_path_root_dir=root)
    if not (store / "commitlog").is_dir() and not (store / "consumequeue").is_dir():
        raise NoStore(
            f"{root} is not a store: it has neither commitlog nor consumequeue; name the directory"
            " that the broker has as storePathRootDir"
        )
    return config_of(OsFiles(), root)


def agrees(command: str, question: str) -> bool:
    """Asks a person at a terminal; without a terminal nobody agrees."""
    if not sys.stdin.isatty():
        print(f"{PROG} {command}: confirmation needs a terminal: give --yes", file=sys.stderr)
        return False
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def known_topics(store: Path) -> Collection[str] | None:
    """Returns the topics of topics.json, for which queues may be rebuilt; None without any."""
    return set(_topics(store)) or None


def kinds_of_queues(store: Path) -> Callable[[str], bool | None]:
    """Returns a function that says whether a topic has queues of batches, as topics.json has it.

    The function returns None for topics that are not in that file.
    """
    table = _topics(store)

    def kind_of(topic: str) -> bool | None:
        value = table.get(topic)
        attributes = value.get("attributes") if isinstance(value, dict) else None
        return has_batch_queues(attributes or {}) if topic in table else None

    return kind_of


def _topics(store: Path) -> dict[str, Any]:
    try:
        content = read_kept(store / "config" / "topics.json").content
    except ValueError:
        return {}
    table = content.get("topicConfigTable") if isinstance(content, dict) else None
    return table if isinstance(table, dict) else {}
