# SPDX-License-Identifier: Apache-2.0
"""What a signed request costs more than an unsigned one: microseconds of CPU, in process.

    .venv/bin/python -m benchmarks.signed [--rounds 200] [--only "send, JSON"]

A broker without accounts, one with ACL 1 and one with ACL 2 serve the same requests in turns of a
few milliseconds, each of them that of its own client. What counts is the least of many turns, since
others only ever add. The account is no administrator: it may send to the topic, and consume it.
"""

from __future__ import annotations

import argparse
import base64
import hmac
import json
import shutil
import struct
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, Final

from benchmarks import frames
from benchmarks.asked_broker import GROUP, request
from benchmarks.broker_journeys import BrokerJourneys
from benchmarks.choices import some_of
from benchmarks.sends import BATCH, binary_send, frame, json_send, plain

ACCOUNT: Final = "bench-account"
SECRET: Final = "bench-secret"  # noqa: S105 - nobody else has it
_ROOT: Final = "root", "root-secret"
PLAIN, ACL_1, ACL_2 = "no accounts", "ACL 1", "ACL 2"
KINDS: Final = PLAIN, ACL_1, ACL_2
_READS: Final = 80
_HEAD: Final = struct.Struct(">hBhiii")
_LENGTHS: Final = struct.Struct(">II")
_PLAIN_ACL: Final = (
    f"accounts:\n- accessKey: {ACCOUNT}\n  secretKey: {SECRET}\n"
    f"  topicPerms:\n  - bench=PUB|SUB\n  groupPerms:\n  - {GROUP}=SUB\n"
)
_POLICIES: Final = {"Topic:bench": ["Pub", "Sub"], f"Group:{GROUP}": ["Sub"]}


def signed(read: bytes, account: tuple[str, str] = (ACCOUNT, SECRET)) -> bytes:
    """Returns the requests of a read with the name of an account and its signature."""
    made, at = [], 0
    while at < len(read):
        length, mark = _LENGTHS.unpack_from(read, at)
        body_at = at + 8 + (mark & 0xFFFFFF)
        header, body = read[at + 8 : body_at], read[body_at : at + 4 + length]
        made.append(_signed_frame(header, body, mark >> 24, *account))
        at += 4 + length
    return b"".join(made)


def _signed_frame(header: bytes, body: bytes, kind: int, key: str, secret: str) -> bytes:
    content: dict[str, Any] = {} if kind else json.loads(header)
    fields = _fields(header) if kind else content.get("extFields") or {}
    fields["AccessKey"] = key
    values = "".join(fields[name] for name in sorted(fields)).encode()
    digest = hmac.digest(secret.encode(), values + body, "sha1")
    fields["Signature"] = base64.b64encode(digest).decode()
    if kind:
        return frame(header[: _HEAD.size] + binary_fields(fields), body, kind)
    content["extFields"] = fields
    return frame(json.dumps(content, separators=(",", ":")).encode(), body, kind)


def binary_fields(fields: dict[str, str]) -> bytes:
    """Encodes the fields of a binary header, with their length."""
    encoded = b"".join(
        struct.pack(">h", len(name)) + name.encode() + struct.pack(">i", len(text)) + text.encode()
        for name, text in fields.items()
    )
    return struct.pack(">i", len(encoded)) + encoded


def _fields(header: bytes) -> dict[str, str]:
    found, at = {}, _HEAD.size + 4
    while at < len(header):
        name_end = at + 2 + int.from_bytes(header[at : at + 2], "big")
        text_end = name_end + 4 + int.from_bytes(header[name_end : name_end + 4], "big")
        found[header[at + 2 : name_end].decode()] = header[name_end + 4 : text_end].decode()
        at = text_end
    return found


class Accounts(BrokerJourneys):
    """A broker with accounts of one kind or without any, and a client that signs accordingly."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._kind = kind
        self._account = ACCOUNT, SECRET
        settings: dict[str, Any] = {}
        if kind == ACL_1:
            home = folder / "home" / "conf"
            home.mkdir(parents=True)
            (home / "plain_acl.yml").write_text(_PLAIN_ACL)
            settings = {"acl_enable": True, "rocketmq_home": str(folder / "home")}
        elif kind == ACL_2:
            name, password = _ROOT
            settings = {
                "authentication_enabled": True,
                "authorization_enabled": True,
                "init_authentication_user": json.dumps({"username": name, "password": password}),
            }
        self._is_made = kind != ACL_2
        super().__init__(folder / "store", **settings)

    def answers(self, *reads: bytes) -> list[tuple[dict[str, Any], bytes]]:
        """Returns the answers to the requests in some reads, which it signs."""
        if not self._is_made:
            self._is_made = True
            self._make_account()
        return super().answers(*map(self.sealed, reads))

    def _make_account(self) -> None:
        entries = [
            {"resource": resource, "actions": actions, "decision": "Allow"}
            for resource, actions in _POLICIES.items()
        ]
        made = (
            (3001, {"username": ACCOUNT}, {"password": SECRET, "userType": "Normal"}),
            (3006, {"subject": f"User:{ACCOUNT}"}, {"policies": [{"entries": entries}]}),
        )
        for code, fields, body in made:
            data = request(code, fields, 1, body=json.dumps(body).encode())
            super().answers(signed(data, _ROOT))

    def turn_us(self, make: Callable[[int], bytes], in_a_read: int, *, is_signed: bool) -> float:
        """Returns the CPU time of a request in some reads of one turn of the reactor.

        Unsigned ones are served as if there were no accounts, by the same broker: so it has the
        same places in memory, which matter more than what is compared.
        """
        numbers = self.next((_READS if in_a_read == 1 else 3) * in_a_read)
        requests = [self.sealed(make(n)) if is_signed else make(n) for n in numbers]
        reads = [
            b"".join(requests[at : at + in_a_read]) for at in range(0, len(requests), in_a_read)
        ]
        guards = self.broker.guards
        kept = list(guards)
        if not is_signed:
            guards.clear()
        self.broker.clock.reactor.advance(0)
        kept_answers = self.sink.kept = bytearray()
        started = time.process_time_ns()
        for data in reads:
            self.peer.dataReceived(data)
        spent = time.process_time_ns() - started
        self.sink.kept = None
        guards[:] = kept
        answers, _ = frames.split(bytes(kept_answers))
        if [each for each, _ in answers if each["code"]] or len(answers) != len(requests):
            raise SystemExit(f"benchmarks.signed: {len(answers)} of {len(requests)} are answered")
        return spent / len(requests) / 1e3

    def sealed(self, read: bytes) -> bytes:
        """Returns the requests of a read as its client sends them."""
        return read if self._kind == PLAIN else signed(read, self._account)


def _pull_header(number: int) -> dict[str, Any]:
    made = frames.pull_message("bench", GROUP, 0, 0, opaque=number, version=1)
    [(header, _)], _ = frames.split(made)
    header["extFields"]["maxMsgNums"] = "1"
    return header


def json_pull(number: int) -> bytes:
    """Returns a pull of one message."""
    return frame(json.dumps(_pull_header(number), separators=(",", ":")).encode(), b"", 0)


def binary_pull(number: int) -> bytes:
    """Returns the same with a binary header."""
    fields = binary_fields(_pull_header(number)["extFields"])
    return frame(_HEAD.pack(11, 0, 407, number, 0, 0) + fields, b"", 1)


LOADS: Final[dict[str, Callable[[int], bytes]]] = {
    "send, JSON": lambda n: json_send(n, plain(n)),
    "send, binary": lambda n: binary_send(n, plain(n)),
    "pull, JSON": json_pull,
    "pull, binary": binary_pull,
}


Key = tuple[str, str, bool, int]
"""A load, a kind of accounts, whether requests are signed, and how many come in a read."""


def measure(rounds: int, only: list[str]) -> dict[Key, float]:
    """Returns the microseconds of a request."""
    folder = Path(tempfile.mkdtemp())
    best: dict[Key, float] = {}
    try:
        benches = {kind: Accounts(folder / kind, kind) for kind in (ACL_1, ACL_2)}
        for turn in range(rounds):
            # Whoever comes first finds other things in the caches of the processor.
            both = (False, True) if turn % 2 else (True, False)
            for name, kind, in_a_read, is_signed in product(only, benches, (1, BATCH), both):
                spent = benches[kind].turn_us(LOADS[name], in_a_read, is_signed=is_signed)
                key = name, kind, is_signed, in_a_read
                if turn:
                    best[key] = min(best.get(key, spent), spent)
        return best
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Reads the arguments, and prints a table."""
    parser = argparse.ArgumentParser(description="Measures what accounts cost, in process.")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--only", type=some_of(LOADS), default=list(LOADS))
    options = parser.parse_args()
    best = measure(options.rounds, options.only)
    kinds = ACL_1, ACL_2
    print(f"{'microseconds, 1 in a read / 32':<32}" + "".join(f"{each:>32}" for each in kinds))
    for name in options.only:
        row = ""
        for kind in kinds:
            plain_us, signed_us = (
                [best[name, kind, is_signed, each] for each in (1, BATCH)]
                for is_signed in (False, True)
            )
            more = [after - before for before, after in zip(plain_us, signed_us, strict=True)]
            row += f"{plain_us[0]:>12.2f} / {plain_us[1]:>5.2f}{more[0]:>+6.2f} / {more[1]:>+5.2f}"
        print(f"{name:<32}{row}")


if __name__ == "__main__":
    main()
