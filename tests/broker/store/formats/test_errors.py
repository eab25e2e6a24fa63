# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.broker.store.formats.errors import FileSizeError, StoreError, StoreLocked


def test_errors_say_what_to_do() -> None:
    assert "storePathRootDir" in str(StoreLocked("/store/lock"))
    size = str(FileSizeError("/store/commitlog/0", 262_144, "mappedFileSizeCommitLog", 1024))
    for part in ("/store/commitlog/0", "262144", "1024", "set mappedFileSizeCommitLog"):
        assert part in size


def test_one_except_catches_all() -> None:
    assert issubclass(StoreLocked, StoreError)
    assert issubclass(FileSizeError, StoreError)
