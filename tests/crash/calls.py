# SPDX-License-Identifier: Apache-2.0
"""Makes something happen at the n-th call: of a method of the disk, or of a store's function."""

from __future__ import annotations

import errno
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from txrocketmq.broker.store.disk.files import Files

_WITHIN: Final = (
    f"{os.sep}broker{os.sep}store{os.sep}",
    f"{os.sep}remoting{os.sep}message{os.sep}",
)

ERRORS: Final[dict[str, Callable[[], BaseException]]] = {
    **{
        name: lambda name=name: OSError(  # type: ignore[misc]
            getattr(errno, name), os.strerror(getattr(errno, name)), "injected"
        )
        for name in ("ENOSPC", "EIO", "EMFILE")
    },
    "MemoryError": MemoryError,
}
"""The errors that a call may fail with, by name."""


class FailingFiles:
    """Another `Files` whose calls are counted; one planned call fails and does nothing."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.calls: Counter[str] = Counter()
        self._planned: tuple[str, int, BaseException] | None = None
        self.has_failed = False

    def plan(self, method: str, number: int, error: BaseException) -> None:
        """Plans that the `number`-th call of a method from now on, counted from 1, fails."""
        self._planned = method, self.calls[method] + number, error

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._files, name)
        if not callable(method):
            return method

        def call(*arguments: Any, **options: Any) -> Any:
            self.calls[name] += 1
            if self._planned is not None and self._planned[:2] == (name, self.calls[name]):
                self.has_failed = True
                raise self._planned[2]
            return method(*arguments, **options)

        return call


class CallCount:
    """The number of calls within the store."""

    def __init__(self) -> None:
        self.count = 0


@contextmanager
def at_call(number: int, happening: Callable[[], object]) -> Iterator[CallCount]:
    """Does something when the store or the codec of messages makes its n-th call of a function.

    Functions written in C count as well. That call raises what the happening raises.
    """
    counted = CallCount()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "c_call") or not any(
            part in frame.f_code.co_filename for part in _WITHIN
        ):
            return
        counted.count += 1
        if counted.count == number:
            happening()

    sys.setprofile(profile)
    try:
        yield counted
    finally:
        sys.setprofile(None)
