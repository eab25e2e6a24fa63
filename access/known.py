# SPDX-License-Identifier: Apache-2.0
"""Requests that are like allowed ones: what is known of them, so that their signature is enough.

An authority looks at a request in a certain order, and remarks follow from it. Nearly all requests
are sends and pulls that differ from an allowed one in nothing that the decision depends on: they
come from the same address, have the same code, and name the same account and resources. Of them,
all at once is looked up what the account signs with. Each is checked with its own signature;
whatever is not known, or is not signed as it should be, is left to the authority, which decides
about it as if nothing were known. What acts on the server as a whole, and so may change accounts,
never is known.

The names of fields in a header recur, so what picks values out of it is made once for each set of
names, whatever their order: the Go client writes them in another one each time. A header with as
many fields, and all of these names among them, has the same set.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hmac import compare_digest
from itertools import count
from operator import itemgetter
from typing import Any, Final

from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.signer import ACCESS_KEY, SIGNATURE, Signer, signed_values

MOST_WAYS: Final = 4_096
"""For how many addresses, codes and sets of names something is known; then all is forgotten."""
MOST_KNOWN: Final = 4_096
"""How many combinations of an account and what it names are known; then all are forgotten."""
_LONGEST: Final = 1_024
"""What names longer texts than this, in characters, is not kept, and neither are such names."""
_MOST_NAMES: Final = 64
_UNLIKE: Final = (KeyError, TypeError, AttributeError, UnicodeEncodeError)
"""What comes of a request with other names, with none, with values that are no texts, or with half
a surrogate pair in one."""


def host_of(address: str) -> str:
    """Returns the IP of "ip:port" or "[ip6]:port", without the zone of an IPv6 address."""
    return address.rpartition(":")[0].strip("[]").partition("%")[0]


class _Way:
    """Requests with a code from an address, with a set of names.

    `parts` has the number of names; what picks the signed values, and the account together with
    all else that decides; and by the latter, the two states of the secret of those that are known.
    """

    __slots__ = ("parts",)

    def __init__(self, names: Collection[str], deciding: Iterable[str]) -> None:
        who = itemgetter(ACCESS_KEY, *(name for name in deciding if name in names))
        known: dict[Any, tuple[Any, Any]] = {}
        self.parts = len(names), signed_values(names), who, known


class KnownRequests:
    """What an authority has learned about requests that it allows. It has to `clear` all of it
    whenever accounts change.

    `deciding` returns, by the code of a request, which of its fields a decision depends on. These
    are the same for all accounts, also for those that may do everything: if they were not, what is
    known of an account would depend on who has sent such a request first.

    By which way a peer came last with each code is kept at the peer, which asks again in the same
    way. So a peer must be one that no other authority sees.

    Others may remember that a request was known, and check signatures by themselves: by the signer
    of its account, for requests from the same origin that have the same code and names, and the
    same fields that decide, and until `on_clear`.
    """

    def __init__(self, deciding: Callable[[int], Sequence[str]]) -> None:
        self._deciding = deciding
        self._ways: dict[tuple[str, int, frozenset[str]], _Way] = {}
        self._count = 0
        self._signers: dict[str, Signer] = {}
        """By account."""
        self._origins: dict[str, int] = {}
        self._numbers = count(1)
        self.on_clear: list[Callable[[], object]] = []
        """Each is called when everything is forgotten, before anything else is served."""

    def clear(self) -> None:
        """Forgets everything, also of ways that peers have kept."""
        for way in self._ways.values():
            *_, known = way.parts
            known.clear()
        self._ways.clear()
        self._signers.clear()
        self._count = 0
        for listener in self.on_clear:
            listener()

    def learn(self, command: RemotingCommand, host: str, signer: Signer) -> None:
        """Remembers a request that is signed by an account and allowed to it.

        The same is allowed from this address, with this code, to the account, whenever the fields
        that decide are the same or as absent as here. `signer` is that of the account.
        """
        fields: Mapping[str, str] = command.ext_fields or {}
        deciding = self._deciding(command.code)
        names = frozenset(fields)
        if len(names) > _MOST_NAMES or sum(map(len, names)) > _LONGEST:
            return
        if sum(len(fields.get(name) or "") for name in (ACCESS_KEY, *deciding)) > _LONGEST:
            return
        if self._count >= MOST_KNOWN or len(self._ways) >= MOST_WAYS:
            self.clear()
        place = host, command.code, names
        way = self._ways.get(place)
        if way is None:
            way = self._ways[place] = _Way(names, deciding)
        _, _, who, known = way.parts
        self._count += 1
        known[who(fields)] = signer.inner, signer.outer
        self._signers[fields[ACCESS_KEY]] = signer

    def signer_of(self, peer: Peer, command: RemotingCommand) -> Signer | None:
        """Returns the signer of the account that has sent a request which is known and signed as it
        should be; None for any other.
        """
        if not self.knows(peer, command) or command.ext_fields is None:
            return None
        return self._signers.get(command.ext_fields[ACCESS_KEY])

    def origin(self, peer: Peer) -> int:
        """Returns a number above 0 for the address of a peer; no other address ever has it."""
        host = host_of(peer.remote_address)
        number = self._origins.get(host)
        if number is None:
            if len(self._origins) >= MOST_WAYS:
                self._origins.clear()
            number = self._origins[host] = next(self._numbers)
        return number

    # Every signed message passes here or below, so no call is made that can be avoided.
    def knows(self, peer: Peer, command: RemotingCommand) -> bool:
        """Returns whether a request is known and signed as it should be, as `passed` does."""
        fields: Any = command.ext_fields
        try:
            size, pick, who, known = peer.allowed[command.code]
            if len(fields) == size:
                begins_inner, begins_outer = known[who(fields)]
                inner = begins_inner()
                inner.update("".join(pick(fields)).encode())
                if command.body:
                    inner.update(command.body)
                outer = begins_outer()
                outer.update(inner.digest())
                # In Base64 with a newline, since an argument by name takes longer than that.
                return compare_digest(
                    b2a_base64(outer.digest()), fields[SIGNATURE].encode() + b"\n"
                )
        except _UNLIKE:
            pass
        return self.passed(peer, (command,), 0, 1) == 1

    # The names of a read may take turns; then each is looked up, and nothing is called within.
    def passed(self, peer: Peer, commands: Sequence[RemotingCommand], at: int, end: int) -> int:
        """Returns how far these commands, from `at` on and before `end`, are known and signed as
        they should be: the index of the first that is not.
        """
        allowed, join = peer.allowed, "".join
        code = tried = -1
        while True:
            try:
                for command in commands[at:end]:
                    fields: Any = command.ext_fields
                    if command.code != code:
                        code = command.code
                        size, pick, who, known = allowed[code]
                    if len(fields) != size:
                        raise KeyError
                    begins_inner, begins_outer = known[who(fields)]
                    inner = begins_inner()
                    # One value is a text, several are a tuple of texts; joined, both are the same.
                    inner.update(join(pick(fields)).encode())
                    if command.body:
                        inner.update(command.body)
                    outer = begins_outer()
                    outer.update(inner.digest())
                    expected = b2a_base64(outer.digest())
                    if not compare_digest(expected, fields[SIGNATURE].encode() + b"\n"):
                        return commands.index(command, at)
            except _UNLIKE:
                at, code = commands.index(command, at), -1
                if at == tried or not self._is_other(peer, command):
                    return at
                tried = at
            else:
                return end

    def _is_other(self, peer: Peer, command: RemotingCommand) -> bool:
        """Returns whether a request that is not like the one before is known, and like which."""
        fields: Mapping[str, str] = command.ext_fields or {}
        way = self._ways.get((host_of(peer.remote_address), command.code, frozenset(fields)))
        if way is None:
            return False
        _, _, who, known = way.parts
        if who(fields) not in known:
            return False
        peer.allowed[command.code] = way.parts
        return True
