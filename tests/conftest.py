# SPDX-License-Identifier: Apache-2.0
"""Fixtures that tests of several packages use."""

from __future__ import annotations

import json
import os
import re
import signal
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import durations, examples, failures

examples.register()

GOLDEN = Path(__file__).parent / "golden"
GOLDEN_VERSIONS = ("4.9.7", "5.4.0")


def pytest_configure(config: pytest.Config) -> None:
    """Resets signals to what they mean at a terminal, also for runs under nohup or a script."""
    durations.register(config)
    failures.register(config)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


_LONG = ("test_pages", "test_commands", "test_bad_peers")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs the few long tests first, so that no worker is left with them in the end.

    Workers compare the names of the tests they have found, so a name must be the same in each.
    """
    for item in items:
        if re.search(r"\bat 0x[0-9a-f]+", item.name):
            raise pytest.UsageError(f"a test's name contains an address of memory: {item.nodeid}")
    items.sort(key=lambda item: item.path.stem not in _LONG)


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Makes syncs do nothing: no power fails during tests, and what is written can be read.

    Servers in processes of their own still sync. What must be synced, and when, is tested with
    disks that lose what is not: see tests/broker/store.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # a closed descriptor is still an error
        patch.setattr(os, "fdatasync", os.fstat)
        yield


@pytest.fixture(scope="session")
def golden_store(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns by version, "4.9.7" or "5.4.0", a folder of `clean`, `crashed` and `messages.jsonl`.

    It is unpacked once per session and shared: a test that writes has to copy what it needs.
    """
    unpacked: dict[str, Path] = {}

    def unpack(version: str) -> Path:
        if version not in unpacked:
            target = tmp_path_factory.mktemp(f"golden-{version}")
            with tarfile.open(GOLDEN / f"{version}.tar.xz") as archive:
                archive.extractall(target, filter="data")
            unpacked[version] = target
        return unpacked[version]

    return unpack


@pytest.fixture(scope="session")
def golden_messages(golden_store: Callable[[str], Path]) -> Callable[[str], list[dict[str, Any]]]:
    """Returns by version what the Java client pulled from that store, message by message."""

    def read(version: str) -> list[dict[str, Any]]:
        lines = (golden_store(version) / "messages.jsonl").read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines]

    return read


@pytest.fixture(scope="session", params=GOLDEN_VERSIONS)
def golden_version(request: pytest.FixtureRequest) -> str:
    """The versions of golden stores, in turn."""
    return str(request.param)
