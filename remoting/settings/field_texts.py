# SPDX-License-Identifier: Apache-2.0
"""The texts below the fields of a dataclass, which Python itself does not keep.

They are read from the source, so that a setting is described in one place: for `help`, and for the
pages of settings.
"""

from __future__ import annotations

import ast
import inspect
import textwrap


def field_texts(cls: type) -> dict[str, str]:
    """Returns the text that follows each field, by the field's name; those of bases, too.

    It is empty where there is no source, as in a package of compiled files only.
    """
    texts: dict[str, str] = {}
    for each in reversed(cls.__mro__[:-1]):
        try:
            source = inspect.getsource(each)
        except (OSError, TypeError):
            continue
        texts |= _texts_in(textwrap.dedent(source))
    return texts


def _texts_in(source: str) -> dict[str, str]:
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    texts: dict[str, str] = {}
    name: str | None = None
    for statement in definition.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)):
                pass
            case ast.Expr(value=ast.Constant(value=str(text))) if name is not None:
                texts[name] = " ".join(text.split())
                name = None
            case _:
                name = None
    return texts
