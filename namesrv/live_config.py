# SPDX-License-Identifier: Apache-2.0
"""The settings in force: replaced whole when UPDATE_NAMESRV_CONFIG changes some of them."""

from __future__ import annotations

from dataclasses import dataclass

from txrocketmq.namesrv.config import NamesrvConfig


@dataclass(slots=True)
class LiveConfig:
    """Read `config` at each use."""

    config: NamesrvConfig
