# SPDX-License-Identifier: Apache-2.0
"""Key-values (100, 101, 102, 219) and the name server's settings (318, 319).

A missing value or namespace is QUERY_NOT_FOUND (22), a setting of the black list NO_PERMISSION (16).
Changed settings are written to configStorePath. Java: DefaultRequestProcessor, Configuration.
"""

from __future__ import annotations

from pathlib import Path

from txrocketmq.namesrv.kv_config import KvConfig
from txrocketmq.namesrv.live_config import LiveConfig
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.config_file import (
    ConfigError,
    as_properties,
    read_properties,
    updated,
    write_properties,
)
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import admin, route
from txrocketmq.remoting.protocol.route import (
    DeleteKVConfigRequestHeader,
    GetKVConfigRequestHeader,
    GetKVConfigResponseHeader,
    GetKVListByNamespaceRequestHeader,
    PutKVConfigRequestHeader,
)
from txrocketmq.remoting.serialize.json import encode_body


class ConfigProcessor:
    """What administrators set."""

    def __init__(self, live: LiveConfig, kv: KvConfig) -> None:
        self._live = live
        self._kv = kv

    @serves(route.PUT_KV_CONFIG)
    def put(self, request: Request[PutKVConfigRequestHeader]) -> Reply[NoHeader]:
        """Sets a value."""
        header = request.header
        self._kv.put(header.namespace, header.key, header.value)
        return Reply()

    @serves(route.GET_KV_CONFIG)
    def get(self, request: Request[GetKVConfigRequestHeader]) -> Reply[GetKVConfigResponseHeader]:
        """A value."""
        header = request.header
        value = self._kv.get(header.namespace, header.key)
        if value is None:
            raise ResponseError(
                ResponseCode.QUERY_NOT_FOUND,
                f"No config item, Namespace: {header.namespace} Key: {header.key}",
            )
        return Reply(GetKVConfigResponseHeader(value=value))

    @serves(route.DELETE_KV_CONFIG)
    def delete(self, request: Request[DeleteKVConfigRequestHeader]) -> Reply[NoHeader]:
        """Removes a value."""
        self._kv.delete(request.header.namespace, request.header.key)
        return Reply()

    @serves(route.GET_KVLIST_BY_NAMESPACE)
    def namespace(self, request: Request[GetKVListByNamespaceRequestHeader]) -> Reply[NoHeader]:
        """All values of a namespace."""
        table = self._kv.namespace(request.header.namespace)
        if table is None:
            raise ResponseError(
                ResponseCode.QUERY_NOT_FOUND,
                f"No config item, Namespace: {request.header.namespace}",
            )
        return Reply(body=encode_body({"table": dict(table)}))

    @serves(admin.GET_NAMESRV_CONFIG)
    def get_config(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """All settings as properties."""
        return Reply(body=write_properties(as_properties(self._live.config)).encode())

    @serves(admin.UPDATE_NAMESRV_CONFIG)
    def update_config(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Changes settings that may change while running; others are left as they are."""
        values = read_properties(request.body.decode(errors="replace"))
        refused = set(self._live.config.config_black_list.split(";")) & values.keys()
        if refused:
            raise ResponseError(ResponseCode.NO_PERMISSION, "Can not update config in black list.")
        try:
            self._live.config = updated(self._live.config, values)
        except ConfigError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        path = Path(self._live.config.config_store_path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(write_properties(as_properties(self._live.config)))
        return Reply()
