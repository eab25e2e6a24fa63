# SPDX-License-Identifier: Apache-2.0
"""The file with the id that a controller has given a broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from txrocketmq.broker.controller.identity_file import Applied, IdentityFile


def identity(folder: Path) -> IdentityFile:
    made = IdentityFile(folder / "brokerIdentity", "C", "ba")
    made.load()
    return made


def test_an_id_is_applied_for_and_granted(tmp_path: Path) -> None:
    made = identity(tmp_path)
    assert made.broker_id is None
    made.apply(1, "127.0.0.1:10911;5")
    again = identity(tmp_path)
    assert again.applied == Applied(1, "127.0.0.1:10911;5")
    assert again.broker_id is None
    again.granted()
    assert (tmp_path / "brokerIdentity").read_bytes() == b"C#ba#1"
    assert identity(tmp_path).broker_id == 1
    assert identity(tmp_path).applied is None


def test_an_id_that_was_refused_is_forgotten(tmp_path: Path) -> None:
    made = identity(tmp_path)
    made.apply(1, "x;5")
    made.refused()
    made.granted()
    assert (made.broker_id, identity(tmp_path).applied) == (None, None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no identity"),
        ("C#ba", "is no identity"),
        ("C#ba#one", "is no identity"),
        ("C#ba#1#2", "is no identity"),
        ("C#other#1", "belongs to the broker other of C, not to ba of C"),
        ("D#ba#1", "is storePathRootDir that of another broker"),
    ],
)
def test_a_file_that_cannot_be_right_is_named(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "brokerIdentity").write_text(text, "utf-8")
    with pytest.raises(ValueError, match=why):
        identity(tmp_path)
