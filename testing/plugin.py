# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: a name server and a broker for tests, as fixtures.

`rocketmq` is a server of the test's own; @pytest.mark.rocketmq(autoCreateTopicEnable=False) gives
its broker settings, under their names in broker.conf. `rocketmq_server` is one for the whole run.
Both have `namesrv_addr`, `broker_addr`, `advance(ms)` and `stop()`: see txrocketmq.testing.server,
which is imported only when a test asks for a server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from txrocketmq.testing.server import Server


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known."""
    config.addinivalue_line(
        "markers", "rocketmq(**settings): settings of the broker that the rocketmq fixture starts"
    )


@pytest.fixture
def rocketmq(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A name server and a broker for one test."""
    from txrocketmq.testing.server import running  # noqa: PLC0415 - see the module

    settings: dict[str, object] = {}
    for marker in reversed(list(request.node.iter_markers("rocketmq"))):
        settings |= marker.kwargs
    with running(**settings) as server:
        yield server


@pytest.fixture(scope="session")
def rocketmq_server() -> Iterator[Server]:
    """A name server and a broker for all tests of a run: each test takes topics of its own."""
    from txrocketmq.testing.server import running  # noqa: PLC0415 - see the module

    with running() as server:
        yield server
