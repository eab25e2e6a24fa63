# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.disk.record_head import (
    _MAGIC,
    _MARK,
    MAGICS,
    is_record,
    next_head,
    record_size,
)
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues


@pytest.fixture
def file(
    files: Any, config: Callable[..., StoreConfig], message: Callable[..., PutMessage]
) -> MappedFile:
    """A file of the log with two records of one size."""
    log = CommitLog(files, config())
    log.write(log.encode([message(), message()], ConsumeQueues(files, config()), 1))
    return log.files.mapped_files[0]


def test_a_record_is_where_its_size_magic_and_offset_are(file: MappedFile) -> None:
    size = file.wrote_bytes // 2
    assert is_record(file, size, size)
    assert record_size(file, size) == size
    for offset in (-1, 1, size - 1, size + 1, 2 * size, 1 << 40):
        assert not is_record(file, offset, size)
        assert record_size(file, offset) is None
    for wrong in (-1, 0, size - 1, size + 1, 1 << 30):
        assert not is_record(file, 0, wrong)


@pytest.mark.parametrize("at", [0, 3, 4, 7, 28, 35])
def test_each_of_them_counts(file: MappedFile, at: int) -> None:
    size = file.wrote_bytes // 2
    file.map()[at] ^= 1
    assert not is_record(file, 0, size)
    assert record_size(file, 0) is None


def test_a_record_whose_end_is_lost_is_none(file: MappedFile) -> None:
    size = file.wrote_bytes // 2
    file.map()[size - 8 : size] = bytes(8)
    assert not is_record(file, 0, size)
    assert record_size(file, 0) is None
    assert is_record(file, size, size)


def test_a_message_without_properties_is_a_record(
    files: Any, config: Callable[..., StoreConfig], message: Callable[..., PutMessage]
) -> None:
    log = CommitLog(files, config())
    bare = message()._replace(properties=b"")
    log.write(log.encode([bare], ConsumeQueues(files, config()), 1))
    (file,) = log.files.mapped_files
    assert is_record(file, 0, file.wrote_bytes)


def test_a_size_that_no_record_has_is_none(file: MappedFile) -> None:
    for size in (-1, 0, 90, file.wrote_bytes + 1):
        file.map()[0:4] = size.to_bytes(4, "big", signed=True)
        assert record_size(file, 0) is None


def test_records_are_found_where_nobody_names_them(file: MappedFile) -> None:
    size = file.wrote_bytes // 2
    data = file.map()
    for given in (data, bytes(data)):
        assert next_head(given, 0, 0, len(data)) == 0
        assert next_head(given, 0, 1, len(data)) == size
        assert next_head(given, 0, size, size + 1) == size
        assert next_head(given, 0, 1, size) == -1
        assert next_head(given, 0, size + 1, len(data)) == -1
        assert next_head(given, 5, 0, len(data)) == -1, "it says that it is elsewhere"
    assert all(_MAGIC.pack(magic).startswith(_MARK) for magic in MAGICS)
    assert next_head(data[size - 9 :], size - 9, 0, 100) == 9
    assert next_head(data[size : size + 35], size, 0, 35) == -1, "a part of it is not enough"
