# SPDX-License-Identifier: Apache-2.0
"""The grammar of SQL92 expressions and its parser, imported with the first expression.

An expression ends where it cannot go on: what follows is ignored, although the next token must be a
valid one, as in the original's parser. CONTAINS, STARTSWITH and ENDSWITH are names to a 4.9 broker,
and words to one of 5.x and to this one.

Java: filter.parser.SelectorParser and its grammar, SelectorParser.jj.
"""

from __future__ import annotations

import operator
from typing import Any, Final

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from txrocketmq.broker.filter import operators
from txrocketmq.broker.filter.operators import ExpressionError, Operand
from txrocketmq.broker.store.disk.steps import Steps, finished

_GRAMMAR: Final = r"""
?start: or_

?or_: and_
    | and_ (_OR and_)+                              -> disjunction

?and_: equality
    | equality (_AND equality)+                     -> conjunction

?equality: comparison
    | equality "=" comparison                       -> equal
    | equality "<>" comparison                      -> not_equal
    | equality _IS _NULL                            -> is_null
    | equality _IS _NOT _NULL                       -> is_not_null

?comparison: unary
    | comparison ">" unary                          -> more
    | comparison ">=" unary                         -> at_least
    | comparison "<" unary                          -> less
    | comparison "<=" unary                         -> at_most
    | comparison _CONTAINS STRING                   -> contains
    | comparison _NOT _CONTAINS STRING              -> not_contains
    | comparison _STARTSWITH STRING                 -> starts_with
    | comparison _NOT _STARTSWITH STRING            -> not_starts_with
    | comparison _ENDSWITH STRING                   -> ends_with
    | comparison _NOT _ENDSWITH STRING              -> not_ends_with
    | comparison _BETWEEN unary _AND unary          -> between
    | comparison _NOT _BETWEEN unary _AND unary     -> not_between
    | comparison _IN "(" STRING ("," STRING)* ")"       -> is_in
    | comparison _NOT _IN "(" STRING ("," STRING)* ")"  -> is_not_in

?unary: primary
    | "+" unary
    | "-" unary                                     -> negated
    | _NOT unary                                    -> negation

?primary: STRING                                    -> text
    | WHOLE                                         -> whole
    | FRACTION                                      -> fraction
    | ID                                            -> property_of
    | _TRUE                                         -> true
    | _FALSE                                        -> false
    | _NULL                                         -> null
    | "(" or_ ")"

%declare _NOT _AND _OR _BETWEEN _IN _TRUE _FALSE _NULL _IS _CONTAINS _STARTSWITH _ENDSWITH

LINE_COMMENT.3: /--[^\n\r]*+(?:\r\n|\n|\r)/
BLOCK_COMMENT.3: /\/\*[^*]*\*(?:\*|[^*\/][^*]*\*)*\//
FRACTION.2: /(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+/
WHOLE: /0|[1-9][0-9]*[lL]?/
STRING: /'(?:''|[^'])*'/
ID: /[A-Za-z_$][A-Za-z0-9_$]*/

%ignore /[ \t\n\r\f]+/
%ignore LINE_COMMENT
%ignore BLOCK_COMMENT
"""
_WORDS: Final = frozenset(
    "NOT AND OR BETWEEN IN TRUE FALSE NULL IS CONTAINS STARTSWITH ENDSWITH".split()
)
_MAX_COMMENT_CHARS: Final = 4_000_000
"""How many characters may be searched in vain for the end of a comment. Each "--" without a line
end behind it is no comment, but costs a search of all that follows."""
_END: Final = "$END"
_NAME: Final = "ID"
MAX_TOKENS: Final = 5_000
"""How many tokens an expression may have; a list of IN may have half as many elements. Parsing one
takes some 50 ms at most."""
_TOKENS_A_STEP: Final = 50
"""How many tokens are parsed between two pauses, in some 0.5 ms."""


def _word_or_name(token: Token) -> Token:
    """Tells words, which are written in upper or lower case, from names."""
    word = token.upper()
    if word in _WORDS:
        token.type = f"_{word}"
    return token


def _text(token: str) -> str:
    return token[1:-1].replace("''", "'")


@v_args(inline=True)
class _Operands(Transformer[Token, Operand]):
    """Makes operands during parsing; rules without a method here are in `operators`."""

    conjunction = staticmethod(operators.conjunction)
    disjunction = staticmethod(operators.disjunction)
    negation = staticmethod(operators.negation)
    negated = staticmethod(operators.negated)
    equal = staticmethod(operators.equal)
    not_equal = staticmethod(operators.not_equal)
    is_null = staticmethod(operators.is_null)
    is_not_null = staticmethod(operators.is_not_null)
    between = staticmethod(operators.between)
    not_between = staticmethod(operators.not_between)

    def whole(self, token: Token) -> Operand:
        return operators.whole(str(token))

    def fraction(self, token: Token) -> Operand:
        return operators.fraction(str(token))

    def property_of(self, token: Token) -> Operand:
        return operators.property_of(str(token))

    def text(self, token: Token) -> Operand:
        return operators.constant(operators.Kind.TEXT, _text(token))

    def true(self) -> Operand:
        return operators.TRUE

    def false(self) -> Operand:
        return operators.FALSE

    def null(self) -> Operand:
        return operators.NULL

    def more(self, left: Operand, right: Operand) -> Operand:
        return operators.ordered(left, right, operator.gt)

    def at_least(self, left: Operand, right: Operand) -> Operand:
        return operators.ordered(left, right, operator.ge)

    def less(self, left: Operand, right: Operand) -> Operand:
        return operators.ordered(left, right, operator.lt)

    def at_most(self, left: Operand, right: Operand) -> Operand:
        return operators.ordered(left, right, operator.le)

    def is_in(self, operand: Operand, *texts: Token) -> Operand:
        return operators.is_in(operand, map(_text, texts), negate=False)

    def is_not_in(self, operand: Operand, *texts: Token) -> Operand:
        return operators.is_in(operand, map(_text, texts), negate=True)

    def contains(self, operand: Operand, search: Token) -> Operand:
        return operators.matches_text(operand, _text(search), operator.contains, negate=False)

    def not_contains(self, operand: Operand, search: Token) -> Operand:
        return operators.matches_text(operand, _text(search), operator.contains, negate=True)

    def starts_with(self, operand: Operand, search: Token) -> Operand:
        return operators.matches_text(operand, _text(search), str.startswith, negate=False)

    def not_starts_with(self, operand: Operand, search: Token) -> Operand:
        return operators.matches_text(operand, _text(search), str.startswith, negate=True)

    def ends_with(self, operand: Operand, search: Token) -> Operand:
        return operators.matches_text(operand, _text(search), str.endswith, negate=False)

    def not_ends_with(self, operand: Operand, search: Token) -> Operand:
        return operators.matches_text(operand, _text(search), str.endswith, negate=True)


_PARSER: Final = Lark(
    _GRAMMAR,
    parser="lalr",
    lexer="basic",
    transformer=_Operands(),
    lexer_callbacks={_NAME: _word_or_name},
    propagate_positions=False,
    maybe_placeholders=False,
)


def parse(text: str) -> tuple[Operand, frozenset[str]]:
    """Takes all steps of `parsing` at once."""
    return finished(parsing(text))


def parsing(text: str) -> Steps[tuple[Operand, frozenset[str]]]:
    """Returns the condition of an expression, and the names of the properties that it uses.

    Raises ExpressionError, which says where and why it is not valid.
    """
    last_line = max(text.rfind("\n"), text.rfind("\r")) + 1
    if text.count("--", last_line) * (len(text) - last_line) > _MAX_COMMENT_CHARS:
        raise ExpressionError("it has too many -- behind its last line, where none is a comment")
    names: set[str] = set()
    try:
        operand = yield from _parsed(text, names)
        return operators.condition(operand), frozenset(names)
    except UnexpectedCharacters as error:
        found = text[error.pos_in_stream :][:1]
        raise ExpressionError(f'Lexical error at {_place(error)}. Encountered: "{found}"') from None
    except UnexpectedToken as error:
        found = "<EOF>" if error.token.type == _END else f"{error.token:.40}"
        raise ExpressionError(f'Encountered "{found}" at {_place(error)}.') from None


def _parsed(text: str, names: set[str]) -> Steps[Any]:
    parser = _PARSER.parse_interactive(text)
    token: Token | None = None
    tokens = parser.lexer_thread.lex(parser.parser_state)  # type: ignore[no-untyped-call]
    for count, token in enumerate(tokens):
        if count % _TOKENS_A_STEP == _TOKENS_A_STEP - 1:
            yield
        if count == MAX_TOKENS:
            raise ExpressionError(f"it has more than {MAX_TOKENS} words, numbers, texts and signs")
        if token.type == _NAME:
            names.add(str(token))
        try:
            parser.feed_token(token)
        except UnexpectedToken as unexpected:
            try:
                return parser.feed_eof()  # type: ignore[no-untyped-call]
            except UnexpectedToken:
                raise unexpected from None
    return parser.feed_eof(token)  # type: ignore[no-untyped-call]


def _place(error: UnexpectedInput) -> str:
    return f"line {error.line}, column {error.column}"
