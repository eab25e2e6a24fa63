# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.disk import MemoryFiles
from txrocketmq.broker.store.disk.mapped_file import MappedFile, MappedFileQueue
from txrocketmq.broker.store.disk.removals import Removals


@pytest.fixture
def removals(files: Any) -> Removals:
    return Removals(files)


def given_up(files: Any, *paths: str) -> list[MappedFile]:
    """Files that have been written."""
    made = []
    for path in paths:
        made.append(MappedFile(files, path, 100))
        made[-1].append(b"abc")
    return made


def test_files_are_unlinked_by_a_job(files: Any, removals: Removals) -> None:
    assert removals.is_empty
    assert removals.begin() is None
    removals.add(given_up(files, "/q/1", "/q/2"))
    assert sorted(files.maps) == ["/q/1", "/q/2"]
    job = removals.begin()
    assert job is not None
    removals.add(given_up(files, "/q/3"))
    assert removals.begin() is None, "one at a time"
    job.run()
    assert files.removed == ["/q/1", "/q/2"], "in their order"
    assert not removals.is_empty
    removals.finish(job)
    later = removals.begin()
    assert later is not None
    later.run()
    removals.finish(later)
    assert removals.is_empty
    assert not files.maps


def test_slices_of_them_stay_readable(files: Any, removals: Removals) -> None:
    (file,) = given_up(files, "/q/1")
    held = file.select(0, 3)
    removals.add([file])
    job = removals.begin()
    assert job is not None
    job.run()
    assert held == b"abc"


def test_the_mapping_ends_in_the_thread_that_unlinks(files: Any, removals: Removals) -> None:
    (file,) = given_up(files, "/q/1")
    mapped = file.map()
    removals.add([file])
    del file
    assert not mapped.closed
    job = removals.begin()
    assert job is not None
    job.run()
    assert mapped.closed, "not when it is collected, which may be anywhere"


def test_a_directory_is_settled_at_once(files: Any, removals: Removals) -> None:
    removals.add(given_up(files, "/q/1", "/qq/1"))
    job = removals.begin()
    assert job is not None
    removals.add(given_up(files, "/q/2", "/qq/2"))
    removals.settle("/q")
    assert sorted(files.maps) == ["/qq/1", "/qq/2"]
    job.run()
    removals.finish(job)
    assert sorted(files.maps) == ["/qq/2"]
    assert files.removed == ["/q/2", "/q/1", "/qq/1"], "none twice"
    removals.run_all()
    assert not files.maps


def test_directories_go_after_their_files_and_stay_when_they_are_settled(
    files: Any, removals: Removals
) -> None:
    for path in ("/t/0", "/t/1", "/t", "/u/0", "/u"):
        files.make_directory(path)
    for path in ("/t/0", "/t", "/u/0", "/u"):
        removals.add_directory(path)
    removals.add(given_up(files, "/t/0/1", "/u/0/1"))
    removals.settle("/u/0")
    removals.run_all()
    assert files.directories == {"/t/1", "/t", "/u/0", "/u"}
    assert removals.is_empty


def test_what_is_refused_is_tried_again_when_that_is_asked_for(
    files: Any, removals: Removals, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(f"{path} is not yours")

    files.make_directory("/q")
    removals.add(given_up(files, "/q/1", "/q/2"))
    removals.add_directory("/q")
    with monkeypatch.context() as patched:
        patched.setattr(files, "remove", refuse)
        patched.setattr(files, "remove_directory", refuse)
        removals.run_all()
    assert str(removals.trouble) == "/q/1 is not yours"
    assert removals.is_empty
    removals.run_all()
    assert sorted(files.maps) == ["/q/1", "/q/2"]
    removals.try_again()
    assert not removals.is_empty
    removals.run_all()
    assert not files.maps
    assert not files.directories
    assert removals.trouble is None


def test_a_row_never_gets_a_gap(
    files: Any, removals: Removals, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, refused = files.remove, {"/q/2"}

    def removing(path: str) -> None:
        if path in refused:
            raise MemoryError
        remove(path)

    def round_of_removals() -> None:
        job = removals.begin()
        if job is not None:
            job.run()
            removals.finish(job)

    monkeypatch.setattr(files, "remove", removing)
    removals.add(given_up(files, "/q/1", "/q/2", "/q/3", "/other/1"))
    round_of_removals()
    assert files.removed == ["/q/1", "/other/1"]
    removals.add(given_up(files, "/q/4"))
    round_of_removals()
    assert files.removed == ["/q/1", "/other/1"], "what is newer waits, too"
    refused.clear()
    removals.try_again()
    round_of_removals()
    assert files.removed == ["/q/1", "/other/1", "/q/2", "/q/3", "/q/4"]
    assert removals.trouble is None


def test_settling_waits_for_the_file_that_is_being_unlinked(
    files: Any, removals: Removals, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, settled = threading.Event(), threading.Event(), threading.Event()
    remove = files.remove

    def slowly(path: str) -> None:
        begun.set()
        assert go_on.wait(10)
        remove(path)

    def settle() -> None:
        removals.settle("/q")
        settled.set()

    monkeypatch.setattr(files, "remove", slowly)
    removals.add(given_up(files, "/q/1"))
    job = removals.begin()
    assert job is not None
    threads = [threading.Thread(target=job.run), threading.Thread(target=settle)]
    threads[0].start()
    assert begun.wait(10)
    threads[1].start()
    assert not settled.wait(0.05)
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert settled.is_set()
    assert files.removed == ["/q/1"]


def test_nothing_is_unlinked_before_the_notes_are_durable(files: MemoryFiles) -> None:
    removals = Removals(files)
    row = MappedFileQueue(files, "/row", 4096, "key")
    row.roll().append(b"x")
    files.write("/note", b"1")
    removals.notes.add("/note")
    files.broken.add("/note")
    removals.add(row.take_all())
    job = removals.begin()
    assert job is not None
    job.run()
    removals.finish(job)
    assert removals.trouble is not None
    assert "/row/" + "0" * 20 in files.maps
    files.broken.clear()
    removals.try_again()
    removals.run_all()
    assert files.synced[-1] == "/note"
    assert not files.maps
