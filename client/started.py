# SPDX-License-Identifier: Apache-2.0
"""What was begun and is not waited for: each face makes its own kind of future of it."""

from __future__ import annotations

from typing import Generic, TypeVar

from twisted.internet.defer import Deferred

T = TypeVar("T")


class Started(Generic[T]):
    """`result` fires when it is done; a Deferred alone would be waited for."""

    def __init__(self, result: Deferred[T]) -> None:
        self.result = result
