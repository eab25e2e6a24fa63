# SPDX-License-Identifier: Apache-2.0
"""Topics as brokers configure them, and the version of such a table.

Java: common.TopicConfig, remoting.protocol.DataVersion.
"""

from __future__ import annotations

from collections.abc import Mapping

from txrocketmq.remoting.protocol.body.base import Body, body, member
from txrocketmq.remoting.serialize.json import decode_body, encode_body

FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")
_WORDS = 5


@body("org.apache.rocketmq.remoting.protocol.DataVersion")
class DataVersion(Body):
    """How often a table has changed, and when last (ms); equal only when all three are."""

    counter: int = 0
    state_version: int = 0
    timestamp: int = 0

    def next(self, now_ms: int) -> DataVersion:
        """The version after one more change."""
        return DataVersion(
            counter=self.counter + 1, state_version=self.state_version, timestamp=now_ms
        )


@body("org.apache.rocketmq.common.TopicConfig")
class TopicConfig(Body):
    """A topic of a broker; `perm` is PermName, `topic_sys_flag` TopicSysFlag."""

    topic_name: str = ""
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = 6
    topic_filter_type: str = member(names=FILTER_TYPES, default="SINGLE_TAG")
    topic_sys_flag: int = 0
    order: bool = False
    attributes: Mapping[str, str] = member(default_factory=dict)

    def to_text(self) -> str:
        """One line of a compressed registration (TopicConfig.encode)."""
        text = (
            f"{self.topic_name} {self.read_queue_nums} {self.write_queue_nums} {self.perm}"
            f" {self.topic_filter_type}"
        )
        return f"{text} {encode_body(dict(self.attributes)).decode()}" if self.attributes else text

    @classmethod
    def from_text(cls, text: str) -> TopicConfig:
        """Of such a line; ValueError when it is none."""
        words = text.split(" ", _WORDS)
        if len(words) < _WORDS:
            raise ValueError(f"no topic configuration: {text[:80]!r}")
        attributes = decode_body(words[_WORDS].encode()) if len(words) > _WORDS else {}
        return cls(
            topic_name=words[0],
            read_queue_nums=int(words[1]),
            write_queue_nums=int(words[2]),
            perm=int(words[3]),
            topic_filter_type=words[4] if words[4] in FILTER_TYPES else "SINGLE_TAG",
            attributes=attributes if isinstance(attributes, dict) else {},
        )
