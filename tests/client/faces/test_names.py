# SPDX-License-Identifier: Apache-2.0
"""The names that all faces share."""

from __future__ import annotations

from txrocketmq.client.faces import names


def test_all_that_is_there_is_listed() -> None:
    public = {name for name in vars(names) if name[0] != "_" and name != "annotations"}
    assert public == set(names.__all__)
    assert names.__all__ == sorted(names.__all__)


def test_every_error_says_what_it_means() -> None:
    for name in names.__all__:
        assert getattr(names, name).__doc__, name
