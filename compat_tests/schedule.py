# SPDX-License-Identifier: Apache-2.0
"""The order in which workers take modules of scenarios: those that take long come first.

A worker takes a whole module, as the tests of a module may share a broker. If a long one were taken
last, the other workers would have nothing to do meanwhile. The seconds need not be exact, and a
module that is not named takes less than a minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

SECONDS: Final = {
    "test_recipes": 550,
    "test_pop_exchange": 370,
    "test_our_consumers_restart": 344,
    "test_grpc_clients": 332,
    "test_pop_batches": 316,
    "test_acting_master": 300,
    "test_replication": 263,
    "test_java_pop": 251,
    "test_compose": 245,
    "test_image": 235,
    "test_rejoin": 232,
    "test_java_timer": 230,
    "test_language_pages": 224,
    "test_replica_kills": 210,
    "test_python_pop": 207,
    "test_config_copy": 197,
    "test_java_transaction": 186,
    "test_store_exchange": 179,
    "test_accounts": 175,
    "test_our_consumers": 166,
    "test_our_slave": 150,
    "test_our_producers_restart": 135,
    "test_java_priority": 133,
    "test_tls": 133,
    "test_distribution": 129,
    "test_action": 126,
    "test_account_clients": 125,
    "test_grpc_page": 120,
    "test_mqadmin": 117,
    "test_java_filter": 114,
    "test_dashboard": 113,
    "test_light_queues": 107,
    "test_java_groups": 105,
    "test_batch_queues": 96,
    "test_registration": 77,
    "test_grpc_accounts": 69,
    "test_guarded_names": 65,
    "test_python_admin": 60,
    "test_admin_accounts": 60,
    "test_python_consumer": 55,
}
"""How long a module takes, in seconds, beside the other kinds of tests."""


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Returns the tests with the longest modules first; within a module, they stay in order."""
    return sorted(items, key=lambda item: -SECONDS.get(item.path.stem, 0))
