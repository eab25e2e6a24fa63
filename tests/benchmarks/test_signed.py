# SPDX-License-Identifier: Apache-2.0
"""What a signed request costs more than an unsigned one, in instructions.

The hashes are more of them than anything else: valgrind has no instructions for SHA-1, which most
processors have. Other interpreters and other libraries need a few more or fewer than those with
which the limits were found (CPython 3.11 without optimization by profiles, OpenSSL 3.0).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from benchmarks import frames, signed
from benchmarks.instructions import NoValgrind, instructions
from txrocketmq.remoting.frame.frame import FrameDecoder
from txrocketmq.remoting.frame.signer import Signer
from txrocketmq.remoting.process.compiled_kernel import VARIABLE

LIMITS: Final = {
    ("send, JSON", 1): 39_000,
    ("send, JSON", 32): 37_500,
    ("pull, JSON", 1): 23_000,
    ("pull, JSON", 32): 22_000,
}
"""By load and requests in a read: how many instructions a signed request takes more."""


@pytest.mark.timeout(900)
def test_a_signed_request_needs_few_instructions_more(monkeypatch: pytest.MonkeyPatch) -> None:
    # The kernel has limits of its own: tests/kernel/test_instructions.py.
    monkeypatch.setenv(VARIABLE, "off")
    kinds = signed.PLAIN, signed.ACL_2
    try:
        counts = instructions((f"{name}, {kind}", n) for name, n in LIMITS for kind in kinds)
    except NoValgrind as reason:
        pytest.skip(f"instructions cannot be counted: {reason}")
    more = {
        (name, n): counts[f"{name}, {signed.ACL_2}", n] - counts[f"{name}, {signed.PLAIN}", n]
        for name, n in LIMITS
    }
    assert {each for each, count in more.items() if count > LIMITS[each]} == set(), more
    # What checks no signature would stay below any limit.
    assert all(count > LIMITS[each] / 3 for each, count in more.items()), more


@pytest.mark.parametrize("name", signed.LOADS)
def test_requests_are_signed_as_clients_sign_them(name: str) -> None:
    plain = b"".join(map(signed.LOADS[name], range(3)))
    found = FrameDecoder().receive(signed.signed(plain))
    signer = Signer(signed.SECRET)
    for command, bare in zip(found, FrameDecoder().receive(plain), strict=True):
        fields = dict(command.ext_fields or {})
        assert signer.accepts(fields, command.body, fields.pop("Signature"))
        assert fields.pop("AccessKey") == signed.ACCOUNT
        assert (fields, command.body) == (bare.ext_fields, bare.body)
        assert (command.code, command.opaque) == (bare.code, bare.opaque)


@pytest.mark.parametrize("kind", signed.KINDS)
def test_each_kind_of_accounts_lets_the_client_do_what_is_measured(
    tmp_path: Path, kind: str
) -> None:
    bench = signed.Accounts(tmp_path, kind)
    for name, make in signed.LOADS.items():
        assert bench.turn_us(make, 4, is_signed=kind != signed.PLAIN) > 0, name
    if kind != signed.PLAIN:
        answer = bytearray()
        bench.sink.kept = answer
        bench.peer.dataReceived(signed.json_pull(0))
        ((header, _),) = frames.split(bytes(answer))[0]
        assert header["code"], json.dumps(header)
