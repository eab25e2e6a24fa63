# SPDX-License-Identifier: Apache-2.0
"""Pages of long lists: topics and groups are sent a few thousand at a time (5.3 and later).

Counterpart of TopicConfigManager.subTopicConfigTable and SubscriptionGroupManager.subGroupTable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from txrocketmq.remoting.protocol.body.route import DataVersion

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page:
    """What a caller asks for: `limit` entries from number `start` on, of a version that it has.

    A caller that states none of these is an old one, and wants everything.
    """

    start: int | None
    limit: int | None
    data_version: str | None

    @property
    def is_everything(self) -> bool:
        return self.start is None and self.limit is None and self.data_version is None

    def of(self, table: Mapping[str, T], current: DataVersion, largest: int) -> dict[str, T]:
        """Returns the entries by name, from the first one if the table has changed meanwhile.

        `largest` is the most that is returned at once. Raises HeaderError when the version is no
        DataVersion.
        """
        if self.is_everything:
            return dict(table)
        start = max(self.start or 0, 0)
        if not self.data_version or DataVersion.decode(self.data_version.encode()) != current:
            start = 0
        size = max(min(largest, largest if self.limit is None else self.limit), 0)
        return {name: table[name] for name in sorted(table)[start : start + size]}
