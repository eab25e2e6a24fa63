# SPDX-License-Identifier: Apache-2.0
"""A store with messages in several queues and log files, from which tests remove something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.broker.store.opening.test_recover import LOG, Model, mixed, reopened
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreLoss
from txrocketmq.broker.store.message_store import MessageStore, PutMessage

NOW_MS = 1_700_000_000_000
QUEUES = "/store/consumequeue/"
WORD = "/store/accept_loss"
Config = Callable[..., StoreConfig]
Build = Callable[..., PutMessage]


class Filled:
    """A disk with a store of 100 messages in 6 queues and 6 log files, and the list of them."""

    def __init__(self, files: Any, config: Config, message: Build, *, closed: bool) -> None:
        self.model, self.config, self.files = Model(), config, files
        store, _ = reopened(files, config)
        for start in range(0, 100, 4):
            self.model.put(store, mixed(message, 4, start), NOW_MS + start)
        if closed:
            store.stop(NOW_MS + 100)
        else:
            store.tick(NOW_MS + 100)
            store.flush.flush_all()
        self.disk = files.after_kill()

    def logs(self) -> list[str]:
        return sorted(path for path in self.disk.maps if path.startswith(LOG))

    def remove(self, what: str) -> None:
        paths = [each for each in self.disk.maps if each == what or each.startswith(what + "/")]
        assert paths
        for path in paths:
            self.disk.remove(path)
        self.disk.directories = {
            each for each in self.disk.directories if not (each + "/").startswith(what + "/")
        }

    def check(self, **settings: Any) -> Any:
        """Checks that all is served, and that nothing is to repair after an orderly stop."""
        store, done = reopened(self.disk, self.config, **settings)
        self.model.check(store)
        store.stop(NOW_MS + 200)
        again, second = reopened(self.disk.after_kill(), self.config, **settings)
        self.model.check(again)
        assert second.warnings == []
        assert second.dispatched_messages == 0
        return done

    def refused(self) -> str:
        """Checks that the start is refused, twice, without changes; returns the error's text."""
        before = self.contents()
        for _ in range(2):
            with pytest.raises(StoreLoss) as caught:
                reopened(self.disk, self.config)
            assert caught.value.word == WORD
            assert self.contents() == before
            assert not self.disk.held
        return str(caught.value)

    def contents(self) -> dict[str, bytes]:
        disk = self.disk
        found = {path: disk.read(path) for path in [*disk.maps, *disk.small]}
        return {path: each for path, each in found.items() if "lock" not in path and any(each)}

    def accepted(self) -> tuple[MessageStore, Any]:
        self.disk.write(WORD, b"")
        store, done = reopened(self.disk, self.config)
        assert not self.disk.exists(WORD), "it counts once"
        return store, done
