# SPDX-License-Identifier: Apache-2.0
"""The audit: who was refused what, from where and why, and who changed which account.

Refusals are told a few times a minute for each kind, with the number of the others; all of them are
counted. Changes of accounts are always told. Nothing here has ever seen a secret or a signature.
Counterpart of the original's audit log, which contains signatures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from txrocketmq.access.authority import Refusal
from txrocketmq.remoting.codes import code_name
from txrocketmq.remoting.primitives.plain_text import plain, shortened
from txrocketmq.remoting.process.log_limit import Seldom, and_more

TIMES_A_MINUTE: Final = 5
"""How often refusals of an account, from an address, for a reason are told."""
MOST_A_MINUTE: Final = 60
"""How many refusals are told altogether, since strangers choose what they are refused for."""
_MOST_TEXT: Final = 255

Tell = Callable[[str], None]
"""Writes a line to the log."""


class Audit:
    """Tells and counts. `refusals` are told to one function and changes to the other."""

    def __init__(self, refusals: Tell, changes: Tell, steady_ms: Callable[[], int]) -> None:
        self._tell_refusal = refusals
        self._tell_change = changes
        self._steady_ms = steady_ms
        self._seldom = Seldom(TIMES_A_MINUTE)
        self._all = Seldom(MOST_A_MINUTE)
        self.refused: Counter[tuple[int, str]] = Counter()
        """How often requests were refused, by their code and the reason. Codes of which there is no
        request count as -1, so that strangers do not fill it."""

    def refusal(self, code: int, host: str, refusal: Refusal) -> None:
        """Notes that a request with this code was refused to a program at this address."""
        name = code_name(code)
        self.refused[-1 if name.startswith("request ") else code, refusal.reason] += 1
        self.tell_refusal(name, host, refusal)

    def tell_refusal(self, name: str, host: str, refusal: Refusal) -> None:
        """Tells that a request of this name was refused, unless such a line was written lately."""
        steady_ms, user = self._steady_ms(), _short(refusal.user)
        more = self._seldom.more(steady_ms, (refusal.reason, user, host))
        others = None if more is None else self._all.more(steady_ms)
        if more is None or others is None:
            return
        what = f"{refusal.action} on {refusal.resource}" if refusal.resource else ""
        needed = f", which needs {_short(what)}" if what else ""
        self._tell_refusal(
            f"refused {name} of {_quoted(refusal.user)} at {host}{needed}:"
            f" {refusal.reason}{and_more(more + others)}"
        )

    def change(self, user: str, host: str, what: str) -> None:
        """Notes that an account was changed: `what` says how, such as "created the user x"."""
        self._tell_change(f"{_quoted(user)} at {host} {_short(what)}")


def _quoted(user: str) -> str:
    return f"the account {_short(user)}" if user else "somebody without an account"


def _short(text: str) -> str:
    return shortened(plain(text), _MOST_TEXT)
