# SPDX-License-Identifier: Apache-2.0
"""The file of contexts: how the commands reach several clusters, by name.

    current = "staging"

    [staging]
    namesrv = "10.0.0.1:9876;10.0.0.2:9876"

    [production]
    namesrv = "10.1.0.1:9876"
    tls_trust_cert = "/etc/rocketmq/ca.pem"
    access_key = "operator"
    secret_key = "..."

It is `txrocketmq/contexts.toml` in $XDG_CONFIG_HOME, by default ~/.config. People may edit it: what
is changed here leaves their comments as they are. Nobody else may read it, since it may contain
secrets.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CONTEXT_VARIABLE: Final = "TXROCKETMQ_CONTEXT"
"""The environment variable with the name of the context to use."""
MAX_FILE_BYTES: Final = 1 << 20
_CURRENT: Final = "current"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HEADER: Final = re.compile(r"\s*\[")


class ContextError(Exception):
    """The error of a file or a context that cannot be used; its text is a sentence for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """How one cluster is reached; a value that is empty is not set."""

    namesrv: str
    """The addresses of its name servers."""
    tls: bool = False
    tls_trust_cert: str = ""
    tls_check_name: bool = False
    tls_cert: str = ""
    tls_key: str = ""
    access_key: str = ""
    secret_key: str = dataclasses.field(default="", repr=False)

    @property
    def encrypts(self) -> bool:
        """Whether connections are encrypted, as each of the values about TLS asks for."""
        files = self.tls_trust_cert or self.tls_cert or self.tls_key
        return self.tls or self.tls_check_name or bool(files)

    def lines(self) -> Iterator[str]:
        """Yields the values as lines of the file."""
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            if value:
                yield f"{each.name} = {_toml(value)}"


_TYPES: Final = {
    each.name: bool if isinstance(each.default, bool) else str
    for each in dataclasses.fields(Context)
}


def config_home() -> Path:
    """Returns the folder of the user's settings: $XDG_CONFIG_HOME, or ~/.config."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def contexts_path() -> Path:
    """Returns where the file is."""
    return config_home() / "txrocketmq" / "contexts.toml"


@dataclass(frozen=True, slots=True)
class ContextFile:
    """What the file contains: its text, the contexts by name, and the name of the current one."""

    path: Path
    text: str = ""
    contexts: Mapping[str, Context] = dataclasses.field(default_factory=dict)
    current: str | None = None

    @classmethod
    def read(cls, path: Path | None = None) -> ContextFile:
        """Reads the file; one that does not exist has no contexts. Raises ContextError."""
        path = path or contexts_path()
        try:
            with path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return cls(path)
        except OSError as error:
            raise ContextError(f"{path} cannot be read: {error.strerror}") from None
        if len(data) > MAX_FILE_BYTES:
            raise ContextError(f"{path} is larger than {MAX_FILE_BYTES} bytes")
        try:
            return cls.parse(path, data.decode("utf-8"))
        except UnicodeDecodeError:
            raise ContextError(f"{path} is not text in UTF-8") from None

    @classmethod
    def parse(cls, path: Path, text: str) -> ContextFile:
        """Returns what the text of the file says. Raises ContextError."""
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ContextError(f"{path} is not valid TOML: {error}") from None
        current = content.pop(_CURRENT, None)
        if not isinstance(current, str | None):
            raise ContextError(f'{path}: write current = "NAME", with the name of a context')
        contexts = {name: _context(path, name, values) for name, values in content.items()}
        return cls(path, text, contexts, current)

    def get(self, name: str) -> Context:
        """Returns a context by its name. Raises ContextError."""
        found = self.contexts.get(name)
        if found is None:
            near = difflib.get_close_matches(name, self.contexts, 1)
            known = ", ".join(sorted(self.contexts)) or "none"
            hint = f"did you mean {near[0]}?" if near else f"contexts in {self.path}: {known}"
            raise ContextError(f"there is no context {name}; {hint}")
        return found

    def with_context(self, name: str, context: Context) -> ContextFile:
        """Returns the file with one more context. Raises ContextError for a name in use."""
        if not _NAME.fullmatch(name) or name == _CURRENT:
            raise ContextError(
                f"{name!r} cannot be the name of a context: use 1 to 64 letters, digits, hyphens"
                " and underscores, and not the word current"
            )
        if name in self.contexts:
            raise ContextError(f"there is a context {name} already: remove it first")
        before = f"{self.text.rstrip()}\n\n" if self.text.strip() else ""
        section = "\n".join((f"[{name}]", *context.lines()))
        return self.parse(self.path, f"{before}{section}\n")

    def without(self, name: str) -> ContextFile:
        """Returns the file without a context. Raises ContextError if it does not have it."""
        self.get(name)
        kept: list[str] = []
        is_kept = True
        for line in self.text.splitlines():
            if _HEADER.match(line):
                is_kept = not re.match(rf"\s*\[\s*[\"']?{re.escape(name)}[\"']?\s*\]", line)
            if is_kept:
                kept.append(line)
        changed = self.parse(self.path, "\n".join(kept).rstrip() + "\n")
        if name in changed.contexts:
            raise ContextError(f"{self.path}: remove {name} by hand: it is not in one section")
        return changed.using(None) if self.current == name else changed

    def using(self, name: str | None) -> ContextFile:
        """Returns the file with another current context, or with none. Raises ContextError."""
        lines = self.text.splitlines()
        end = next((n for n, line in enumerate(lines) if _HEADER.match(line)), len(lines))
        top = [line for line in lines[:end] if not re.match(r"\s*[\"']?current[\"']?\s*=", line)]
        if name is not None:
            self.get(name)
            top = [f"{_CURRENT} = {_toml(name)}", *(top or [""])]
        return self.parse(self.path, "\n".join([*top, *lines[end:]]).strip("\n") + "\n")

    def write(self) -> None:
        """Replaces the file on the disk. Raises ContextError."""
        new = self.path.with_name(self.path.name + ".new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                new.unlink()
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(self.text)
            new.replace(self.path)
        except OSError as error:
            raise ContextError(f"{self.path} cannot be written: {error.strerror}") from None


def chosen_context(name: str | None, *, has_address: bool) -> Context | None:
    """Returns the context to use, or None for none.

    It is the one that is named, else that of $TXROCKETMQ_CONTEXT. If the command has no address and
    $NAMESRV_ADDR is not set either, it is the current one of the file. Raises ContextError.
    """
    if name:
        return ContextFile.read().get(name)
    if has_address:
        return None
    name = os.environ.get(CONTEXT_VARIABLE)
    if name:
        with _named(f"${CONTEXT_VARIABLE}"):
            return ContextFile.read().get(name)
    if os.environ.get("NAMESRV_ADDR"):
        return None
    file = ContextFile.read()
    if file.current is None:
        return None
    with _named(f"current in {file.path}"):
        return file.get(file.current)


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Says where the name of a context comes from that is wrong."""
    try:
        yield
    except ContextError as error:
        raise ContextError(f"{where}: {error}") from None


def _context(path: Path, name: str, values: object) -> Context:
    if not isinstance(values, dict):
        raise ContextError(f"{path}: {name} stands outside of a section: begin one with [NAME]")
    for key, value in values.items():
        kind = _TYPES.get(key)
        if kind is None:
            near = difflib.get_close_matches(key, _TYPES, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(_TYPES)}"
            raise ContextError(f"{path}: context {name} has no setting {key}; {hint}")
        if not isinstance(value, kind):
            wanted = "true or false" if kind is bool else "a text in quotation marks"
            raise ContextError(f"{path}: {key} of context {name} must be {wanted}")
    if not values.get("namesrv"):
        raise ContextError(f"{path}: context {name} has no namesrv, the address of a name server")
    if bool(values.get("access_key")) != bool(values.get("secret_key")):
        raise ContextError(f"{path}: context {name} needs access_key and secret_key, or neither")
    return Context(**values)


def _toml(value: str | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not value.isprintable():
        raise ContextError(f"{value!r} contains characters that cannot be printed")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
