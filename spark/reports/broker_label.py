# SPDX-License-Identifier: Apache-2.0
"""How reports name a broker, as part of a query over the columns `cluster` and `brokerName`."""

from __future__ import annotations

from typing import Final

BROKER_LABEL: Final = """\
if(min(cluster) OVER (PARTITION BY brokerName)
            = max(cluster) OVER (PARTITION BY brokerName),
          brokerName, concat(cluster, '/', brokerName))"""
"""The broker's name, as options name it: with its cluster where several have one of that name."""
