# SPDX-License-Identifier: Apache-2.0
"""Topics and groups that messages on their way need, each made once such a message is stored.

So a message that is refused, for whatever reason, leaves no topic and no group behind. While a run
of messages is prepared, all of them see the same drafts, as if these existed. The original creates
a topic before it looks at the message.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from txrocketmq.remoting.protocol.body.route import TopicConfig


class Drafts:
    """The drafts of one run of messages. `topics` has those of topics, by name.

    Mostly there are none. Whoever handles every message therefore looks at `makers` and `wanted`
    before it calls a method.
    """

    def __init__(self) -> None:
        self.topics: dict[str, TopicConfig] = {}
        self.makers: dict[tuple[str, str], Callable[[], object]] = {}
        self.wanted: list[tuple[str, str]] = []
        """What the message that is being prepared needs; see `makers`."""
        self._needs: list[tuple[range, list[tuple[str, str]]]] = []

    def clear(self) -> None:
        """Forgets all drafts, since a new run begins."""
        if self.makers or self.topics:  # mostly there are none
            self.__init__()  # type: ignore[misc]

    def want(self, kind: str, name: str, make: Callable[[], object]) -> None:
        """Notes that the message being prepared needs something; `make` makes it."""
        self.makers.setdefault((kind, name), make)
        self.wanted.append((kind, name))

    def begin(self) -> None:
        """Begins with the next command of the run: what a refused one needed is not wanted."""
        self.wanted = []

    def end(self, first: int, number: int) -> None:
        """Notes that the command became so many messages of the run, from index `first` on."""
        if self.wanted:
            self._needs.append((range(first, first + number), self.wanted))
            self.wanted = []

    def make(self, refused: Container[int]) -> None:
        """Makes what is needed by messages that were not refused, and forgets the rest."""
        makers, needs = self.makers, self._needs
        if not makers and not self.topics:
            return
        self.clear()
        for messages, wanted in needs:
            if all(at in refused for at in messages):
                continue
            for key in wanted:
                maker = makers.pop(key, None)
                if maker is not None:
                    maker()
