# SPDX-License-Identifier: Apache-2.0
"""The parts of a broker on a small store, joined as in its service, without clock or network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.task import Clock as TestClock

from tests.fakes import NOW_MS, FakePeer
from txrocketmq.broker import parts
from txrocketmq.broker.all_parts import all_parts
from txrocketmq.broker.controller.controlled import Controlled
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.journal import Journal
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.message_store import Appended, PutStatus
from txrocketmq.broker.tables.clients import Client
from txrocketmq.broker.work.in_thread import at_once
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.life import Life
from txrocketmq.remoting.host.lives import Lives
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.settings.config_file import Configuration, as_properties

STORE_HOST = bytes([127, 0, 0, 1]) + (10911).to_bytes(4, "big")


class Parts(parts.Parts):
    """The parts of a broker; `now_ms` is the time that they see.

    `config` is the BrokerConfig, and `store_settings` are fields of its StoreConfig.
    """

    def __init__(
        self,
        folder: Path,
        config: BrokerConfig | None = None,
        now_ms: int = NOW_MS,
        store_settings: Mapping[str, Any] | None = None,
        controlled: Controlled | None = None,
    ) -> None:
        self.folder = folder
        self.config_folder = folder / "store" / "config"
        self.config_folder.mkdir(parents=True, exist_ok=True)
        self.now_ms = now_ms
        store_config = StoreConfig(
            store_path_root_dir=str(folder / "store"),
            **{
                "mapped_file_size_commit_log": 65_536,
                "mapped_file_size_consume_queue": 2_000,
                "max_hash_slot_num": 100,
                "max_index_num": 400,
                **(store_settings or {}),
            },
        )
        super().__init__(
            configuration=Configuration((config or BrokerConfig(), store_config), {}),
            clock=lambda: self.now_ms,
            known_as=parts.KnownAs("127.0.0.1:10911", STORE_HOST),
            controlled=controlled,
        )
        self.store.load(now_ms, kind_of=self.kind_of)

    def lives(self) -> list[Life]:
        """The lives of all parts."""
        return all_parts(self, Journal(self))

    def load(self) -> None:
        """Loads all tables."""
        self.walked().load()

    def walked(self) -> Lives:
        """The same lives as a service walks them."""
        clock = Clock(TestClock())
        return Lives(self.lives(), clock, went=lambda *_: None, in_thread=at_once)

    def kind_of(self, topic: str) -> bool | None:
        """Returns whether a topic has queues of batches."""
        return self.topics.has_batches(topic)

    def set(self, **settings: object) -> None:
        """Changes settings of the broker or its store, under the names of their fields."""
        configs: tuple[Any, Any] = self.config, self.store.config
        for config in configs:
            names = {field.name for field in fields(config)} & settings.keys()
            other = replace(config, **{name: settings[name] for name in names})
            changed = dict(as_properties(other).items() - as_properties(config).items())
            self.configuration.update(changed, at_start=True)

    def topic(self, name: str = "T", queues: int = 4, **attributes: str) -> TopicConfig:
        """Makes a topic; names of attributes have an underscore in place of the dot."""
        before = self.topics.get(name)
        known = {} if before is None else before.attributes or {}
        wanted = {each.replace("_", "."): value for each, value in attributes.items()}
        changes = {f"+{each}": wanted[each] for each in wanted if known.get(each) != wanted[each]}
        self.topics.update(
            TopicConfig(
                topic_name=name,
                read_queue_nums=queues,
                write_queue_nums=queues,
                attributes=changes,
            )
        )
        made = self.topics.get(name)
        assert made is not None
        return made

    def put(
        self,
        topic: str = "T",
        queue_id: int = 0,
        *,
        body: bytes = b"body",
        stored_ms: int | None = None,
        reconsume_times: int = 0,
        **properties: str,
    ) -> Appended:
        """Stores a message."""
        now_ms = self.now_ms if stored_ms is None else stored_ms
        message = InnerMessage(
            topic,
            queue_id,
            body,
            now_ms - 5,
            bytes([10, 0, 0, 7]) + (40_000).to_bytes(4, "big"),
            STORE_HOST,
            properties,
            reconsume_times=reconsume_times,
        )
        (appended,) = self.store.put([message.to_put()], now_ms)
        assert appended.status is PutStatus.PUT_OK
        return appended

    def consumer(
        self,
        group: str = "g",
        client_id: str = "c1",
        *topics: str,
        version: int = 407,
        model: str = "CLUSTERING",
    ) -> FakePeer:
        """Makes a consumer a member of a group."""
        peer = FakePeer(50_000 + sum(map(ord, client_id)))
        self.consumers.register(
            Client(peer, client_id, "JAVA", version, self.now_ms),
            group,
            "CONSUME_PASSIVELY",
            model,
            "CONSUME_FROM_LAST_OFFSET",
            [SubscriptionData(topic, sub_version=1) for topic in topics],
        )
        return peer


@pytest.fixture(name="parts")
def parts_(tmp_path: Path) -> Iterator[Parts]:
    """The parts of a broker whose store is open."""
    made = Parts(tmp_path)
    yield made
    made.store.stop(made.now_ms)
