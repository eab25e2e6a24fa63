# SPDX-License-Identifier: Apache-2.0
"""Errors of the store that require an action of the person who runs the broker.

    StoreError                 anything the store raises on purpose; its text is one clear sentence
    |- StoreLocked             another process has the directory open
    |- FileSizeError           a file is of another size than the configuration says
    `- StoreLoss               going on would lose messages that are known to have been stored

What a peer may cause is never an exception here: puts and reads answer with a status.

Java: store.exception.StoreException, and the RuntimeExceptions of DefaultMessageStore.start.
"""

from __future__ import annotations


class StoreError(Exception):
    """Base of the store's errors."""


class StoreLocked(StoreError):
    """The lock file of the directory is held by another broker."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is locked: another broker uses this store; stop it, or choose another store"
            " (storePathRootDir; of txrocketmq standalone, --store)"
        )


class FileSizeError(StoreError):
    """A file does not have the configured size; `key` is the configuration key of that size.

    The store cannot tell where the contents of the file lie, so it is not opened
    (MappedFileQueue.load).
    """

    def __init__(self, path: str, size_bytes: int, key: str, expected_bytes: int) -> None:
        super().__init__(
            f"{path} has {size_bytes} bytes, but {key} makes it {expected_bytes}:"
            f" set {key} to what this store was created with. If it is right, the file was cut:"
            " restore it. A file of a queue can be moved away instead. If a file of the log cannot"
            " be restored, create an empty file named accept_loss in the store to go on with it"
        )


class StoreLoss(StoreError):
    """Messages that the store is known to have held are missing, and the loss is not accepted.

    `word` is the path of the file by which it can be accepted.
    """

    def __init__(self, what: str, instead: str, word: str) -> None:
        super().__init__(
            f"{what}. Nothing has been changed. {instead}; or, to go on without what is missing,"
            f" create the empty file {word} and start again"
        )
        self.word = word
