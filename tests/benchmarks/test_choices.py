# SPDX-License-Identifier: Apache-2.0
"""Names of loads and clients that a benchmark is told to run."""

import argparse

import pytest

from benchmarks.choices import some_of


def test_known_names() -> None:
    assert some_of(["sync", "async"])("async,sync") == ["async", "sync"]


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="'python' is none of ours, java"):
        some_of(["ours", "java"])("ours,python")
