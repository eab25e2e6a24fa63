# SPDX-License-Identifier: Apache-2.0
"""Logs what people and clients do to the broker, one line for each event: who did what.

Logged are: topics and groups that are created, changed or deleted, changes of settings, clients
that come and go (debug), deleted log files, and a disk that gets full or has room again. The
journal hears of them from the parts' lists of listeners, as others do, and is on the path of no
message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from twisted.logger import Logger, LogLevel

from txrocketmq.broker.parts import Parts
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.tables.clients import ConsumerGroup
from txrocketmq.broker.work.life import SECOND_MS, Beat, Hears, Life, Opening
from txrocketmq.remoting.codes import code_name
from txrocketmq.remoting.dispatch import Dispatcher
from txrocketmq.remoting.host.console_log import is_shown

_BY_ITSELF: Final = "the broker itself"

log = Logger()


class Journal:
    """Listens to the parts of a broker.

    `dispatchers` tell whose request is being served while something happens.
    """

    def __init__(self, parts: Parts, dispatchers: Sequence[Dispatcher] = ()) -> None:
        self._parts = parts
        self._dispatchers = dispatchers
        self._cause = ""
        self._topics: set[str] = set()
        self._groups: set[str] = set()
        self._min_offset = 0
        self._why_not_writeable = ""
        self._why_cleaning = ""
        self._failing: set[str] = set()
        """The kinds of work that failed when they were last tried, and whose failure was logged."""

    def life(self) -> Life:
        """It listens once all is open; what exists then is not logged."""
        parts = self._parts
        hears: tuple[Hears[Any], ...] = (Hears(parts.configuration.on_change, self._reconfigured),)
        if parts.role.writes:  # else the journal of its master has that
            hears += (
                Hears(parts.topics.on_change, self._topic_changed),
                Hears(parts.groups.on_change, self._group_changed),
            )
        if is_shown(LogLevel.debug):
            hears += (
                Hears(parts.consumers.on_change, self._consumers_changed),
                Hears(parts.producers.on_change, self._producers_changed),
            )
        return Life("journal", opens=self._opened, hears=hears, beats=(Beat(SECOND_MS, self.tick),))

    def _opened(self, _: Opening) -> list[str]:
        self._topics.update(self._parts.topics.all())
        self._groups.update(self._parts.groups.all())
        self._min_offset = self._parts.store.min_physical_offset
        return []

    @contextmanager
    def because(self, cause: str) -> Iterator[None]:
        """Attributes what happens within the context to this cause, and not to a request."""
        self._cause = cause
        try:
            yield
        finally:
            self._cause = ""

    def attributed(self, steps: Steps[Any], cause: str) -> Steps[None]:
        """Attributes what happens in steps to this cause."""
        while True:
            with self.because(cause):
                try:
                    awaited = next(steps)
                except StopIteration:
                    return
            yield awaited

    def who(self) -> str:
        """Names the request that is being served and its peer, or the cause of `because`."""
        if self._cause:
            return self._cause
        for dispatcher in self._dispatchers:
            if dispatcher.served is not None:
                peer, command = dispatcher.served
                return f"{code_name(command.code)} of {peer.remote_address}"
        return _BY_ITSELF

    def went(self, what: str, error: object) -> None:
        """Logs that some kind of work has begun to fail, or works again (`error` is None)."""
        if error is None and what in self._failing:
            self._failing.remove(what)
            log.info("{what} works again", what=what)
        elif error is not None and what not in self._failing:
            self._failing.add(what)
            log.error("{what} failed: {error}; it is tried again", what=what, error=error)

    def tick(self) -> None:
        """Logs what has changed on the disk; called every second."""
        store = self._parts.store
        if store.min_physical_offset > self._min_offset:
            log.info(
                "log files before offset {offset} were deleted, {count} bytes: {why}",
                offset=store.min_physical_offset,
                count=store.min_physical_offset - self._min_offset,
                why=store.why_cleaning() or "they were older than fileReservedTime",
            )
        self._min_offset = max(store.min_physical_offset, 0)
        why = store.why_cleaning()
        if why and not self._why_cleaning:
            log.warn("old log files are deleted at any hour now: {why}", why=why)
        elif self._why_cleaning and not why:
            log.info("old log files are deleted at the hours of deleteWhen again")
        self._why_cleaning = why
        why = store.why_not_writeable()
        if why and not self._why_not_writeable:
            log.error("no messages are accepted: {why}", why=why)
        elif self._why_not_writeable and not why:
            log.info("messages are accepted again")
        self._why_not_writeable = why

    def _topic_changed(self, name: str) -> None:
        topic = self._parts.topics.get(name)
        if topic is None:
            self._topics.discard(name)
            log.info("topic {topic} was deleted by {who}", topic=name, who=self.who())
            return
        log.info(
            "topic {topic} was {done} by {who}: read queues {read}, write queues {write},"
            " permission {perm}{attributes}",
            topic=name,
            done="changed" if name in self._topics else "created",
            who=self.who(),
            read=topic.read_queue_nums,
            write=topic.write_queue_nums,
            perm=topic.perm,
            attributes=f", {dict(topic.attributes)}" if topic.attributes else "",
        )
        self._topics.add(name)

    def _group_changed(self, name: str) -> None:
        if self._parts.groups.get(name) is None:
            if name in self._groups:
                log.info("group {group} was deleted by {who}", group=name, who=self.who())
            self._groups.discard(name)
            return
        done = "changed" if name in self._groups else "created"
        log.info("group {group} was {done} by {who}", group=name, done=done, who=self.who())
        self._groups.add(name)

    def _consumers_changed(self, group: ConsumerGroup) -> None:
        log.debug(
            "consumer group {group} has {count} members after {who}",
            group=group.name,
            count=len(group.members),
            who=self.who(),
        )

    def _producers_changed(self, group: str, count: int) -> None:
        log.debug(
            "producer group {group} has {count} members after {who}",
            group=group,
            count=count,
            who=self.who(),
        )

    def _reconfigured(self, keys: Collection[str]) -> None:
        configuration = self._parts.configuration
        values, who = configuration.shown, self.who()
        idle = configuration.without_effect(keys)
        # What the broker finds out by itself at its start is no news to anybody.
        say = log.debug if who == _BY_ITSELF else log.info
        say(
            "settings were changed by {who}: {settings}{idle}",
            who=who,
            idle=f" (without effect here: {', '.join(idle)})" if idle else "",
            settings=", ".join(f"{key}={values.get(key, '')}" for key in keys),
        )
