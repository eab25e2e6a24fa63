# SPDX-License-Identifier: Apache-2.0
"""Whether groups pull or pop topics, as administrators have set it: messageRequestMode.json.

Counterpart of MessageRequestModeManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work.config_table import ConfigTable, no_listeners
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.life import SECOND_MS, Beat, Life
from txrocketmq.remoting.protocol.body.pop import (
    MessageRequestModeSerializeWrapper,
    SetMessageRequestModeRequestBody,
)
from txrocketmq.remoting.serialize.json import encode_pretty

Modes = dict[str, dict[str, SetMessageRequestModeRequestBody]]


class MessageRequestModes(ConfigTable[Modes]):
    """Modes by topic and group."""

    def __init__(self, file: JsonFile) -> None:
        super().__init__(file)
        self._modes: Modes = {}

    def decode(self, content: Mapping[str, Any]) -> Modes:
        """Reads the modes by topic and group."""
        stored = MessageRequestModeSerializeWrapper.from_json(content)
        return {topic: dict(groups) for topic, groups in stored.message_request_mode_map.items()}

    def _hold(self, held: Modes) -> Steps[None]:
        self._modes = held
        return no_listeners()

    def get(self, topic: str, group: str) -> SetMessageRequestModeRequestBody | None:
        """Returns the mode that was set; None if none was."""
        return self._modes.get(topic, {}).get(group)

    def set(self, mode: SetMessageRequestModeRequestBody) -> None:
        """Sets a mode; `saving.answer` makes it durable."""
        self._modes.setdefault(mode.topic or "", {})[mode.consumer_group or ""] = mode
        self._file.is_stale = True
        self.saving.begin()

    def life(self) -> Life:
        """The modes are kept in messageRequestMode.json."""
        beat = Beat(SECOND_MS, self.saving.begin)
        return Life("message request modes", table=self, beats=(beat,))

    def _snapshot(self) -> Callable[[], bytes]:
        modes = {topic: dict(groups) for topic, groups in self._modes.items()}
        return lambda: encode_pretty(
            MessageRequestModeSerializeWrapper(message_request_mode_map=modes)
        )

    def entries(self) -> Iterator[tuple[str, Mapping[str, SetMessageRequestModeRequestBody]]]:
        """Iterates over topics and their modes by group. The table may change meanwhile."""
        for topic in list(self._modes):
            yield topic, self._modes[topic]
