# SPDX-License-Identifier: Apache-2.0
"""Frames of all kinds of requests that producers send, made by chance, and bytes that are none."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from random import Random
from typing import Final

from txrocketmq.remoting.frame.signer import ACCESS_KEY, SIGNATURE, Signer

_LENGTHS: Final = struct.Struct(">II")
_KEY: Final = "FD00000000000000000000000000000200010030946E09%010X"
TOPICS: Final = ("orders", "orders", "orders", "bills", "Großes", "%RETRY%g", "not/one", "new-%d")
_LONG: Final = {
    "a": "producerGroup", "b": "topic", "c": "defaultTopic", "d": "defaultTopicQueueNums",
    "e": "queueId", "f": "sysFlag", "g": "bornTimestamp", "h": "flag", "i": "properties",
    "j": "reconsumeTimes", "k": "unitMode", "l": "maxReconsumeTimes", "m": "batch", "n": "bname",
}  # fmt: skip


class Frames:
    """Makes frames by a source of chance; equal sources make equal frames."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._opaque = 0
        self._language = chance.choice(("JAVA", "GO"))
        self._ascii = chance.choice((True, False))
        self._is_shuffled = chance.choice((False, False, True))
        """Whether the fields come in another order each time, as with the Go client."""
        self.accounts: list[tuple[str, str]] = []
        """Keys and secrets, by one of which each request is signed; empty for unsigned ones."""
        self._code, self._is_long = chance.choice(((310, False), (310, False), (10, True)))

    def some(self, count: int) -> bytes:
        """So many frames, one after the other; most are usual ones."""
        return b"".join([self.one() for _ in range(count)])

    def one(self) -> bytes:
        """One frame."""
        usual = [self.send, self.send, self.send, self.batch, self.half]
        return self._chance.choice([*usual * 4, self.other_code, self.unusual, self.unusual])()

    def send(self, **changes: str) -> bytes:
        """A usual send: in one of the three forms, with or without an answer."""
        pick = self._chance.choice
        fields = self._fields(self._text()) | changes
        if pick((0, 0, 0, 1)):
            fields.pop("l", None)
        flag = 2 * pick((0, 0, 1))
        body = self._body()
        if self._is_long:
            fields = {_LONG.get(name, name): value for name, value in fields.items()}
        return self._frame(self._code, fields, body, flag)

    def usual(self, **changes: str) -> bytes:
        """A send that a kernel takes once its place is known; it wants an answer."""
        fields = self._fields(f"UNIQ_KEY\x01{self._key()}\x02WAIT\x01true") | {"b": "orders"}
        self._opaque += 1
        encoded = self._binary(310, self._signed(fields | changes, b"body"), 0)
        return _LENGTHS.pack(8 + len(encoded), 1 << 24 | len(encoded)) + encoded + b"body"

    def half(self, **changes: str) -> bytes:
        """A half message, whose header is flagged as such; a few of them say something else."""
        pick = self._chance.choice
        more = pick(
            (*["TRAN_MSG\x01true"] * 6, "TRAN_MSG\x01TRUE", "TRAN_MSG\x01no", "TRAN\x01true")
        )
        text = "\x02".join(pick(((more, self._text()), (self._text().rstrip("\x02"), more))))
        return self.send(**{"i": text, "f": "4"} | changes)

    def batch(self) -> bytes:
        """A batch of a few messages, or of many."""
        pick = self._chance.choice
        count = pick((1, 2, 3, 7, 40))
        entries = b"".join([self._entry() for _ in range(count)])
        text = pick(("", "WAIT\x01true", f"UNIQ_KEY\x01{self._key()}\x02WAIT\x01true\x02"))
        fields = self._fields(text) | {"m": "true"}
        return self._frame(pick((320, 320, 310)), fields, entries, 2 * pick((0, 0, 1)))

    def unusual(self) -> bytes:
        """A send that something is the matter with."""
        pick = self._chance.choice
        key = self._key()
        makers: tuple[Callable[[], bytes], ...] = (
            lambda: self.send(i=f"UNIQ_KEY\x01{key}\x02DELAY\x013"),
            lambda: self.send(i=f"UNIQ_KEY\x01{key}\x02KEYS\x01ä ö\x02TAGS\x01größe"),
            lambda: self.send(i=f"UNIQ_KEY\x01{key}\x02x\x01\x02y\x012"),
            lambda: self.send(i=f"UNIQ_KEY\x01{key}\x02UNIQ_KEY\x01{key}"),
            lambda: self.send(i=f"UNIQ_KEY\x01{key}\x02a\x011\x02a\x012"),
            lambda: self.send(i=f"UNIQ_KEY\x01{key}\x02a\x011\x013"),
            lambda: self.send(i=f"UNIQ_KEY\x01{key}\x02TRACE_ON\x01no"),
            lambda: self.send(i="a\x01b"),
            lambda: self.send(i=""),
            lambda: self.send(i="UNIQ_KEY\x01with-signs\x02b\x01\x7f"),
            lambda: self.send(i=f"UNIQ_KEY\x01{key}\x02TRAN_MSG\x01true\x02PGROUP\x01g"),
            lambda: self.half(i=f"UNIQ_KEY\x01{key}\x02TRAN_MSG\x01true\x02DELAY\x013"),
            lambda: self.half(i=f"UNIQ_KEY\x01{key}\x02TRAN_MSG\x01true\x02REAL_QID\x013"),
            lambda: self.half(i=f"TRAN_MSG\x01true\x02UNIQ_KEY\x01{key}\x02x\x01{'y' * 32_600}"),
            lambda: self.send(i=f"UNIQ_KEY\x01{key}\x02big\x01{'x' * 33_000}"),
            lambda: self.send(e="-1"),
            lambda: self.send(e="99"),
            lambda: self.send(b=pick(TOPICS).replace("%d", str(self._chance.randrange(3)))),
            lambda: self.send(f=pick(("1", "8", "12", "16", "x"))),
            lambda: self.send(g=pick(("-1", "", "12a", "9" * 19))),
            lambda: self.send(h="7", j="3"),
            lambda: self.send(Signature="abc", AccessKey="k"),
            lambda: self._frame(310, self._fields(self._text()), b"", 0),
            lambda: self._frame(310, {"a": "b"}, b"x", 0),
            lambda: self._frame(320, self._fields("") | {"m": "true"}, b"broken entries", 0),
            lambda: self._frame(320, self._fields("") | {"m": "true"}, self._odd_entries(), 0),
        )
        return pick(makers)()

    def pull(self, **changes: str) -> bytes:
        """A pull, which finds messages, or has to wait for them, or is refused."""
        pick = self._chance.choice
        fields = {
            "consumerGroup": pick(("readers", "readers", "others")),
            "topic": pick(("orders", "orders", "bills", "none")),
            "queueId": str(pick((0, 1, 1, 2, 3, 9))),
            "queueOffset": str(pick((0, 1, 2, 5, 30, 70, -1))),
            "maxMsgNums": pick(("1", "7", "32", "32", "64", "0", "-1")),
            "sysFlag": str(pick((4, 4, 5, 6, 7, 7, 0))),
            "commitOffset": str(pick((0, 3, 12))),
            "suspendTimeoutMillis": "800",
            "subscription": pick(("*", "*", "*", "paid", "sent || paid")),
            "subVersion": "0",
            "expressionType": "TAG",
        }
        if pick((0, 0, 1)):
            fields["maxMsgBytes"] = pick(("1", "700", "5000", "100000"))
        return self._frame(pick((11, 11, 11, 361)), fields | changes, b"", 0)

    def other_code(self) -> bytes:
        """A request that sends nothing."""
        pick = self._chance.choice
        fields = {"topic": pick(TOPICS), "queueId": "0", "group": "g"}
        return self._frame(pick((30, 31, 12345, 34)), fields, b"", 0)

    def mutated(self, frames: bytes) -> bytes:
        """The frames with some bytes changed, inserted or left out."""
        data = bytearray(frames)
        for _ in range(self._chance.randrange(1, 4)):
            at = self._chance.randrange(len(data))
            how = self._chance.randrange(4)
            if how == 0:
                data[at] = self._chance.randrange(256)
            elif how == 1:
                data[at] ^= 1 << self._chance.randrange(8)
            elif how == 2:
                del data[at : at + self._chance.randrange(3)]
            else:
                data[at:at] = bytes([self._chance.choice(b'"\\{},:0\x00\x01\x02\xff')])
        return bytes(data)

    def _fields(self, text: str) -> dict[str, str]:
        born = str(1_700_000_000_000 + self._chance.randrange(10_000))
        return {
            "a": "producers", "b": self._chance.choice(("orders", "orders", "bills")),
            "c": "TBW102", "d": "8", "e": str(self._chance.randrange(4)), "f": "0", "g": born,
            "h": "0", "i": text, "j": "0", "k": "false", "l": "0", "m": "false", "n": "broker-a",
        }  # fmt: skip

    def _key(self) -> str:
        return _KEY % self._chance.randrange(1 << 36)

    def _text(self) -> str:
        pick = self._chance.choice
        pairs = [f"UNIQ_KEY\x01{self._key()}"]
        if pick((0, 1)):
            pairs.append("WAIT\x01" + pick(("true", "true", "True", "false")))
        if pick((0, 1)):
            pairs.append("TAGS\x01" + pick(("paid", "sent", "ä")))
        if pick((0, 0, 1)):
            pairs.append("KEYS\x01" + pick(("one", "one two", "a  b", "  ")))
        if pick((0, 1)):
            pairs.append(
                "region\x01" + pick(('eu "central"', "back\\slash", "日本", "tab\t", "x/y"))
            )
        self._chance.shuffle(pairs)
        return "\x02".join(pairs) + pick(("", "\x02"))

    def _body(self) -> bytes:
        size = self._chance.choice((1, 5, 60, 400, 3_000))
        return self._chance.randbytes(size)

    def _entry(self, text: str | None = None) -> bytes:
        body = self._body()[:80]
        encoded = (self._chance.choice(("", self._text())) if text is None else text).encode()
        size = 22 + len(body) + len(encoded)
        head = struct.pack(">IIIiI", size, 0, 0, self._chance.randrange(3), len(body))
        return head + body + struct.pack(">h", len(encoded)) + encoded

    def _odd_entries(self) -> bytes:
        pick = self._chance.choice
        odd = pick(("DELAY\x012", "INNER_NUM\x012", "a\x011\x02a\x012", "a", "KEYS\x01ä"))
        return self._entry() + self._entry(odd) + self._entry()

    def _signed(self, fields: dict[str, str], body: bytes) -> dict[str, str]:
        """The fields with those of an account, of which the key may be missing."""
        if not self.accounts:
            return fields
        key, secret = self._chance.choice(self.accounts)
        if not key:
            return fields
        fields = fields | {ACCESS_KEY: key}
        return fields | {SIGNATURE: Signer(secret).signature(fields, body)}

    def _frame(self, code: int, fields: dict[str, str], body: bytes, flag: int) -> bytes:
        self._opaque += 1
        fields = self._signed(fields, body)
        if self._is_shuffled:
            items = list(fields.items())
            self._chance.shuffle(items)
            fields = dict(items)
        kind = self._chance.choice((0, 0, 0, 1))
        header = self._binary if kind and code < 1 << 15 else self._json
        encoded = header(code, fields, flag)
        kind = int(header == self._binary)
        return _LENGTHS.pack(4 + len(encoded) + len(body), kind << 24 | len(encoded)) + (
            encoded + body
        )

    def _json(self, code: int, fields: dict[str, str], flag: int) -> bytes:
        pick = self._chance.choice
        members = {
            "code": code, "extFields": fields, "flag": flag, "language": self._language,
            "opaque": pick((self._opaque, 2**31 - 1 - self._opaque)),
            "serializeTypeCurrentRPC": "JSON", "version": 407,
        }  # fmt: skip
        separators = (", ", ": ") if self._chance.random() < 0.05 else (",", ":")
        return json.dumps(members, separators=separators, ensure_ascii=self._ascii).encode()

    def _binary(self, code: int, fields: dict[str, str], flag: int) -> bytes:
        encoded = b"".join(
            struct.pack(">h", len(name)) + name.encode() + struct.pack(">i", len(text)) + text
            for name, text in ((name, value.encode()) for name, value in fields.items())
        )
        head = struct.pack(">hBhiii", code, 0, 407, self._opaque, flag, 0)
        return head + struct.pack(">i", len(encoded)) + encoded
