# SPDX-License-Identifier: Apache-2.0
"""SQL92 expressions: compiled once, kept while there is room, evaluated for each message.

The grammar and its parser are imported with the first expression that comes, in a thread. A long
expression is parsed in steps, between which everybody else is served; who needs it waits. What is
compiled is kept by its text, and so are refusals, since a client whose expression is wrong asks
again with each heartbeat.

Java: filter.FilterFactory, filter.SqlFilter, filter.parser.SelectorParser (PARSE_CACHE),
MessageEvaluationContext.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from txrocketmq.broker.filter.operators import (
    EvaluationError,
    ExpressionError,
    Operand,
    Properties,
    evaluate,
)
from txrocketmq.broker.store.disk.in_memory import NotYet
from txrocketmq.broker.store.disk.steps import Steps, finished
from txrocketmq.broker.work.in_thread import InThread, at_once
from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.properties import decode_properties, pick_properties
from txrocketmq.remoting.primitives.listeners import each_told

__all__ = [
    "LEAST_CHARS",
    "MAX_CHARS",
    "MAX_KEPT_CHARS",
    "Expression",
    "ExpressionError",
    "Expressions",
    "NotCompiled",
]

MAX_CHARS: Final = 65_536
"""The longest expression. The grammar bounds the number of its words, too."""
MAX_KEPT_CHARS: Final = 1_048_576
"""How many characters of texts are kept compiled, together.

The least recently used expression goes first, and is compiled again when it is needed.
"""
_FEW_NAMES: Final = 4
LEAST_CHARS: Final = 256
"""A shorter expression counts as this many characters."""
MAX_WAITING: Final = 256
"""How many expressions may wait to be compiled."""
MAX_WAITING_FOR_ONE: Final = 10_000
"""How many requests may wait for the same expression."""
_STEPS_AT_ONCE: Final = 4
"""An expression that is parsed in so few steps is compiled at once: some 200 words."""

Found: TypeAlias = "Expression | ExpressionError"
Parsing: TypeAlias = Callable[[str], Steps["Expression | ExpressionError"]]


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A compiled expression, and the names of the properties it looks at."""

    operand: Operand
    names: frozenset[str]

    @property
    def terms(self) -> int:
        """How many comparisons are made for a message at most."""
        return self.operand.terms

    def matches(self, properties: Properties) -> bool:
        """Whether the expression is true for these properties: not false, unknown or an error."""
        try:
            return evaluate(self.operand, properties) is True
        except EvaluationError:
            return False

    def wants(self, text: str) -> bool:
        """Whether the expression is true for the properties of a stored message, given as text."""
        if len(self.names) <= _FEW_NAMES:
            return self.matches(pick_properties(text, self.names))
        return self.matches(decode_properties(text))


class NotCompiled(NotYet):
    """An expression is being compiled: whoever needs it waits for that, and asks again."""

    def __init__(self, waiting: list[Callable[[], None]]) -> None:
        super().__init__("an expression is being compiled", partial(_when_compiled, waiting))


def _when_compiled(
    waiting: list[Callable[[], None]], peer: Peer, go_on: Callable[[], None]
) -> None:
    """Calls `go_on` when the expression is compiled or not valid, unless the peer has gone."""

    def compiled() -> None:
        if peer.connected:
            go_on()

    waiting.append(compiled)


class Expressions:
    """The compiled expressions and the refusals that are kept.

    What takes long is not done while everybody waits: `in_thread` imports the parser, and
    `in_turns` takes the steps of a long expression. Without these, all is done at once.
    """

    def __init__(
        self,
        max_kept_chars: int = MAX_KEPT_CHARS,
        in_thread: InThread = at_once,
        in_turns: Callable[[Steps[None]], None] = finished,
    ) -> None:
        self._max_kept_chars = max_kept_chars
        self._in_thread = in_thread
        self._in_turns = in_turns
        self._parsing: Parsing | None = None
        """Begins to parse a text; None before the parser is imported."""
        self._is_busy = False
        self._waiting: dict[str, list[Callable[[], None]]] = {}
        """The expressions that are being compiled, in order, and who waits for each."""
        self._begun: Steps[Found] | None = None
        """The first of these, as far as it is parsed."""
        self._kept: OrderedDict[str, Found] = OrderedDict()
        self._chars = 0

    def __len__(self) -> int:
        return len(self._kept)

    def compile(self, text: str, *, at_once: bool = True) -> Expression:
        """Compiles an expression. Raises ExpressionError with the reason if it is not valid.

        A short one is compiled `at_once`, unless the caller has done enough already. Raises
        NotCompiled while others have their turn, and ResponseError (2) if too many wait for that.
        """
        found = self._kept.get(text)
        if found is None:
            found = self._compiled(text, at_once=at_once)
        else:
            self._kept.move_to_end(text)
        if isinstance(found, ExpressionError):
            raise ExpressionError(str(found))
        return found

    def is_kept(self, text: str) -> bool:
        """Whether this text is kept, so that compiling it costs nothing."""
        return text in self._kept

    def _compiled(self, text: str, *, at_once: bool) -> Found:
        if len(text) > MAX_CHARS:
            return ExpressionError(
                f"it has {len(text)} characters, and at most {MAX_CHARS} are allowed"
            )
        waiting = self._waiting.get(text)
        if waiting is None:
            if at_once and self._parsing is not None and not self._waiting:
                steps = self._begun = self._parsing(text)
                for _ in range(_STEPS_AT_ONCE):
                    try:
                        next(steps)
                    except StopIteration as end:
                        self._begun = None
                        return self._keep(text, end.value)
            if len(self._waiting) >= MAX_WAITING:
                raise ResponseError(
                    ResponseCode.SYSTEM_BUSY,
                    f"{MAX_WAITING} expressions wait to be compiled: try again later",
                )
            waiting = self._waiting[text] = []
            self._begin()
        found = self._kept.get(text)
        if found is not None:
            return found
        if len(waiting) >= MAX_WAITING_FOR_ONE:
            raise ResponseError(
                ResponseCode.SYSTEM_BUSY,
                f"{MAX_WAITING_FOR_ONE} requests wait for this expression: try again later",
            )
        raise NotCompiled(waiting)

    def _begin(self) -> None:
        if self._is_busy:
            return
        self._is_busy = True
        if self._parsing is None:
            self._in_thread(_load_grammar, self._imported)
        else:
            self._in_turns(self._compile_all())

    def _imported(self, error: Exception | None) -> None:
        # If the import failed, it is tried again here, and its error is heard of.
        self._parsing = _import_grammar()
        self._in_turns(self._compile_all())

    def _compile_all(self) -> Steps[None]:
        """Compiles what waits, one expression after the other, and tells who waits for it."""
        failed: Exception | None = None
        while self._waiting:
            text = next(iter(self._waiting))
            steps, self._begun = self._begun, None
            if steps is None:
                assert self._parsing is not None
                steps = self._parsing(text)
            try:
                found = yield from steps
            except Exception as error:  # noqa: BLE001 - nobody is to wait for ever
                found = ExpressionError(f"it cannot be compiled: {error}")
            self._keep(text, found)
            try:
                yield from each_told(self._waiting.pop(text))
            except Exception as error:  # noqa: BLE001 - the other expressions are still waited for
                failed = failed or error
        self._is_busy = False
        if failed is not None:
            raise failed

    def _keep(self, text: str, found: Found) -> Found:
        if text not in self._kept:
            self._kept[text] = found
            self._chars += _weight(text)
            while self._chars > self._max_kept_chars:
                gone, _ = self._kept.popitem(last=False)
                self._chars -= _weight(gone)
        return found


def _weight(text: str) -> int:
    return max(len(text), LEAST_CHARS)


def _load_grammar() -> None:
    _import_grammar()


def _import_grammar() -> Parsing:
    from txrocketmq.broker.filter.grammar import parsing  # noqa: PLC0415 - see above

    def steps(text: str) -> Steps[Found]:
        try:
            operand, names = yield from parsing(text)
        except ExpressionError as error:
            return ExpressionError(str(error))  # without what led to it
        return Expression(operand, names)

    return steps
