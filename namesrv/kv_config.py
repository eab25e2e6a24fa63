# SPDX-License-Identifier: Apache-2.0
"""The name server's key-values by namespace, and their file.

Counterpart of KVConfigManager. The file is kvConfig.json, {"configTable": {namespace: {key: value}}},
written at every change.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from txrocketmq.remoting.serialize.json import JsonError, decode_body, encode_pretty

ORDER_TOPIC_CONFIG = "ORDER_TOPIC_CONFIG"
"""Namespace of the topics whose queues keep their order: topic to "broker:queues;..."."""


class KvConfigError(ValueError):
    """A file that cannot be read; the text says which and why."""


class KvConfig:
    """Values by namespace and key."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._table: dict[str, dict[str, str]] = {}

    def load(self) -> None:
        """Takes what the file holds, if there is one. Raises KvConfigError."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise KvConfigError(f"cannot read {self._path}: {error.strerror}") from None
        if not data.strip():
            return
        try:
            table = decode_body(data)["configTable"]
            self._table = {
                str(namespace): {str(key): str(value) for key, value in values.items()}
                for namespace, values in table.items()
            }
        except (JsonError, KeyError, TypeError, AttributeError) as error:
            raise KvConfigError(f"{self._path} is no kvConfig.json: {error}") from None

    def get(self, namespace: str, key: str) -> str | None:
        """A value, None without."""
        return self._table.get(namespace, {}).get(key)

    def namespace(self, namespace: str) -> Mapping[str, str] | None:
        """All values of a namespace, None when it is unknown."""
        return self._table.get(namespace)

    def put(self, namespace: str, key: str, value: str) -> None:
        """Sets a value and writes the file. Raises OSError."""
        self._table.setdefault(namespace, {})[key] = value
        self._save()

    def delete(self, namespace: str, key: str) -> None:
        """Removes a value, if it is there, and writes the file. Raises OSError."""
        if self._table.get(namespace, {}).pop(key, None) is not None:
            self._save()

    def _save(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_name(self._path.name + ".tmp")
        with temporary.open("wb") as file:
            file.write(encode_pretty({"configTable": self._table}))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
