# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: a name server and a broker for tests, as fixtures.

The fixture `rocketmq` starts a server for one test. The marker
@pytest.mark.rocketmq(autoCreateTopicEnable=False) sets settings of its broker, by their names in
broker.conf; with accounts=True, clients need an account. The fixture `rocketmq_server` starts one
server for the whole test run; with pytest-xdist, that is one server for each worker process.
txrocketmq.testing.server describes both; it is imported only when a test asks for a server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from txrocketmq.testing.server import Server


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker."""
    config.addinivalue_line(
        "markers", "rocketmq(**settings): settings for the broker of the rocketmq fixture"
    )


@pytest.fixture
def rocketmq(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A name server and a broker for one test."""
    from txrocketmq.testing import server  # noqa: PLC0415 - see the module

    settings: dict[str, object] = {}
    for marker in reversed(list(request.node.iter_markers("rocketmq"))):
        if marker.args:
            pytest.fail(
                "@pytest.mark.rocketmq takes settings by name, as in"
                f" autoCreateTopicEnable=False, not {marker.args[0]!r}",
                pytrace=False,
            )
        settings |= marker.kwargs
    made, why = None, ""
    try:
        made = server.Server.start(**settings)
    except ValueError as error:
        why = str(error)
    if made is None:  # here, as pytest would show the other error as well
        pytest.fail(f"@pytest.mark.rocketmq: {why}", pytrace=False)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="session")
def rocketmq_server() -> Iterator[Server]:
    """A name server and a broker for all tests of a run, or of an xdist worker.

    The tests share it, so each should use topics and groups of its own, or begin with `reset()`.
    """
    from txrocketmq.testing.server import running  # noqa: PLC0415 - see the module

    with running() as server:
        yield server
