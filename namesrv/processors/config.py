# SPDX-License-Identifier: Apache-2.0
"""Key-values (100, 101, 102, 219) and the name server's settings (318, 319).

A missing value or namespace is QUERY_NOT_FOUND (22), a setting of the black list NO_PERMISSION
(16). An invalid value, a setting that cannot change while the server runs and a file that cannot be
written are SYSTEM_ERROR (1); the original answers success to them. A key of the original that has
no effect here is accepted, as at a start, and unknown keys are ignored; the remark says so of both.
Changed settings are written to configStorePath, the rest of which stays as it is. Java:
DefaultRequestProcessor, Configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.kv_config import KvConfig, KvConfigError
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.process.replaced_file import write_replacing
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol.body.route import KVTable
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.route import (
    DeleteKVConfigRequestHeader,
    GetKVConfigRequestHeader,
    GetKVConfigResponseHeader,
    GetKVListByNamespaceRequestHeader,
    PutKVConfigRequestHeader,
)
from txrocketmq.remoting.settings.config_file import (
    ConfigError,
    Configuration,
    read_properties,
    read_text,
)
from txrocketmq.remoting.settings.edited_properties import edited

ALWAYS_REFUSED = frozenset({"configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome"})


class ConfigProcessor:
    """Serves what administrators set; `note` is called with a line for each change."""

    def __init__(
        self, kv: KvConfig, configuration: Configuration, note: Callable[[str], None]
    ) -> None:
        self._kv = kv
        self._configuration = configuration
        self._note = note

    @serves(route.PUT_KV_CONFIG)
    def put(self, request: Request[PutKVConfigRequestHeader]) -> Reply[NoHeader]:
        """Sets a value."""
        header = request.header
        try:
            self._kv.put(header.namespace, header.key, header.value)
        except KvConfigError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        self._note(f"{request.peer.remote_address} set {header.key} of {header.namespace}")
        return Reply()

    @serves(route.GET_KV_CONFIG)
    def get(self, request: Request[GetKVConfigRequestHeader]) -> Reply[GetKVConfigResponseHeader]:
        """Returns a value."""
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
        header = request.header
        try:
            self._kv.delete(header.namespace, header.key)
        except KvConfigError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        self._note(f"{request.peer.remote_address} deleted {header.key} of {header.namespace}")
        return Reply()

    @serves(route.GET_KVLIST_BY_NAMESPACE)
    def namespace(self, request: Request[GetKVListByNamespaceRequestHeader]) -> Reply[NoHeader]:
        """Returns all values of a namespace."""
        table = self._kv.namespace(request.header.namespace)
        if table is None:
            raise ResponseError(
                ResponseCode.QUERY_NOT_FOUND,
                f"No config item, Namespace: {request.header.namespace}",
            )
        return Reply(body=KVTable(table=table).encode())

    @serves(admin.GET_NAMESRV_CONFIG)
    def get_config(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Returns all settings as properties."""
        return Reply(body=self._configuration.text.encode())

    @serves(admin.UPDATE_NAMESRV_CONFIG)
    def update_config(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Changes all of the given settings, or none if one cannot change while the server runs."""
        config = self._configuration.get(NamesrvConfig)
        refused = ALWAYS_REFUSED | set(config.config_black_list.split(";"))
        try:
            values = read_properties(request.body.decode("utf-8", "replace"))
            if refused & values.keys():
                raise ResponseError(
                    ResponseCode.NO_PERMISSION, "Can not update config in black list."
                )
            unknown = self._configuration.unknown(values)
            for each in unknown:
                del values[each.key]
            taken = self._configuration.update(values)
            self._write(Path(config.config_store_path), {key: values[key] for key in taken})
        except ConfigError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        except OSError as error:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"changed until the next start: cannot write {config.config_store_path}:"
                f" {error.strerror}",
            ) from None
        idle = self._configuration.without_effect(taken)
        changed = [f"{key} (without effect here)" if key in idle else key for key in taken]
        self._note(f"{request.peer.remote_address} changed {', '.join(changed) or 'no setting'}")
        said = [*map(str, unknown), *(f"{key} has no effect here" for key in idle)]
        return Reply(remark="; ".join(said) or None)

    @staticmethod
    def _write(path: Path, changes: dict[str, str]) -> None:
        if changes:
            text = read_text(path) if path.exists() else ""
            write_replacing(path.resolve(), edited(text, changes).encode())
