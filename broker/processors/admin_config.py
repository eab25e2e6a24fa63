# SPDX-License-Identifier: Apache-2.0
"""Settings and cleaning: UPDATE_BROKER_CONFIG, GET_BROKER_CONFIG; 306, 316, 329.

A setting of the black list is NO_PERMISSION (16) and a value that cannot be SYSTEM_ERROR (1); then
nothing is changed at all. Unknown keys are passed over, as by the original. What may change while
the broker runs counts at once, all else after a restart; all of it is written to the file given
with -c, and a file that cannot be written is SYSTEM_ERROR, too. Java: AdminBrokerProcessor,
common.Configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from txrocketmq.broker.config import BrokerConfig
from txrocketmq.broker.store.config import StoreConfig
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.topic import Topics
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.config_file import (
    ConfigError,
    Configuration,
    load_all,
    read_file,
    read_properties,
    write_properties,
    write_replacing,
)
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import admin
from txrocketmq.remoting.protocol.admin import GetBrokerConfigResponseHeader
from txrocketmq.remoting.protocol.body.route import DataVersion

BLACK_LIST = frozenset({"brokerConfigPath", "rocketmqHome", "configBlackList"})
"""Keys that nobody may change, whatever configBlackList says."""
LIGHT_QUEUE_PREFIX = "%LMQ%"


class AdminConfigProcessor:
    """Changes settings; `config` is the one that all parts hold, and is changed in place."""

    def __init__(
        self,
        config: BrokerConfig,
        configuration: Configuration,
        topics: Topics,
        store: MessageStore,
        register: Callable[[], None],
        now_ms: int,
    ) -> None:
        self._config = config
        self._configuration = configuration
        self._topics = topics
        self._store = store
        self._register = register
        self._data_version = DataVersion(timestamp=now_ms)

    # --------------------------------------------------------------- settings

    @serves(admin.GET_BROKER_CONFIG)
    def get_config(self, request: Request[NoHeader]) -> Reply[GetBrokerConfigResponseHeader]:
        """All settings as properties."""
        values = self._configuration.properties
        text = write_properties({key: values[key] for key in sorted(values)})
        version = self._data_version.encode().decode()
        return Reply(GetBrokerConfigResponseHeader(version=version), text.encode())

    @serves(admin.UPDATE_BROKER_CONFIG)
    def update_config(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Changes settings, all or none."""
        try:
            values = read_properties(request.body.decode(errors="replace"))
            refused = BLACK_LIST.union(self._config.config_black_list.split(";"))
            if not refused.isdisjoint(values):
                raise ResponseError(
                    ResponseCode.NO_PERMISSION, "Can not update config in black list."
                )
            load_all((BrokerConfig, StoreConfig), {**self._configuration.properties, **values})
            taken = self._configuration.update(values)
        except ConfigError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        self._config.become(self._configuration.get(BrokerConfig))
        self._store.configure(self._configuration.get(StoreConfig))
        if taken:
            self._data_version = self._data_version.next(request.now_ms)
        if "brokerPermission" in taken:
            self._topics.data_version = self._topics.data_version.next(request.now_ms)
        if not {"brokerPermission", "namesrvAddr"}.isdisjoint(taken):
            self._register()
        self._write({key: values[key] for key in taken})
        return Reply()

    def _write(self, changes: dict[str, str]) -> None:
        """Into the file given with -c, the one before kept as .bak."""
        path = self._config.broker_config_path
        if not path or not changes:
            return
        try:
            text = write_properties({**read_file(path), **changes})
            write_replacing(Path(path), text.encode())
        except (ConfigError, OSError) as error:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"changed until the next start, but not in {path}: {error}",
            ) from None

    # --------------------------------------------------------------- cleaning

    @serves(admin.CLEAN_EXPIRED_CONSUMEQUEUE)
    def clean_queues(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Deletes queues whose messages the log has lost, but for those of system topics."""
        self._store.clean_expired_queues(
            {name for name in self._store.topics() if self._topics.is_system(name)}
        )
        return Reply()

    @serves(admin.CLEAN_UNUSED_TOPIC)
    def clean_topics(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Deletes the queues of topics that are configured no more."""
        self._store.clean_unused(
            {
                name
                for name in self._store.topics()
                if self._topics.get(name) is not None
                or self._topics.is_system(name)
                or name.startswith(LIGHT_QUEUE_PREFIX)
            }
        )
        return Reply()

    @serves(admin.DELETE_EXPIRED_COMMITLOG)
    def clean_log(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Deletes log files that are old enough, at whatever hour."""
        self._store.delete_expired(request.now_ms)
        return Reply()
