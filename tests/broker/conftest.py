# SPDX-License-Identifier: Apache-2.0
"""The parts of a broker on a small store, joined as its service does: no clock, no network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import NOW_MS, FakePeer
from txrocketmq.broker.clients import Client, Consumers, Producers
from txrocketmq.broker.config import BrokerConfig
from txrocketmq.broker.inner_message import InnerMessage
from txrocketmq.broker.json_file import JsonFile
from txrocketmq.broker.long_polling import LongPolling
from txrocketmq.broker.offset import ConsumerOffsets
from txrocketmq.broker.queue_locks import QueueLocks
from txrocketmq.broker.schedule import DelayLevels, Schedule
from txrocketmq.broker.stats import BrokerStats
from txrocketmq.broker.store.config import StoreConfig
from txrocketmq.broker.store.message_store import Appended, MessageStore, PutStatus
from txrocketmq.broker.subscription import SubscriptionGroups
from txrocketmq.broker.topic import Topics
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol.body.route import TopicConfig

STORE_HOST = bytes([127, 0, 0, 1]) + (10911).to_bytes(4, "big")


@dataclass
class Parts:
    """See the module; `now_ms` is what time it is for those that ask."""

    folder: Path
    config: BrokerConfig = field(default_factory=BrokerConfig)
    now_ms: int = NOW_MS
    store_settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        folder = self.folder
        self.store = MessageStore(
            StoreConfig(
                store_path_root_dir=str(folder / "store"),
                mapped_file_size_commit_log=65_536,
                mapped_file_size_consume_queue=2_000,
                max_hash_slot_num=100,
                max_index_num=400,
                **self.store_settings,
            )
        )
        self.store.load(self.now_ms)
        self.topics = Topics(self.config, JsonFile(folder / "topics.json"), self.clock)
        self.groups = SubscriptionGroups(self.config, JsonFile(folder / "groups.json"), self.clock)
        self.offsets = ConsumerOffsets(JsonFile(folder / "offsets.json"), self.clock)
        self.delay_levels = DelayLevels()
        self.schedule = Schedule(
            self.delay_levels, self.store, JsonFile(folder / "delay.json"), self.now_ms
        )
        self.consumers = Consumers()
        self.producers = Producers()
        self.locks = QueueLocks()
        self.stats = BrokerStats("DefaultCluster", self.topics.is_system, self.now_ms)
        self.polling = LongPolling(self.store.max_offset, lambda *_: True, lambda: None)

    def clock(self) -> int:
        return self.now_ms

    def topic(self, name: str = "T", queues: int = 4) -> TopicConfig:
        """Makes a topic."""
        self.topics.update(
            TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues)
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
        """Lets a consumer join a group."""
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


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    """A broker's parts, its store open."""
    made = Parts(tmp_path)
    yield made
    made.store.stop(made.now_ms)
