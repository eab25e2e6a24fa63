# SPDX-License-Identifier: Apache-2.0
"""The brokers that options name, such as in startingOffsets or assign.

Brokers of different clusters may have the same name, and are named with their clusters then, as in
`east/broker-a`: see `Store.key`. Otherwise the name alone is enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.store.store import Store


def check_brokers(stores: Sequence[Store], options: SourceOptions) -> None:
    """Raises OptionError if an option names a broker to which no store or several belong."""
    keys = {store.key for store in stores}
    known = Counter(store.broker_name for store in stores)
    named = {
        "assign": options.assign,
        "startingOffsets": options.starting_offsets,
        "endingOffsets": options.ending_offsets,
    }
    for name, value in named.items():
        for broker in sorted(value.brokers() - keys) if value else ():
            if broker not in known:
                raise OptionError(
                    f"option {name} names the broker {broker}; the stores are of {sorted(known)}"
                )
            if known[broker] > 1:
                raise OptionError(
                    f"option {name} names the broker {broker}, which several clusters have; name"
                    f" one of {sorted(keys)}"
                )
