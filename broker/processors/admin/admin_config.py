# SPDX-License-Identifier: Apache-2.0
"""Settings and cleaning: UPDATE_BROKER_CONFIG, GET_BROKER_CONFIG; 306, 316, 329.

A setting of the black list is NO_PERMISSION (16) and an invalid value SYSTEM_ERROR (1); then
nothing is changed at all. What the original reads on each use may change while the broker runs, and
counts at once. What needs a restart is refused with SYSTEM_ERROR and a sentence; the original
answers success. A key of the original that has no effect here is accepted, as at a start, and
unknown keys are ignored; the remark says so of both. Changes are written to the file given with -c,
the rest of which stays as it is; a file that cannot be written is SYSTEM_ERROR, too. Java:
AdminBrokerProcessor, common.Configuration.
"""

from __future__ import annotations

from pathlib import Path

from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work.walks import Walk, Walks
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.topics import LMQ_PREFIX
from txrocketmq.remoting.process.replaced_file import write_replacing
from txrocketmq.remoting.protocol.body.route import DataVersion
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.operations.admin import GetBrokerConfigResponseHeader
from txrocketmq.remoting.settings.config_file import (
    ConfigError,
    Configuration,
    load_all,
    read_properties,
    read_text,
)
from txrocketmq.remoting.settings.edited_properties import edited

BLACK_LIST = frozenset({"brokerConfigPath", "rocketmqHome", "configBlackList"})
"""Keys that cannot be changed, whatever configBlackList says."""

MOST_BYTES = 20 * 1024
"""How long the text of changed settings may be; that of all settings has 15 KB."""


class AdminConfigProcessor:
    """Shows and changes settings, and deletes what is no longer needed."""

    def __init__(
        self,
        config: BrokerConfig,
        configuration: Configuration,
        topics: Topics,
        store: MessageStore,
        walks: Walks,
        now_ms: int,
    ) -> None:
        self._config = config
        self._configuration = configuration
        self._topics = topics
        self._store = store
        self._walks = walks
        self._data_version = DataVersion(timestamp=now_ms)

    # --------------------------------------------------------------- settings

    @serves(admin.GET_BROKER_CONFIG)
    def get_config(self, request: Request[NoHeader]) -> Reply[GetBrokerConfigResponseHeader]:
        """Returns all settings as properties."""
        version = self._data_version.encode().decode()
        return Reply(
            GetBrokerConfigResponseHeader(version=version), self._configuration.text.encode()
        )

    @serves(admin.UPDATE_BROKER_CONFIG)
    def update_config(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Changes all of the given settings, or none."""
        if len(request.body) > MOST_BYTES:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"the settings have {len(request.body)} bytes: change at most {MOST_BYTES} at once",
            )
        try:
            values = read_properties(request.body.decode(errors="replace"))
            refused = BLACK_LIST.union(self._config.config_black_list.split(";"))
            if not refused.isdisjoint(values):
                raise ResponseError(
                    ResponseCode.NO_PERMISSION, "Can not update config in black list."
                )
            unknown = self._configuration.unknown(values)
            for each in unknown:
                del values[each.key]
            load_all((BrokerConfig, StoreConfig), {**self._configuration.properties, **values})
            taken = self._configuration.update(values)
        except ConfigError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        if taken:
            self._data_version = self._data_version.next(request.now_ms)
        self._write({key: values[key] for key in taken})
        said = [
            *map(str, unknown),
            *(f"{key} has no effect here" for key in self._configuration.without_effect(taken)),
        ]
        return Reply(remark="; ".join(said) or None)

    def _write(self, changes: dict[str, str]) -> None:
        """Writes changes into the file given with -c; the former file is kept as .bak."""
        path = self._config.broker_config_path
        if not path or not changes:
            return
        try:
            write_replacing(Path(path).resolve(), edited(read_text(path), changes).encode())
        except (ConfigError, OSError) as error:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"changed until the next start, but not in {path}: {error}",
            ) from None

    # --------------------------------------------------------------- cleaning

    @serves(admin.CLEAN_EXPIRED_CONSUMEQUEUE)
    def clean_queues(self, request: Request[NoHeader]) -> Reply[NoHeader] | PendingReply:
        """Deletes queues whose messages have all left the log, except those of system topics."""
        return self._walks.answer(self._clean_queues())

    def _clean_queues(self) -> Walk:
        for name in self._store.topics():
            if not self._topics.is_system(name):
                self._store.clean_expired_queues(name)
            yield
        return Reply()

    @serves(admin.CLEAN_UNUSED_TOPIC)
    def clean_topics(self, request: Request[NoHeader]) -> Reply[NoHeader] | PendingReply:
        """Deletes the queues of topics that no longer have a configuration."""
        return self._walks.answer(self._clean_topics())

    def _clean_topics(self) -> Walk:
        for name in self._store.topics():
            if not (
                self._topics.get(name) is not None
                or self._topics.is_system(name)
                or name.startswith(LMQ_PREFIX)
            ):
                self._store.delete_topic(name)
            yield
        return Reply()

    @serves(admin.DELETE_EXPIRED_COMMITLOG)
    def clean_log(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Deletes log files that are old enough, at whatever hour."""
        self._store.delete_expired(request.now_ms, request.steady_ms)
        return Reply()
