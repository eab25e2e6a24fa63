# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from tests.disk import MemoryFiles
from txrocketmq.broker.store.queues.deleted_topics import DeletedTopics


def test_a_mark_is_there_for_the_next_process(files: MemoryFiles) -> None:
    deleted = DeletedTopics(files, "/store")
    deleted.note("A", 700)
    deleted.note("B", 900)
    deleted.note("A", 1000)
    assert deleted.not_durable == ["/store/deleted/A", "/store/deleted/B", "/store/deleted/A"]
    again = DeletedTopics(files, "/store")
    again.load(0, 2000)
    assert [again.end_of(topic) for topic in ("A", "B", "C")] == [1000, 900, 0]


def test_marks_before_the_log_go_and_those_behind_it_are_drawn_back(files: MemoryFiles) -> None:
    deleted = DeletedTopics(files, "/store")
    deleted.note("Old", 500)
    deleted.note("Cut", 3000)
    files.write("/store/deleted/Torn", b"")
    files.write("/store/deleted/Foreign", b"notes")
    files.write("/store/deleted/Halved", b"%010d" % 0)
    deleted.load(500, 2000)
    assert [deleted.end_of(topic) for topic in ("Old", "Cut", "Torn", "Foreign")] == [0, 2000, 0, 0]
    assert not files.exists("/store/deleted/Old")
    unreadable = [f"/store/deleted/{name}" for name in ("Foreign", "Halved", "Torn")]
    assert sorted(deleted.unreadable) == unreadable
    assert all(files.exists(path) for path in unreadable)
    assert files.durable["/store/deleted/Cut"] == b"%020d" % 2000


def test_nothing_is_noted_in_an_empty_log(files: MemoryFiles) -> None:
    deleted = DeletedTopics(files, "/store")
    deleted.note("A", 0)
    assert not deleted.not_durable
    assert not files.small
