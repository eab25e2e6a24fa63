# SPDX-License-Identifier: Apache-2.0
"""The key-values of the name server by namespace, and their file.

The file is kvConfig.json, {"configTable": {namespace: {key: value}}}, written at every change
before the change counts; the one before stays as .bak. Counterpart of KVConfigManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from txrocketmq.remoting.host.life import Life, Opening
from txrocketmq.remoting.process.kept_json import read_kept
from txrocketmq.remoting.process.replaced_file import write_replacing
from txrocketmq.remoting.serialize.json import encode_body

ORDER_TOPIC_CONFIG = "ORDER_TOPIC_CONFIG"
"""The namespace of topics whose queues are in a fixed order: topic to "broker:queues;..."."""

MAX_BYTES: Final = 2 * 1024 * 1024
"""How long the file may become. It is encoded and written while everybody waits."""

_ADVICE = (
    "Repair the file or restore a copy. Without it and its .bak, the key-values are lost, which"
    " include the order of topics' queues"
)


class KvConfigError(ValueError):
    """A file cannot be read or written; the text says which one and why."""


class KvConfig:
    """Values by namespace and key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._table: dict[str, dict[str, str]] = {}

    def load(self) -> str:
        """Loads the file, or its .bak if the file is missing, empty or broken.

        Returns what was wrong, as a text, or an empty one. Raises KvConfigError when neither can be
        read although one exists.
        """
        try:
            path, content, warning = read_kept(self.path)
        except ValueError as error:
            raise KvConfigError(f"{error}. {_ADVICE}") from None
        if content is not None:
            try:
                self._table = {
                    str(namespace): {str(key): str(value) for key, value in values.items()}
                    for namespace, values in content["configTable"].items()
                }
            except (KeyError, TypeError, AttributeError):
                raise KvConfigError(
                    f"{path} is not a kvConfig.json: it has no table configTable. {_ADVICE}"
                ) from None
        return warning

    def life(self) -> Life:
        """The file is read at the start, and written whenever something changes."""
        return Life("key-values", files=(self.path.name,), opens=self._opened)

    def _opened(self, _: Opening) -> list[str]:
        warning = self.load()
        return [f"key-values: {warning}"] if warning else []

    def get(self, namespace: str, key: str) -> str | None:
        """Returns a value; None if there is none."""
        return self._table.get(namespace, {}).get(key)

    def namespace(self, namespace: str) -> Mapping[str, str] | None:
        """Returns all values of a namespace; None when it is unknown."""
        return self._table.get(namespace)

    def put(self, namespace: str, key: str, value: str) -> None:
        """Sets a value and writes the file. Raises KvConfigError; then nothing has changed."""
        self._replace(namespace, {**self._table.get(namespace, {}), key: value})

    def delete(self, namespace: str, key: str) -> None:
        """Removes a value, if it exists, and writes the file.

        Raises KvConfigError; then nothing has changed.
        """
        values = self._table.get(namespace, {})
        if key in values:
            self._replace(namespace, {k: v for k, v in values.items() if k != key})

    def _replace(self, namespace: str, values: dict[str, str]) -> None:
        table = {**self._table, namespace: values}
        text = encode_body({"configTable": table})
        if len(text) > MAX_BYTES and len(values) >= len(self._table.get(namespace, ())):
            raise KvConfigError(
                f"{self.path.name} would have {len(text)} bytes, and has at most {MAX_BYTES}:"
                " delete key-values that nobody needs"
            )
        try:
            write_replacing(self.path, text)
        except OSError as error:
            raise KvConfigError(f"cannot write {self.path}: {error.strerror}") from None
        self._table = table
