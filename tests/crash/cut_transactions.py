# SPDX-License-Identifier: Apache-2.0
"""A broker with its producer of transactions in one process, on a disk that may lose power.

Its store, on that disk, and consumerOffset.json are kept. The latter is whole whenever the power
goes, since it is synced and then renamed. An answer that the producer has had counts if the log was
durable up to its record when the power went.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from tests.broker.conftest import Parts
from tests.broker.transaction.scene import Scene, restarted
from tests.crash.calls import FailingFiles
from tests.crash.life import TINY
from tests.crash.transactions import COMMIT, GROUP, Decisions
from tests.disk import MemoryFiles
from txrocketmq.broker import parts
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.frame import FrameDecoder
from txrocketmq.remoting.message.ids import decode_message_id
from txrocketmq.remoting.message.message import MessageExt, decode_messages
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader, SendMessageResponseHeader

SETTINGS: Final[dict[str, Any]] = {**TINY, "file_reserved_time": 72}
_NEVER_GIVEN_UP: Final = 1_000_000
_MOST_ROUNDS: Final = 50


class CutBroker:
    """One life of a broker and its producer.

    With `may_refuse`, requests may fail; the producer then does not repeat them.
    """

    may_refuse = False

    def __init__(
        self,
        folder: Path,
        disk: MemoryFiles | FailingFiles,
        decisions: Decisions,
        now_ms: int,
        flush: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(parts, "OsFiles", lambda: disk)
            self.scene = Scene(
                folder,
                config=BrokerConfig(transaction_check_max=_NEVER_GIVEN_UP),
                now_ms=now_ms,
                store_settings={**SETTINGS, "flush_disk_type": flush},
            )
        self.parts = self.scene.parts
        self.parts.offsets.load()
        restarted(self.scene)  # the check begins where the file says
        self.store = self.parts.store
        self.decisions = decisions
        self.asked_of = self.scene.joins(GROUP)
        self.commits: list[int] = []
        """Numbers of the messages that were committed in this life, in order."""
        self._decoder = FrameDecoder()
        self._halves: dict[int, int] = {}
        """Numbers of half messages without an answer, by opaque."""
        self._open: dict[int, MessageExt] = {}
        """Half messages that are to be ended, by number."""

    def step(self, random: Random) -> None:
        """Does something random."""
        what = random.random()
        if what < 0.45:
            self.begin()
        elif what < 0.7:
            self.end_some(random)
        elif what < 0.85:
            self.flush()
        elif what < 0.95:
            self.check(random)
        else:
            self.parts.offsets.saving.write_now()
        self.parts.now_ms += 10

    def begin(self) -> None:
        """Sends a half message; its answer may come with a flush."""
        ((number, message),) = self.decisions.ledger.draw(1, 0).items()
        text = message.properties.decode() + f"TRAN_MSG\x01true\x02PGROUP\x01{GROUP}\x02"
        header = SendMessageRequestHeader(
            producer_group=GROUP, topic="T", default_topic="TBW102", default_topic_queue_nums=4,
            queue_id=2, sys_flag=4, born_timestamp=self.parts.now_ms, flag=0, properties=text,
        )  # fmt: skip
        command = self.scene.command(send.SEND_MESSAGE.code, header, message.body)
        self._halves[command.opaque] = number
        self._take(self.scene.serve(command))

    def _take(self, answers: list[RemotingCommand]) -> None:
        for answer in answers:
            number = self._halves.pop(answer.opaque)
            if self.may_refuse and answer.code != ResponseCode.SUCCESS:
                continue
            assert answer.code == ResponseCode.SUCCESS, answer.remark
            told = SendMessageResponseHeader.decode(answer.ext_fields)
            half = self.scene.at(decode_message_id(told.msg_id).commit_log_offset)
            self.decisions.prepared.add(number)
            self.decisions.prepared_ends[number] = half.commit_log_offset + half.store_size
            if self.decisions.is_ended_at_once(number):
                self._open[number] = half

    def end_some(self, random: Random) -> None:
        """Ends some of the messages that the producer ends without being asked."""
        for number in random.sample(sorted(self._open), min(len(self._open), 5)):
            half = self._open.pop(number)
            self._ended(number, self.scene.end(half, self.decisions.end_of(number)))

    def _ended(self, number: int, answers: list[tuple[int, str | None]]) -> None:
        ((code, remark),) = answers
        if self.may_refuse and code != ResponseCode.SUCCESS:
            return
        assert code == ResponseCode.SUCCESS, remark
        if self.decisions.end_of(number) == COMMIT:
            self.decisions.committed.add(number)
            self.commits.append(number)
            end = self.store.max_physical_offset
            self.decisions.committed_ends.setdefault(number, end)

    def check(self, random: Random, share: float = 0.7) -> None:
        """Runs the check of half messages, and answers some of the questions."""
        self.scene.check()
        for header, half in self.scene.asked(self.asked_of):
            number = self.decisions.ledger.number_of(half.body)
            assert number is not None
            if random.random() < share:
                self._open.pop(number, None)
                end = self.decisions.end_of(number)
                self._ended(number, self.scene.answer(header, half, end))

    def flush(self) -> None:
        """Does what the thread of the flush jobs does, and notes what has become durable."""
        job = self.store.flush.begin()
        if job is not None:
            job.run()
            self.store.flush.finish(job)
        written = self.scene.peer.written
        self._take(self._decoder.receive(b"".join(map(bytes, written))))
        written.clear()

    def lose(self, lose: Callable[[Parts], object]) -> None:
        """Has the log lose files, and forgets to end what is not there any more."""
        self.flush()
        lose(self.parts)
        least = self.store.min_physical_offset
        self._open = {
            number: half for number, half in self._open.items() if half.commit_log_offset >= least
        }

    def served(self, offset: int = 0) -> list[tuple[int, bytes]]:
        """Returns what consumers see from an offset on: numbers and bodies."""
        found: list[tuple[int, bytes]] = []
        while offset < self.store.max_offset("T", 2):
            got = self.store.get("T", 2, offset, 32, 1 << 20)
            for buffer in got.buffers:
                for message in decode_messages(buffer):
                    number = self.decisions.ledger.number_of(message.body)
                    found.append((-1 if number is None else number, message.body))
            assert got.next_begin_offset > offset
            offset = got.next_begin_offset
        return found

    def settle(self, random: Random) -> None:
        """Runs the check until there is nothing left to be asked."""
        for _ in range(_MOST_ROUNDS):
            before = self.store.max_physical_offset
            self.check(random, share=1.0)
            self.flush()
            if self.store.max_physical_offset == before:
                return
        raise AssertionError("the broker asks for ever")
