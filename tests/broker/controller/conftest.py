# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from tests.broker.store.conftest import message

__all__ = ["message"]
