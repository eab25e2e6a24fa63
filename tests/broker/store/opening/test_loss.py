# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.broker.store.opening.test_recover import Model, mixed, reopened
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreLoss
from txrocketmq.broker.store.index.index_file import index_file_name
from txrocketmq.broker.store.message_store import MessageStore, PutMessage
from txrocketmq.broker.store.opening.loss import Loss

NOW_MS = 1_700_000_000_000
WORD = "/store/accept_loss"
MOVED = f"/store/lost/{index_file_name(NOW_MS)}"


def test_a_loss_is_refused_with_what_to_do(files: Any) -> None:
    loss = Loss(files, "/store", NOW_MS)
    with pytest.raises(StoreLoss, match="Bring it back; or") as caught:
        loss.weigh("10 messages are missing", "Bring it back")
    text = str(caught.value)
    assert text.startswith("10 messages are missing. Nothing has been changed.")
    assert f"create the empty file {WORD} and start again" in text
    assert loss.warnings == []


def test_the_word_counts_once_and_what_it_cost_is_told(files: Any) -> None:
    files.write(WORD, b"")
    loss = Loss(files, "/store", NOW_MS)
    loss.weigh("10 messages are missing", "Bring them back")
    assert files.exists(WORD), "until all went well"
    loss.obeyed()
    assert not files.exists(WORD)
    (warning,) = loss.warnings
    assert warning.startswith("10 messages are missing; the start went on without")
    again = Loss(files, "/store", NOW_MS)
    with pytest.raises(StoreLoss):
        again.weigh("More is missing", "Bring it back")
    again.obeyed()


def test_a_word_that_was_not_needed_is_removed_too(files: Any) -> None:
    files.write(WORD, b"")
    loss = Loss(files, "/store", NOW_MS)
    loss.obeyed()
    assert not files.exists(WORD)
    assert "was not needed" in loss.warnings[0]


def test_what_is_durably_gone_does_not_come_back(files: Any) -> None:
    files.make_directory("/store/index")
    for name in "123":
        files.write(f"/store/index/{name}", b"old")
        files.sync(f"/store/index/{name}")
        files.remove(f"/store/index/{name}")
    assert files.unlinked
    Loss(files, "/store", NOW_MS).make_durable("/store/index/3")
    assert files.entries("/store/index") == []
    assert not any(files.unlinked.values()), "if any is back, it is empty"


def test_things_are_moved_not_removed(files: Any) -> None:
    loss = Loss(files, "/store", NOW_MS)
    files.write("/store/commitlog/7", b"log")
    files.write("/store/consumequeue/T/0/0", b"queue")
    assert loss.move_aside("/store/commitlog/7") == f"{MOVED}/commitlog/7"
    assert loss.move_aside("/store/consumequeue") == f"{MOVED}/consumequeue"
    assert files.small == {
        f"{MOVED}/commitlog/7": b"log",
        f"{MOVED}/consumequeue/T/0/0": b"queue",
    }
    assert loss.keep("/store/commitlog/8.100", memoryview(b"tail")) == f"{MOVED}/commitlog/8.100"
    assert files.durable == {f"{MOVED}/commitlog/8.100": b"tail"}


def test_a_log_elsewhere_is_moved_beside_itself(files: Any) -> None:
    files.write("/disk2/log/7", b"log")
    target = Loss(files, "/store", NOW_MS).move_aside("/disk2/log/7")
    assert target == f"/disk2/lost/{index_file_name(NOW_MS)}/log/7"
    assert files.small == {target: b"log"}


@pytest.mark.parametrize("was_closed", [True, False])
def test_where_files_are_missing_is_known_when_the_loss_was_accepted(
    open_store: Callable[..., MessageStore],
    files: Any,
    config: Callable[..., StoreConfig],
    message: Callable[..., PutMessage],
    was_closed: bool,
) -> None:
    store, model = open_store(), Model()
    model.put(store, mixed(message, 100), NOW_MS)
    if was_closed:
        store.stop(NOW_MS)
    disk = files.after_kill()
    disk.remove(f"/store/commitlog/{8192:020}")
    disk.write(WORD, b"")
    again, done = reopened(disk, config)
    assert again.damaged_from == done.damaged_from == 8192
    assert done.min_offset == 0
