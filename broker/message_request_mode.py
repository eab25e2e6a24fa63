# SPDX-License-Identifier: Apache-2.0
"""How groups are to consume topics, where an administrator has said so: messageRequestMode.json.

Counterpart of MessageRequestModeManager.
"""

from __future__ import annotations

from txrocketmq.broker.json_file import JsonFile
from txrocketmq.remoting.protocol.body.pop import (
    MessageRequestModeSerializeWrapper,
    SetMessageRequestModeRequestBody,
)


class MessageRequestModes:
    """Modes by topic and group."""

    def __init__(self, file: JsonFile) -> None:
        self._file = file
        self._modes: dict[str, dict[str, SetMessageRequestModeRequestBody]] = {}

    def load(self) -> None:
        """Takes what messageRequestMode.json holds; raises JsonFileError."""
        with self._file.content() as content:
            stored = MessageRequestModeSerializeWrapper.from_json(content)
            for topic, groups in stored.message_request_mode_map.items():
                self._modes[topic] = dict(groups)

    def get(self, topic: str, group: str) -> SetMessageRequestModeRequestBody | None:
        """What was set; None: nothing."""
        return self._modes.get(topic, {}).get(group)

    def set(self, mode: SetMessageRequestModeRequestBody) -> None:
        """Sets a mode, which is on disk when this returns; raises OSError."""
        self._modes.setdefault(mode.topic or "", {})[mode.consumer_group or ""] = mode
        self._file.save(self.table())

    def table(self) -> MessageRequestModeSerializeWrapper:
        """All of them, as GET_ALL_MESSAGE_REQUEST_MODE sends them."""
        return MessageRequestModeSerializeWrapper(message_request_mode_map=self._modes)
