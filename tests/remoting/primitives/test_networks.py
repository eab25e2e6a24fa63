# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from ipaddress import IPv4Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.primitives.networks import Networks, is_host_and_port, is_loopback

SOME = Networks(["10.1.0.0/16", " 192.0.2.7 ", "2001:db8::/32", "10.2.3.4/16"])


@pytest.mark.parametrize(
    ("host", "is_in"),
    [
        ("10.1.255.255", True),
        ("10.2.0.1", True),
        ("10.3.0.1", False),
        ("192.0.2.7", True),
        ("192.0.2.8", False),
        ("::ffff:192.0.2.7", True),
        ("2001:db8:1::2%eth0", True),
        ("2001:db9::", False),
        ("/run/socket", False),
        ("", False),
    ],
)
def test_addresses(host: str, is_in: bool) -> None:
    assert (host in SOME) is is_in
    assert host not in Networks()


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 32))
def test_a_network_has_the_addresses_that_share_its_prefix(one: int, other: int, bits: int) -> None:
    text = f"{IPv4Address(one)}/{bits}"
    shares = one >> (32 - bits) == other >> (32 - bits)
    assert (str(IPv4Address(other)) in Networks([text])) is shares
    assert str(ip_network(text, strict=False)[0]) in Networks([text])


@pytest.mark.parametrize("text", ["*", "localhost", "10.0.0.0/33", "", "10.0.0.1-9"])
def test_what_is_neither_is_named(text: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        Networks(["10.0.0.1", text])
    assert caught.value.args == (text,)


@pytest.mark.parametrize(
    ("host", "is_so"),
    [
        *[(each, True) for each in ("127.0.0.1", "127.8.8.8", "::1", "localhost")],
        *[(each, False) for each in ("", "0.0.0.0", "::", "10.0.0.1", "a.example")],
    ],
)
def test_loopback(host: str, is_so: bool) -> None:
    assert is_loopback(host) is is_so


def test_no_networks_are_false() -> None:
    assert not Networks()
    assert Networks(["10.0.0.0/8"])


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("10.0.0.1:9876", True),
        ("host-name:1", True),
        ("[2001:db8::1]:65535", True),
        ("2001:db8::1:5", False),
        ("a:0", False),
        ("a:65536", False),
        ("a", False),
        (":5", False),
        ("a b:5", False),
        ("", False),
    ],
)
def test_what_looks_like_a_host_and_a_port(text: str, is_one: bool) -> None:
    assert is_host_and_port(text) is is_one
