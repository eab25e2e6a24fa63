# SPDX-License-Identifier: Apache-2.0
"""Logs what the parts of the broker report; the parts themselves write no log."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from twisted.logger import Logger

from txrocketmq.broker.store.formats.damage import Damage
from txrocketmq.broker.store.formats.opening_report import Recovered
from txrocketmq.broker.store.get.jumps import (
    DELAYS,
    GROUP,
    HALF_MESSAGES,
    OP_MESSAGES,
    POPPED,
    REVIVAL,
    TIMERS,
    Jump,
)
from txrocketmq.broker.work.mishap import Mishap
from txrocketmq.remoting.message.topics import (
    DLQ_PREFIX,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    TRANS_CHECK_MAX_TIME_TOPIC,
)
from txrocketmq.remoting.process.log_limit import Seldom, and_more

_SLAVES_A_MINUTE: Final = 30

log = Logger()
_slaves = Seldom(_SLAVES_A_MINUTE)


def no_record(damage: Damage, more: int) -> None:
    """A queue or the index points to a place where there is no message."""
    others = f" (and {more} more places are not listed)" if more else ""
    if damage.physical_offset < 0:
        log.error(
            "the index is damaged: {path} at byte {position}, so queries by key may miss"
            " messages{others}. Move the file away while the broker is down: the next start"
            " rebuilds it from the log",
            path=damage.path,
            position=damage.position,
            others=others,
        )
        return
    log.error(
        "the store is damaged: there is no message at {offset} of the log ({path}, byte"
        " {position}), although {who} refers to it; consumers continue behind it{others}",
        offset=damage.physical_offset,
        path=damage.path or "of which there is no file",
        position=damage.position,
        who=f"queue {damage.queue} at offset {damage.queue_offset}" if damage.queue else "an index",
        others=others,
    )


def wrong_body(damage: Damage, more: int) -> None:
    """The body of a message that was read from the disk is not the one that was stored."""
    log.error(
        "the body of a message has changed on the disk: {queue} at offset {queue_offset}, at"
        " {offset} of the log ({path}, byte {position}, {size} bytes) does not have the CRC that it"
        " was stored with. It is delivered as it is{others}",
        queue=damage.queue,
        queue_offset=damage.queue_offset,
        offset=damage.physical_offset,
        path=damage.path,
        position=damage.position,
        size=damage.size_bytes,
        others=f" (and {more} more messages are not listed)" if more else "",
    )


def level_stands_still(told: Mishap) -> None:
    """The store refuses a delayed message that is due; it is tried again."""
    log.warn(
        "delay level {delay_level} is on hold: the store accepts no messages for {topic}: {status}",
        delay_level=told.queue_id + 1,
        topic=told.topic,
        status=told.why,
    )


def not_readable(told: Mishap) -> None:
    """Delayed messages whose records cannot be read are passed over."""
    log.error(
        "{count} messages of delay level {delay_level}, from offset {offset} on, are not delivered:"
        " the log does not have them any more, or they are damaged",
        count=told.number,
        delay_level=told.queue_id + 1,
        offset=told.offset,
    )


def level_not_delivered(told: Mishap) -> None:
    """Delayed messages that no topic can take."""
    log.error(
        "{count} messages of delay level {delay_level}, from offset {offset} on, cannot be"
        " delivered: {why}. They are dead letters in the topic {topic}",
        count=told.number,
        delay_level=told.queue_id + 1,
        offset=told.offset,
        why=told.why,
        topic=DLQ_PREFIX + SCHEDULE_TOPIC,
    )


_JUMPERS: Final = {
    DELAYS: "delay level {level}",
    HALF_MESSAGES: "the check of transactions",
    OP_MESSAGES: "the check of transactions",
    REVIVAL: "the revival of popped messages",
    TIMERS: "the reader of timer messages",
    GROUP: "the group {group}",
}
_CONSEQUENCES: Final = {
    DELAYS: "they are not delivered",
    HALF_MESSAGES: "their producers are not asked about them, and they cannot be committed",
    OP_MESSAGES: "producers may be asked about transactions that have ended",
    REVIVAL: "messages that they name and that were not acknowledged do not come back",
    GROUP: "it does not get them",
    TIMERS: "they are not delivered",
}


_DOUBT: Final = ", unless that was done before: no progress was saved"


def jumped(jump: Jump, more: int) -> None:
    """A reader goes on behind messages that the log has lost."""
    others = f" (and {more} more such readers are not listed)" if more else ""
    if jump.kind == POPPED:
        log.warn(
            "{count} messages that the group {group} has popped and not acknowledged do not come"
            " back: the log has lost them (queue {queue} of {topic}, from offset {first} to"
            " {last}){others}",
            count=jump.number,
            group=jump.group,
            queue=jump.queue_id,
            topic=jump.topic,
            first=jump.from_offset,
            last=jump.to_offset - 1,
            others=others,
        )
        return
    log.warn(
        "{who} continues at offset {to} of queue {queue} of {topic}, not at {first}: the log has"
        " lost {count} messages in between; {why}{doubt}{others}",
        who=_JUMPERS[jump.kind].format(group=jump.group, level=jump.queue_id + 1),
        to=jump.to_offset,
        queue=jump.queue_id,
        topic=jump.topic,
        first=jump.from_offset,
        count=jump.number,
        why=_CONSEQUENCES[jump.kind],
        doubt="" if jump.is_known else _DOUBT,
        others=others,
    )


def not_synced(error: OSError) -> None:
    """The disk has failed: what it holds is not known."""
    log.error("syncing the store failed: {error}; sends are refused", error=error)


def not_written(what: str, error: Exception) -> None:
    """Something that was only in memory is lost at the end."""
    log.error("{what} failed: {error}", what=what, error=error)


def store_opened(path: str, recovered: Recovered, config_warnings: Iterable[str]) -> None:
    """What opening the store found, and what its files of config/ lack."""
    log.info("store {path}: {what}", path=path, what=recovered)
    for warning in config_warnings:
        log.warn("config: {warning}", warning=warning)
    for warning in recovered.warnings:
        log.warn("store: {warning}", warning=warning)


def half_messages_given_up(told: Mishap) -> None:
    """Half messages whose producers were asked in vain, or that are too old."""
    log.error(
        "{count} half messages are given up, the first of topic {topic} with the key {key}: their"
        " producers did not say what became of their transactions. They are in the topic"
        " {given_up}; resumeCheckHalfMessage of mqadmin makes the broker ask about one of them"
        " again",
        count=told.number,
        topic=told.topic,
        key=told.key,
        given_up=TRANS_CHECK_MAX_TIME_TOPIC,
    )


def not_taken(kind: str, told: Mishap) -> None:
    """Messages of a slave that acts as master wait, since no other master takes them."""
    log.warn(
        "{count} {kind} messages, the first of topic {topic}, wait for the master: no other master"
        " takes them now",
        count=told.number,
        kind=kind,
        topic=told.topic,
    )


def not_brought_back(told: Mishap) -> None:
    """Messages that were popped and not acknowledged cannot be put into their retry topic."""
    log.error(
        "{count} popped messages of {topic} cannot be brought back now: the store says {status}."
        " The broker tries again, less and less often",
        count=told.number,
        topic=told.topic,
        status=told.why,
    )


def revive_record_unreadable(told: Mishap) -> None:
    """A record of the revive topic is passed over."""
    log.warn(
        "the record at offset {offset} of queue {queue_id} of the revive topic is not valid: it is"
        " skipped",
        offset=told.offset,
        queue_id=told.queue_id,
    )


def half_message_unreadable(told: Mishap) -> None:
    """A half message whose record cannot be read is passed over."""
    log.error(
        "the half message at offset {offset} of queue {queue_id} cannot be read, so its producer"
        " is not asked about the transaction: the log no longer has it, or it is damaged",
        offset=told.offset,
        queue_id=told.queue_id,
    )


def timers_warn(what: str) -> None:
    """Something is wrong with the files of timer messages."""
    log.warn("timers: {what}", what=what)


def timers_stand_still(told: Mishap) -> None:
    """The store refuses a timer message that is due; it is tried again."""
    log.warn(
        "timer messages are on hold: the store accepts no messages for {topic}: {status}",
        topic=told.topic,
        status=told.why,
    )


def timers_not_readable(told: Mishap) -> None:
    """Timer messages whose records cannot be read are passed over."""
    log.error(
        "{count} timer messages, from {place} on, are not delivered: the log does not have them any"
        " more, or they are damaged",
        count=told.number,
        place=told.offset,
    )


def timers_not_delivered(told: Mishap) -> None:
    """Timer messages that no topic can take."""
    log.error(
        "{count} timer messages cannot be delivered: {why}. They are dead letters in the topic"
        " {topic}",
        count=told.number,
        why=told.why,
        topic=DLQ_PREFIX + TIMER_TOPIC,
    )


def access_refused(text: str) -> None:
    """A request of somebody who may not send it; only some of these are told."""
    log.warn("access: {text}", text=text)


def account_changed(text: str) -> None:
    """A user or its policies were created, changed or deleted."""
    log.info("access: {text}", text=text)


def _more_of_slaves(what: str) -> str | None:
    """Returns what is told of lines left out before this one; None if it is left out, too."""
    missed = _slaves.more(int(time.monotonic() * 1000), what)
    return None if missed is None else and_more(missed)


def slave_came(address: str, its_end: int, start: int) -> None:
    """A slave has said where its log ends, and gets the log from there on."""
    more = _more_of_slaves("came")
    if more is not None:
        log.info(
            "the slave at {address} has the log up to {its_end} and gets it from {start} on{more}",
            address=address,
            its_end=its_end,
            start=start,
            more=more,
        )


def slave_left(address: str, why: str) -> None:
    """The connection of a slave has ended, or was not accepted."""
    more = _more_of_slaves("left")
    if more is not None:
        log.warn(
            "the slave at {address} is served no more: {why}{more}",
            address=address,
            why=why,
            more=more,
        )


def copied(what: str, count: int, master: str) -> None:
    """A slave has copied a table of its master that had changed."""
    log.info(
        "copied the {what} of the master {master}: {count}", what=what, master=master, count=count
    )


def not_copied(what: str, master: str) -> None:
    """A master does not serve the request for a table."""
    log.info(
        "the master {master} does not tell the {what}, so they are not copied (it may be an older"
        " release, or have none)",
        what=what,
        master=master,
    )


def follows(address: str, own_end: int) -> None:
    """As a slave, this broker hears from its master."""
    more = _more_of_slaves("follows")
    if more is not None:
        log.info(
            "follows the master at {address} from {end} of its log on{more}",
            address=address,
            end=own_end,
            more=more,
        )


def not_following(address: str, why: str) -> None:
    """As a slave, this broker does not follow its master any more, or cannot begin to."""
    more = _more_of_slaves("not following")
    if more is not None:
        log.error(
            "does not follow the master at {address}: {why}; it is tried again{more}",
            address=address,
            why=why,
            more=more,
        )


def acts(*, begins: bool) -> None:
    """As a slave, this broker begins to act as master, or a master is back."""
    if _more_of_slaves("acts") is None:
        return
    if begins:
        log.info("there is no master: this slave acts as one, for readers")
    else:
        log.info("there is a master, or a slave with a smaller id: this slave acts as one no more")


def not_online(why: str) -> None:
    """What has to be done before this broker is online is not done yet."""
    log.warn("this broker is not online yet: {why}; it is tried again every second", why=why)


def is_online() -> None:
    """What has to be done before this broker is online is done, and it registers."""
    log.info("this broker is online from now on")


def created_new_topics(count: int) -> None:
    """As a slave, this broker has topics that its master made after they were copied last."""
    log.info(
        "created {count} topics that have messages and were not copied from the master yet",
        count=count,
    )


def removed_topics(count: int) -> None:
    """As a slave, this broker has removed the queues of topics that its master has deleted."""
    log.info("removed the queues of {count} topics that the master has deleted", count=count)


def took_over(address: str, count: int) -> None:
    """As a master, this broker has taken over what a slave knew."""
    log.info(
        "took {count} offsets from the slave {address}, which were farther than here",
        count=count,
        address=address,
    )


def behind_master(count: int, silent_s: int) -> None:
    """As a slave, this broker lacks much of its master's log."""
    log.warn(
        "this slave is {count:,} bytes behind its master, from which it has heard last {silent} s"
        " ago",
        count=count,
        silent=silent_s,
    )


def controller_failed(why: str) -> None:
    """What a controller was asked has failed, and is tried again."""
    log.warn("the controller does not serve this broker yet: {why}", why=why)


def term_begins(epoch: int, master: str, *, is_master: bool) -> None:
    """A controller has named the master of a newer term."""
    if is_master:
        log.info("a controller has made this broker the master of epoch {epoch}", epoch=epoch)
    else:
        log.info("the master of epoch {epoch} is {master}", epoch=epoch, master=master)


def in_sync(ids: Iterable[int]) -> None:
    """A controller has taken another set of brokers that have all messages."""
    log.info("the brokers in sync are now {ids}", ids=", ".join(map(str, sorted(ids))))
