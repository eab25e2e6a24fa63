# SPDX-License-Identifier: Apache-2.0
"""Writes the types of the client's faces: client/blocking.pyi, client/aio.pyi and client/tx.pyi.

Their classes are made when they are imported, of the classes of the core (client/faces/faces.py),
which type checkers and editors cannot follow. A stub says the same for them, docstrings included.
The stubs are not kept in the repository: `scripts/environment` makes them for a checkout, and
`make dist` for archives.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from txrocketmq.client import aio, blocking, tx
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.faces import names
from txrocketmq.client.faces.descriptions import config_class, method_signature, setting_types
from txrocketmq.client.faces.faces import members

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "client"
STARTED = re.compile(r"^Started\[(.*)\]$")


class Imports:
    """The imports that the annotations of a stub need."""

    def __init__(self) -> None:
        self._lines: set[str] = set()
        self._tables: dict[str, dict[str, str]] = {}

    def need(self, annotation: str, module: ModuleType) -> None:
        """An annotation is used, as it stands in a module."""
        table = self._table(module)
        for word in re.findall(r"[A-Za-z_][\w.]*", annotation):
            line = table.get(word.split(".")[0])
            if line is not None:
                self._lines.add(line)

    def add(self, line: str) -> None:
        """A line is needed."""
        self._lines.add(line)

    def text(self) -> str:
        """All of them."""
        return "\n".join(sorted(self._lines))

    def _table(self, module: ModuleType) -> dict[str, str]:
        if module.__name__ not in self._tables:
            tree = ast.parse(inspect.getsource(module))
            table: dict[str, str] = {}
            for node in tree.body:
                if isinstance(node, ast.ImportFrom) and node.module != "__future__":
                    for alias in node.names:
                        name = alias.asname or alias.name
                        table[name] = f"from {node.module} import {ast.unparse(alias)}"
                elif isinstance(node, ast.Import):
                    for alias in node.names:
                        table[alias.asname or alias.name] = f"import {ast.unparse(alias)}"
                elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                    table[node.name] = f"from {module.__name__} import {node.name}"
                elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    name = node.targets[0].id
                    table[name] = f"from {module.__name__} import {name}"
            self._tables[module.__name__] = table
        return self._tables[module.__name__]


def _doc(text: str | None, indent: str) -> str:
    lines = inspect.cleandoc(text or "").replace("\\", "\\\\").splitlines()
    body = "\n".join(f"{indent}{line}".rstrip() for line in lines)
    return (
        f'{indent}"""{body.lstrip()}"""'
        if len(lines) == 1
        else (f'{indent}"""{body.lstrip()}\n{indent}"""')
    )


def _parameters(signature: inspect.Signature, skip: set[str]) -> list[str]:
    parts: list[str] = []
    is_keyword = False
    for name, parameter in signature.parameters.items():
        if name in skip:
            continue
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            parts.append(f"**{name}: {parameter.annotation}")
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not is_keyword:
            is_keyword = True
            parts.append("*")
        default = "" if parameter.default is inspect.Parameter.empty else " = ..."
        parts.append(f"{name}: {parameter.annotation}{default}")
    return parts


def _module_of(function: Callable[..., Any]) -> ModuleType:
    found = inspect.getmodule(function)
    assert found is not None
    return found


def _constructor(core: type, imports: Imports, extra: list[str]) -> str:
    constructor = core.__init__  # type: ignore[misc]
    signature = inspect.signature(constructor)
    for name, parameter in signature.parameters.items():
        if name not in ("self", "instance", "config"):
            imports.need(str(parameter.annotation), _module_of(constructor))
    parts = _parameters(signature, {"self", "instance", "config"})
    if "*" not in parts:
        parts.append("*")
    parts += extra
    for config in (config_class(core), ClientConfig):
        for name, annotation in setting_types(config).items():
            imports.need(annotation, _module_of(config))
            parts.append(f"{name}: {annotation} = ...")
    lines = ",\n        ".join(parts)
    return f"    def __init__(\n        {lines},\n    ) -> None: ..."


def _method(face: str, member: Any, imports: Imports) -> str:
    function = member.function
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.annotation is not inspect.Parameter.empty:
            imports.need(str(parameter.annotation), _module_of(function))
    result = str(signature.return_annotation)
    started = STARTED.match(result)
    imports.need(started[1] if started else result, _module_of(function))
    parts = ["self", *_parameters(signature, {"self"})]
    head = ""
    if member.is_property:
        head = "    @property\n"
    elif member.waits:
        form = MODULES[face].FORM
        result = str(method_signature(function, form, waits=True).return_annotation)
        if face == "aio":
            head = "    async "
    define = f"{head or '    '}def" if head != "    @property\n" else f"{head}    def"
    return (
        f"{define} {member.name}({', '.join(parts)}) -> {result}:\n"
        f"{_doc(function.__doc__, ' ' * 8)}"
    )


MODULES: dict[str, Any] = {"blocking": blocking, "aio": aio, "tx": tx}
HEADS = {
    "blocking": ["from concurrent.futures import Future"],
    "aio": ["import asyncio"],
    "tx": ["from twisted.internet.defer import Deferred", "from typing import Any"],
}
LIVES = {
    "blocking": """\
    def start(self) -> Self: ...
    def shutdown(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...""",
    "aio": """\
    async def start(self) -> Self: ...
    async def shutdown(self) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...""",
    "tx": """\
    def start(self) -> Deferred[Self]: ...
    def shutdown(self) -> Deferred[None]: ...
    def __aenter__(self) -> Deferred[Self]: ...
    def __aexit__(self, *_: object) -> Deferred[None]: ...""",
}
ITERATIONS = {
    "blocking": "    def __iter__(self) -> Self: ...\n    def __next__(self) -> {item}: ...",
    "aio": "    def __aiter__(self) -> Self: ...\n    async def __anext__(self) -> {item}: ...",
    "tx": "    def __aiter__(self) -> Self: ...\n    def __anext__(self) -> Deferred[{item}]: ...",
}


def _class(face: str, made: Any, imports: Imports) -> str:
    core = made._core_class  # noqa: SLF001 - what it is made of
    extra = ["reactor: Any = ..."] if face == "tx" else []
    parts = [
        f"class {made.__name__}:\n{_doc(core.__doc__, '    ')}",
        _constructor(core, imports, extra).replace("(\n", "(\n        self,\n", 1),
        LIVES[face],
    ]
    if hasattr(core, "__anext__"):
        item = str(inspect.signature(core.__anext__).return_annotation)
        imports.need(item, _module_of(core.__anext__))
        parts.append(ITERATIONS[face].format(item=item))
    parts += [_method(face, member, imports) for member in members(core)]
    return "\n".join(parts)


def stub(face: str, module: ModuleType) -> str:
    """The stub of a face."""
    imports = Imports()
    imports.add("from typing import Self")
    for line in HEADS[face]:
        imports.add(line)
    own = [name for name in module.__all__ if name not in names.__all__]
    classes = [_class(face, getattr(module, name), imports) for name in own]
    shared = "".join(f"    {name} as {name},\n" for name in names.__all__)
    return (
        "# SPDX-License-Identifier: Apache-2.0\n"
        "# Made by docs/generate_client_stubs.py of the classes of the core: do not edit.\n"
        f"{textwrap.dedent(imports.text())}\n\n"
        f"from txrocketmq.client.faces.names import (\n{shared})\n\n"
        + "\n\n".join(classes)
        + f"\n\ndef {face}(core: type) -> type: ...\n"
        + f"\n__all__ = {module.__all__!r}\n"
    )


def pages() -> dict[Path, str]:
    """The stubs by their paths."""
    return {CLIENT / f"{face}.pyi": stub(face, module) for face, module in MODULES.items()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
        print(path.relative_to(ROOT))
