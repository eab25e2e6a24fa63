# SPDX-License-Identifier: Apache-2.0
"""Our strategies and those of the official jars distribute queues among random groups."""

import random
import time
from pathlib import Path

import pytest

from compat_tests.engine import Engine
from compat_tests.jars import RELEASES, resolve
from compat_tests.java_client import compile_program
from tests.client.consumer.group.test_allocation import ALL, queues_of

SOURCES = Path(__file__).parent.parent / "tests" / "golden" / "allocation"
GROUPS = 60
_ENDS_S = 120


@pytest.mark.parametrize("release", RELEASES)
def test_each_member_gets_what_the_jar_gives_it(release: str, engine: Engine) -> None:
    seed = random.SystemRandom().getrandbits(31)
    classes = compile_program(release, engine, SOURCES, "client", "PrintAllocations")
    jars = sorted(resolve(release, "client").glob("*.jar"))
    path = ":".join(str(each) for each in (classes, *jars))
    arguments = ["-cp", path, "PrintAllocations", str(seed), str(GROUPS)]
    process = engine.start(f"allocations-{release}", arguments, {})
    deadline = time.monotonic() + _ENDS_S
    while process.alive():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    lines = [line.split("\t") for line in process.log().splitlines() if line.count("\t") == 4]
    assert {name for name, *_ in lines} == ALL.keys()
    for name, all_queues, members, member, expected in lines:
        share = ALL[name](member, queues_of(all_queues), members.split(","))
        assert share == queues_of(expected), f"{name} of seed {seed}: {members} {all_queues}"
