# SPDX-License-Identifier: Apache-2.0
"""The file in which a broker keeps the id that a controller has given it.

It is a line `cluster#brokerName#id`. While the id is being applied for, a file beside it has the
same line with a code behind it, by which the controller knows that it is the same broker that asks
once more. A broker that loses the file gets another id, and counts as another replica.

Java: BrokerMetadata, TempBrokerMetadata.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from txrocketmq.remoting.process.replaced_file import write_replacing


class Applied(NamedTuple):
    """An id that is being applied for."""

    broker_id: int
    code: str


class IdentityFile:
    """The file of the broker with this name. `load` reads it."""

    def __init__(self, path: Path, cluster: str, name: str) -> None:
        self._path = path
        self._applied_path = path.with_name(f"{path.name}-temp")
        self._cluster = cluster
        self._name = name
        self.broker_id: int | None = None
        """The id that the controller has given; None before."""
        self.applied: Applied | None = None

    def load(self) -> None:
        """Reads both files; raises ValueError with advice, and OSError."""
        found = self._read(self._path, 0)
        if found is not None:
            self.broker_id = found.broker_id
        else:
            self.applied = self._read(self._applied_path, 1)

    def _read(self, path: Path, more: int) -> Applied | None:
        try:
            text = path.read_text("utf-8")
        except FileNotFoundError:
            return None
        parts = text.strip().split("#")
        if len(parts) != 3 + more or not parts[2].isdecimal():
            raise ValueError(
                f"{path} is no identity of a broker (cluster#brokerName#id): restore it, or remove"
                " it, and the controller gives this broker another id"
            )
        if (parts[0], parts[1]) != (self._cluster, self._name):
            raise ValueError(
                f"{path} belongs to the broker {parts[1]} of {parts[0]}, not to {self._name} of"
                f" {self._cluster}: is storePathRootDir that of another broker?"
            )
        return Applied(int(parts[2]), parts[3] if more else "")

    def apply(self, broker_id: int, code: str) -> None:
        """Notes that an id is being applied for; raises OSError."""
        self.applied = Applied(broker_id, code)
        self._write(self._applied_path, f"{broker_id}#{code}")

    def refused(self) -> None:
        """Notes that somebody else has the id; raises OSError."""
        self.applied = None
        self._applied_path.unlink(missing_ok=True)

    def granted(self) -> None:
        """Notes that the id is this broker's; raises OSError."""
        if self.applied is not None:
            self._write(self._path, f"{self.applied.broker_id}")
            self.broker_id = self.applied.broker_id
            self.refused()

    def _write(self, path: Path, rest: str) -> None:
        write_replacing(path, f"{self._cluster}#{self._name}#{rest}".encode())
