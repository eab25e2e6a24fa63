# SPDX-License-Identifier: Apache-2.0
"""TLS in memory: in any pieces, in any order of events, and against those who break its rules."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from hypothesis import given, settings
from hypothesis import strategies as st
from OpenSSL import SSL

from tests.certificates import pem
from tests.examples import examples
from tests.remoting.transport.secured import (
    MAX_HELD_BYTES,
    VERSIONS,
    Far,
    Line,
    client_of,
    server_of,
)
from txrocketmq.remoting.call import Buffer
from txrocketmq.remoting.errors import TlsError
from txrocketmq.remoting.transport.outlet import PIECE_BYTES
from txrocketmq.remoting.transport.tls.tls_outlet import TlsOutlet

OVERHEAD_BYTES = 64 * 1024
"""More than what TLS adds to one piece."""


class End:
    """One of our ends; `heard` is what the other one has said."""

    def __init__(self, context: ssl.SSLContext, *, server_side: bool) -> None:
        self.line = Line()
        self.times_established = 0
        self.heard = bytearray()
        self.outlet = TlsOutlet(
            self.line.outlet(), context, server_side=server_side, established=self._established
        )
        self.line.writer = self.outlet

    def _established(self) -> None:
        self.times_established += 1

    def hear(self, data: bytes) -> None:
        self.heard += self.outlet.take(data)


class Pair:
    """Client and server of ours; the client has begun."""

    def __init__(self, version: ssl.TLSVersion = VERSIONS[-1]) -> None:
        self.client = End(client_of(version), server_side=False)
        self.server = End(server_of(version), server_side=True)
        self.client.outlet.begin()

    def carry(self, count: int | None = None) -> bool:
        """Carries so many bytes each way, or all; returns whether there were any."""
        up = self.client.line.take(count)
        if up:
            self.server.hear(up)
        down = self.server.line.take(count)
        if down:
            self.client.hear(down)
        return bool(up or down)

    def settle(self, count: int | None = None) -> None:
        while self.carry(count):
            """Goes on."""


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> ssl.TLSVersion:
    found: ssl.TLSVersion = request.param
    return found


@pytest.fixture
def pair(version: ssl.TLSVersion) -> Pair:
    """Two ends whose handshake is over."""
    made = Pair(version)
    made.settle()
    return made


def served(context: ssl.SSLContext) -> tuple[End, Far]:
    """An end of ours that serves, and a client made by `ssl`, after their handshake."""
    end, far = (
        End(context, server_side=True),
        Far(client_of(context.maximum_version), server_side=False),
    )
    far.take()
    while leaving := far.leaving():
        end.hear(leaving)
        far.take(end.line.take())
    return end, far


# ----------------------------------------------------------------------------- handshakes


def test_a_handshake_may_come_byte_by_byte(version: ssl.TLSVersion) -> None:
    pair = Pair(version)
    pair.client.outlet.write([b"up"])
    pair.server.outlet.write([b"down"])
    pair.settle(1)
    assert (pair.client.heard, pair.server.heard) == (b"down", b"up")
    assert (pair.client.times_established, pair.server.times_established) == (1, 1)


def test_a_handshake_may_be_cut_anywhere(version: ssl.TLSVersion) -> None:
    first = len(Pair(version).client.line.held)
    for cut in range(1, first, 7):
        pair = Pair(version)
        pair.client.outlet.write([b"up"])
        hello = pair.client.line.take()
        for part in (hello[:cut], hello[cut:]):
            pair.server.hear(part)
        answer = pair.server.line.take()
        at = cut * len(answer) // first
        for part in (answer[:at], answer[at:]):
            pair.client.hear(part)
        pair.settle()
        assert pair.server.heard == b"up"


def test_what_is_written_before_the_end_of_the_handshake_waits(version: ssl.TLSVersion) -> None:
    pair = Pair(version)
    kept = bytearray(b"first")
    hello = bytes(pair.client.line.held)
    pair.client.outlet.write([memoryview(kept), b"second"])
    kept[:] = b"other"  # slices of mapped files do not last
    assert pair.client.line.held == hello
    assert pair.client.outlet.unsent_bytes() == len(b"firstsecond")
    pair.settle()
    pair.client.outlet.write([b"third"])
    pair.settle()
    assert pair.server.heard == b"firstsecondthird"
    assert pair.client.outlet.unsent_bytes() == 0


def test_who_waits_for_a_handshake_is_told_once(version: ssl.TLSVersion) -> None:
    pair = Pair(version)
    seen: list[int] = []
    pair.client.outlet._established = lambda: seen.append(pair.client.outlet.unsent_bytes())
    pair.client.outlet.write([b"up"])
    assert seen == []
    pair.settle()
    pair.client.outlet.write([b"more"])
    pair.server.outlet.write([b"down"])
    pair.settle()
    assert seen == [0], "what was written before has left then"
    assert pair.server.times_established == 1


def test_other_implementations_understand_it(version: ssl.TLSVersion) -> None:
    end, far = served(server_of(version))
    end.hear(far.say(b"up" * 50_000))
    assert end.heard == b"up" * 50_000
    end.outlet.write([b"down" * 50_000])
    assert far.take(end.line.take()) == b"down" * 50_000


# ----------------------------------------------------------------------- what is written


def test_nothing_leaves_in_the_clear(pair: Pair) -> None:
    secret = b"secret" * 100
    pair.server.outlet.write([secret, memoryview(secret)])
    assert len(pair.server.line.held) > 2 * len(secret)
    assert b"secret" not in pair.server.line.held


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 5_000_000])
def test_buffers_of_all_kinds_and_sizes_arrive(pair: Pair, size: int) -> None:
    content = bytes(index % 251 for index in range(size))
    half = content[: size // 2]
    parts: list[Buffer] = [b"a", bytearray(b"b"), memoryview(content), b"", half, b"z"]
    pair.server.outlet.write(parts)
    pair.server.outlet.write([b"end"])
    pair.settle()
    assert pair.client.heard == b"".join(parts) + b"end"


def test_no_more_is_encrypted_than_the_line_takes(pair: Pair) -> None:
    pair.server.outlet.write([bytes(5_000_000)])
    pair.server.outlet.write([b"end"])
    assert MAX_HELD_BYTES < len(pair.server.line.held) <= PIECE_BYTES + OVERHEAD_BYTES
    left = pair.server.outlet.unsent_bytes()
    assert pair.server.outlet._kept.size_bytes == 5_000_003 - PIECE_BYTES
    assert 5_000_003 - PIECE_BYTES <= left <= 5_000_003
    while pair.carry():
        assert pair.server.outlet.unsent_bytes() <= left
        left = pair.server.outlet.unsent_bytes()
        assert len(pair.server.line.held) <= PIECE_BYTES + OVERHEAD_BYTES
    assert pair.client.heard == bytes(5_000_000) + b"end"
    assert left == 0


def test_while_it_is_paused_it_encrypts_nothing_and_keeps_the_order(pair: Pair) -> None:
    outlet, line = pair.server.outlet, pair.server.line
    outlet.pause()
    kept = bytearray(b"b")
    outlet.write([b"a", memoryview(kept)])
    kept[:] = b"x"
    outlet.write([b"c" * PIECE_BYTES])
    assert line.held == b""
    assert outlet._leaves.pending == 0
    assert outlet.unsent_bytes() == 2 + PIECE_BYTES
    assert outlet.take(pair.client.line.take()) == b"", "it hears all the same"
    assert not outlet.resume(), "the line is full again"
    outlet.write([b"d"])
    pair.settle()
    assert pair.client.heard == b"ab" + b"c" * PIECE_BYTES + b"d"
    assert outlet.resume()


def test_the_messages_of_a_handshake_wait_for_the_line_too(version: ssl.TLSVersion) -> None:
    pair = Pair(version)
    pair.server.outlet.pause()
    pair.server.hear(pair.client.line.take())
    assert pair.server.line.held == b""
    assert pair.server.outlet.unsent_bytes() > 0
    pair.server.outlet.resume()
    pair.settle()
    assert (pair.client.times_established, pair.server.times_established) == (1, 1)


def test_a_buffer_may_change_as_soon_as_it_was_written(pair: Pair) -> None:
    short, long = bytearray(b"short"), bytearray(b"l" * 1_000_000)
    for buffer in (short, long):
        pair.server.outlet.write([memoryview(buffer)])
        buffer[:] = bytes(len(buffer))
    pair.settle()
    assert pair.client.heard == b"short" + b"l" * 1_000_000


sizes = st.one_of(st.integers(0, 100), st.integers(0, 600 * 1024))
events = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["up", "down"]), st.lists(sizes, min_size=1, max_size=3)),
        st.tuples(st.just("carry"), st.one_of(st.integers(1, 3_000), st.integers(1, 300_000))),
        st.tuples(st.sampled_from(["pause", "resume"]), st.booleans()),
    ),
    min_size=1,
    max_size=25,
)


@given(events, st.sampled_from(VERSIONS))
@settings(max_examples=examples(30))
def test_whatever_happens_when_all_arrives_in_order(
    happened: list[tuple[str, Any]], version: ssl.TLSVersion
) -> None:
    pair, byte = Pair(version), 0
    said = {"up": bytearray(), "down": bytearray()}
    for what, value in happened:
        if what == "carry":
            pair.carry(value)
        elif what in said:
            parts: list[Any] = []
            for size in value:
                byte = (byte + 1) % 251
                parts.append(memoryview(bytearray([byte]) * size))
            said[what] += b"".join(parts)
            (pair.client if what == "up" else pair.server).outlet.write(parts)
            for part in parts:
                part[:] = bytes(len(part))
        else:
            outlet = (pair.client if value else pair.server).outlet
            outlet.pause() if what == "pause" else outlet.resume()
    for end in (pair.client, pair.server):
        end.outlet.resume()
    pair.settle()
    assert pair.server.heard == said["up"]
    assert pair.client.heard == said["down"]
    assert (pair.client.outlet.unsent_bytes(), pair.server.outlet.unsent_bytes()) == (0, 0)


# -------------------------------------------------------------------------------- the end


def test_the_other_end_is_told_that_nothing_more_comes(version: ssl.TLSVersion) -> None:
    end, far = served(server_of(version))
    end.outlet.write([b"last"])
    end.outlet.end()
    end.outlet.write([b"too late"])
    end.outlet.write([bytes(PIECE_BYTES + 1)])
    assert far.take(end.line.take()) == b"last"
    assert far.is_told_the_end
    end.outlet.end()
    assert (end.line.held, end.outlet.unsent_bytes()) == (b"", 0)


def test_what_was_kept_comes_before_the_end(version: ssl.TLSVersion) -> None:
    end, far = served(server_of(version))
    end.line.writer = None  # as Twisted, which pauses nobody who has unregistered
    end.outlet.pause()
    end.outlet.write([b"kept" * 300_000])
    end.outlet.resume()
    end.outlet.end()
    assert far.take(end.line.take()) == b"kept" * 300_000
    assert far.is_told_the_end


def test_an_end_before_the_handshake_is_over_says_nothing(version: ssl.TLSVersion) -> None:
    pair = Pair(version)
    pair.client.line.take()
    pair.client.outlet.end()
    pair.client.outlet.write([b"too late"])
    assert pair.client.line.held == b""


def test_one_that_has_ended_still_hears(version: ssl.TLSVersion) -> None:
    end, far = served(server_of(version))
    end.outlet.end()
    end.hear(far.say(b"answer") + far.say(b"another"))
    assert end.heard == b"answeranother"


def test_after_the_end_of_the_other_nothing_is_heard_or_held(version: ssl.TLSVersion) -> None:
    end, far = served(server_of(version))
    end.hear(far.say(b"last") + far.end())
    assert end.heard == b"last"
    for _ in range(100):
        end.hear(bytes(PIECE_BYTES))
    assert end.heard == b"last"
    assert end.outlet._came.pending <= PIECE_BYTES


# -------------------------------------------------------------------- against the rules


@pytest.mark.parametrize("server_side", [True, False])
@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x00\x04junkjunk",
        b"\x16" + bytes(1_000),
        b"\x16\x03\x01\xff\xff" + bytes(100),
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        bytes(100),
    ],
)
def test_garbage_instead_of_a_handshake_is_one_error(garbage: bytes, server_side: bool) -> None:
    end = End(server_of() if server_side else client_of(), server_side=server_side)
    with pytest.raises(TlsError, match="^no TLS handshake: [a-z0-9 ]+$"):
        end.hear(garbage)
    end.outlet.write([b"answer"])
    end.outlet.end()
    assert b"answer" not in end.line.held
    for _ in range(100):
        end.hear(bytes(PIECE_BYTES))
    assert end.outlet._came.pending <= PIECE_BYTES, "what nobody reads is not held"
    assert (end.heard, end.times_established) == (b"", 0)


def test_who_does_not_trust_is_told_why_and_tells_it() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    client, far = End(context, server_side=False), Far(server_of(), server_side=True)
    client.outlet.begin()
    far.take(client.line.take())
    client.outlet.write([b"secret"])
    with pytest.raises(TlsError, match="^no TLS handshake: certificate verify failed .self-signed"):
        client.hear(far.leaving())
    far.take(client.line.take())
    assert far.error is not None
    assert far.error.reason == "TLSV1_ALERT_UNKNOWN_CA"


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@given(st.integers(0, 2**20), st.sampled_from(VERSIONS))
@settings(max_examples=examples(40))
def test_a_bit_that_was_changed_on_the_way_is_never_heard(at: int, version: ssl.TLSVersion) -> None:
    end, far = served(server_of(version))
    words = [far.say(b"one"), far.say(b"two"), far.say(b"three" * 50)]
    sent = b"".join(words)
    try:  # if the length of a record was changed, there may be no error yet
        end.hear(flipped(sent, at % (8 * len(sent))))
    except TlsError as error:
        assert str(error).startswith("TLS: ")
        end.outlet.write([b"answer"])
        assert end.outlet.unsent_bytes() == 0
        end.hear(far.say(b"more"))
    assert end.heard in (b"", b"one", b"onetwo")


@pytest.mark.parametrize(("good", "wrong"), [((), 1), ((0,), 0), ((0,), 2), ((0, 1), 0)])
def test_records_come_once_and_in_order(
    version: ssl.TLSVersion, good: tuple[int, ...], wrong: int
) -> None:
    end, far = served(server_of(version))
    records = [far.say(b"one"), far.say(b"two"), far.say(b"three")]
    for index in good:
        end.hear(records[index])
    with pytest.raises(TlsError, match="^TLS: decryption failed or bad record mac$"):
        end.hear(records[wrong])
    assert end.heard == b"onetwo"[: 3 * len(good)]


def test_a_plain_frame_after_the_handshake_is_an_error(pair: Pair) -> None:
    with pytest.raises(TlsError, match="^TLS: wrong version number|packet length"):
        pair.server.hear(b"\0\0\0\x10" + bytes(16))


class Renegotiating:
    """An end by pyOpenSSL, which can ask for another handshake in the middle of a connection."""

    def __init__(self, *, server_side: bool) -> None:
        context = SSL.Context(SSL.TLSv1_2_METHOD)
        key: Any = serialization.load_pem_private_key(pem("server"), None)
        context.use_privatekey(key)
        context.use_certificate(x509.load_pem_x509_certificate(pem("server")))
        self.tls = SSL.Connection(context, None)
        self.tls.set_accept_state() if server_side else self.tls.set_connect_state()

    def shake(self, came: bytes = b"") -> bytes:
        """Goes on with a handshake; returns what leaves."""
        if came:
            self.tls.bio_write(came)
        return self._left(self.tls.do_handshake)

    def ask_again(self) -> bytes:
        assert self.tls.renegotiate()
        return self.shake()

    def say(self, data: bytes) -> bytes:
        return self._left(lambda: self.tls.send(data))

    def _left(self, work: Callable[[], object]) -> bytes:
        try:
            work()
        except SSL.WantReadError:
            """The other end has to say something first."""
        try:
            return bytes(self.tls.bio_read(1 << 20))
        except SSL.WantReadError:
            return b""


@pytest.mark.parametrize("server_side", [True, False])
def test_nobody_begins_another_handshake(server_side: bool) -> None:
    version = ssl.TLSVersion.TLSv1_2
    end = End(server_of(version) if server_side else client_of(version), server_side=server_side)
    far = Renegotiating(server_side=not server_side)
    end.outlet.begin() if not server_side else end.hear(far.shake())
    while came := end.line.take():
        end.hear(far.shake(came))
    assert end.times_established == 1
    end.hear(far.say(b"before"))
    end.hear(far.ask_again())
    end.outlet.write([b"in the middle"])
    far.tls.bio_write(end.line.take())
    with pytest.raises(SSL.Error, match="no renegotiation"):
        far.tls.recv(100)
    assert end.heard == b"before"
    assert end.times_established == 1


# ----------------------------------------------------------------------------- memory


def test_what_openssl_keeps_is_counted_and_does_not_grow_with_what_is_said(pair: Pair) -> None:
    at_first = pair.server.outlet.state_bytes
    assert 24 * 1024 < at_first < 40 * 1024
    for _ in range(3):
        pair.client.outlet.write([bytes(1 << 20)])
        pair.server.outlet.write([bytes(1 << 20)])
        pair.settle()
    assert len(pair.server.heard) == len(pair.client.heard) == 3 << 20
    for each in (pair.client, pair.server):
        assert at_first < each.outlet.state_bytes < 160 * 1024
