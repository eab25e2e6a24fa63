# SPDX-License-Identifier: Apache-2.0
"""Prints each folder and module with the first sentence of its docstring; see `make map`."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_SENTENCE = re.compile(r"^(.+?)[.](\s|$)", re.DOTALL)


def _parts() -> tuple[str, ...]:
    """Returns the top folders that are packages, as setup.py lists them."""
    for node in ast.parse((ROOT / "setup.py").read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PARTS":
            return tuple(ast.literal_eval(node.value))
    raise LookupError("setup.py has no PARTS")


PARTS = _parts()


def first_sentence(module: Path) -> str:
    """Returns what the module's docstring says first, on one line."""
    text = ast.get_docstring(ast.parse(module.read_text("utf-8"))) or ""
    found = _SENTENCE.match(text.partition("\n\n")[0])
    return " ".join((found.group(1) if found else text).split()).rstrip(":")


def lines(part: str) -> Iterator[str]:
    """Yields a line for each folder and module of a part of the repository."""
    for folder in sorted({module.parent for module in (ROOT / part).rglob("*.py")}):
        yield ""
        yield f"{folder.relative_to(ROOT)}/  {first_sentence(folder / '__init__.py')}".rstrip()
        for module in sorted(folder.glob("*.py")):
            if module.name != "__init__.py":
                yield f"    {module.stem:<24}{first_sentence(module)}"


if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        print("\n".join(lines(part)))
