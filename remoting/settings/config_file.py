# SPDX-License-Identifier: Apache-2.0
"""Configuration: files in the syntax of Java's properties, and dataclasses that define their types.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class NamesrvConfig:
        listen_port: int = setting(9876)
        order_message_enable: bool = setting(False, live=True)

Every field is one key, spelled in camel case as the original does; its default is what the original
has. Fields may be int, float, bool, str, `str | None` and tuple[str, ...] (joined by ";"). Keys
of the original that change nothing here are no typing errors: fields with
`effect=False`, and those in a class attribute IGNORED, see `original_keys`. Values that promise
what is not served are errors; a class attribute UNSERVED declares them. Counterpart of
java.util.Properties, MixAll.properties2Object and common.Configuration; unlike the original, a
value that does not parse is an error.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from txrocketmq.remoting.header import camel_case
from txrocketmq.remoting.primitives.unknown_key import MOST_GUESSES, UnknownKey, unknown_keys
from txrocketmq.remoting.primitives.value_text import HIDDEN, all_shown, shown, what_is_wrong

C = TypeVar("C")

LIST_SEPARATOR = ";"
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
LARGEST_PORT = 65_535
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANKS = " \t\f"
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")


class ConfigError(ValueError):
    """A configuration that cannot be used; its text names the key, the value and what is valid."""


@dataclasses.dataclass(frozen=True, slots=True)
class Unserved:
    """Values of a setting that promise what is not served; a class attribute UNSERVED lists them.

    Such a value is an error, so that nobody runs a server in the belief that, say, access is
    controlled. The key need not be a field of the class; it may be one of its IGNORED, or a system
    property of the original. Once the feature is served, its entry is removed.
    """

    key: str
    values: tuple[str, ...]
    """The values, in upper or lower case; if there are none, any value that is not blank."""
    feature: str
    """The promised feature, in words that fit "X is not served"."""
    instead: str = ""
    """A value that may be given instead; if empty, the key can only be left out."""

    def check(self, text: str) -> None:
        """Raises ConfigError if this value of the setting promises the feature."""
        text = text.strip()
        wanted = {value.lower() for value in self.values}
        if (text.lower() not in wanted) if wanted else not text:
            return
        instead = f"write {self.key}={self.instead} or " if self.instead else ""
        raise ConfigError(
            f"{self.key}={shown(self.key, text)}: {self.feature} is not served;"
            f" {instead}leave the key out"
        )


# ------------------------------------------------------------------------------- properties text


def read_properties(text: str) -> dict[str, str]:
    """Returns the keys and values of a text in the syntax of java.util.Properties.

    If a key occurs more than once, the last value counts. Raises ConfigError for a broken Unicode
    escape.
    """
    values: dict[str, str] = {}
    for line in _logical_lines(text):
        end = _key_end(line)
        rest = line[end:].lstrip(_BLANKS)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANKS)
        if end:
            values[_unescaped(line[:end])] = _unescaped(rest)
    return values


def write_properties(values: Mapping[str, str]) -> str:
    """Returns the same as text: a line "key=value" for each in this order, escaped as needed."""
    lines = []
    for key, value in values.items():
        escaped_key = "".join("\\" + c if c in " \t\f=:#!" else c for c in _escaped(key))
        escaped = _escaped(value)
        if escaped[:1] in tuple(_BLANKS):
            escaped = "\\" + escaped
        lines.append(f"{escaped_key}={escaped}\n")
    return "".join(lines)


def read_text(path: str | Path) -> str:
    """Returns the text of a file in UTF-8. Raises ConfigError that says what is wrong with it."""
    try:
        return Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (byte {error.start})") from error


def read_file(path: str | Path) -> dict[str, str]:
    """Returns the keys and values of a file; see `read_properties`. Raises ConfigError."""
    text = read_text(path)
    try:
        return read_properties(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _logical_lines(text: str) -> Iterable[str]:
    """Yields lines without leading blanks and comments, joined where a backslash continues them."""
    pending: str | None = None
    for natural in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = natural.lstrip(_BLANKS)
        if pending is None and (not line or line[0] in "#!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = (pending or "") + line[:-1]
            continue
        yield (pending or "") + line
        pending = None
    if pending:
        yield pending


def _key_end(line: str) -> int:
    index = 0
    while index < len(line) and line[index] not in "=: \t\f":
        index += 2 if line[index] == "\\" else 1
    return min(index, len(line))


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    parts = []
    index = 0
    while index < len(text):
        char = text[index]
        index += 1
        if char == "\\":
            char = text[index : index + 1]
            index += 1
            if char == "u":
                digits = text[index : index + 4]
                if len(digits) < 4 or not all(d in "0123456789abcdefABCDEF" for d in digits):
                    raise ConfigError(
                        f'"\\u{digits}" is not a character: \\u must be followed by 4 hex digits'
                    )
                char = chr(int(digits, 16))
                index += 4
            else:
                char = _ESCAPES.get(char, char)
        parts.append(char)
    # \u escapes are UTF-16: two of them may be one character
    return "".join(parts).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _escaped(text: str) -> str:
    text = text.replace("\\", "\\\\")
    for letter, char in _ESCAPES.items():
        if char in text and char != "\t":  # a tab within a value needs no escape
            text = text.replace(char, "\\" + letter)
    if text.isascii():
        return text
    # Java reads these texts as Latin-1, and only escapes come through that
    return "".join(
        c
        if c.isascii()
        else "".join(
            f"\\u{int.from_bytes(unit, 'big'):04x}"
            for unit in _pairs(c.encode("utf-16-be", "surrogatepass"))
        )
        for c in text
    )


def _pairs(data: bytes) -> Iterable[bytes]:
    return (data[i : i + 2] for i in range(0, len(data), 2))


# ------------------------------------------------------------------------------------ dataclasses


def setting(
    default: Any,
    *,
    live: bool = False,
    java: str | None = None,
    effect: bool = True,
    secret: bool = False,
    least: int = 0,
    most: int = INT_MAX,
) -> Any:
    """Declares a field that is one key of the configuration file.

    `default` may be a function without arguments. `java` is the key if it is not the camel case of
    the field's name. A setting that is `live` may be changed while the server runs. One with
    `effect=False` is read and shown, as administrators' tools expect it, but changes nothing here.
    A `secret` one is not in the text of the object that has the settings.
    `least` and `most` are the smallest and the largest number that may be set; by default, they are
    those of a Java int without sign.
    """
    metadata = {"java": java, "live": live, "effect": effect, "least": least, "most": most}
    if callable(default):
        return dataclasses.field(default_factory=default, repr=not secret, metadata=metadata)
    return dataclasses.field(default=default, repr=not secret, metadata=metadata)


def original_keys(text: str) -> dict[str, str | None]:
    """Returns the class attribute IGNORED from a text of words: "key=default", or a key alone.

    These are keys of the original that change nothing here. Administrators' tools ask for some of
    them, so they are shown with the value that was given, or else with the original's default.
    """
    pairs = (word.partition("=") for word in text.split())
    return {key: value if equals else None for key, equals, value in pairs}


def load(cls: type[C], values: Mapping[str, str]) -> tuple[C, list[UnknownKey]]:
    """Returns an instance with its settings from `values`, and the unknown keys among these.

    Raises ConfigError if a value is not valid for its setting.
    """
    (instance,), unknown = load_all((cls,), values)
    return instance, unknown


def load_all(
    classes: Sequence[type], values: Mapping[str, str]
) -> tuple[list[Any], list[UnknownKey]]:
    """Like `load`, for several classes whose keys are in one file."""
    _check_texts(values)
    instances = [cls(**_typed(cls, values)) for cls in classes]
    known = {key for cls in classes for key in known_keys(cls)}
    return instances, unknown_keys(values, known)


def known_keys(cls: type) -> set[str]:
    """Returns all keys that the original has for this class, with effect here or without."""
    return set(_fields(cls)) | set(getattr(cls, "IGNORED", ()))


def ignored_keys(cls: type, values: Mapping[str, str]) -> list[str]:
    """Returns those keys of `values` that the original has and that change nothing here."""
    idle = {k for k, spec in _fields(cls).items() if not spec.metadata.get("effect", True)}
    idle.update(getattr(cls, "IGNORED", ()))
    return [key for key in values if key in idle]


def as_properties(instance: object) -> dict[str, str]:
    """Returns all settings as text, by key; those that are None are left out."""
    result = {}
    for key, spec in _fields(type(instance)).items():
        value = getattr(instance, spec.name)
        if value is not None:
            result[key] = _text(value)
    return result


def _changes(part: object, values: Mapping[str, str], *, at_start: bool) -> dict[str, Any]:
    """Returns the fields of a part that may change now, with their new values. Raises ConfigError.

    All values are checked, also those of settings that cannot change.
    """
    typed = _typed(type(part), values)
    changes = {
        spec.name: typed[spec.name]
        for spec in _fields(type(part)).values()
        if spec.name in typed
        and (at_start or spec.metadata.get("live") or not spec.metadata.get("effect", True))
    }
    dataclasses.replace(part, **changes)  # type: ignore[type-var] # its own checks
    return changes


class Configuration:
    """All that a server is configured with: typed parts, and all of it as properties.

    The parts are frozen dataclasses, and code that uses settings holds the part itself. Only
    `update` changes settings, and its changes take effect everywhere at once. Then each of
    `on_change` is called with the keys that were changed.

    Keys of the file that no part has are kept, so that writing the file back loses nothing. A
    change of a setting that is not live is refused with an error, where the original answers
    success and goes on as before. What has no effect here may change at any time: it is shown, as
    if it had been in the file. Java class: common.Configuration.
    """

    def __init__(self, parts: Iterable[object], given: Mapping[str, str]) -> None:
        self._parts: dict[type, Any] = {type(part): part for part in parts}
        self._properties: dict[str, str] = {}
        for cls in self._parts:
            shown: Mapping[str, str | None] = getattr(cls, "IGNORED", {})
            self._properties |= {key: text for key, text in shown.items() if text is not None}
        self._properties |= given
        for part in self._parts.values():
            self._properties |= as_properties(part)
        self.on_change: list[Callable[[Collection[str]], None]] = []
        self._text: str | None = None

    def get(self, cls: type[C]) -> C:
        """Returns the part of this class; it is always the same instance."""
        part: C = self._parts[cls]
        return part

    @property
    def properties(self) -> dict[str, str]:
        """Returns all keys and values, including those of the original that have no effect here."""
        return dict(self._properties)

    @property
    def shown(self) -> dict[str, str]:
        """Returns the same as `properties`, without the secrets among them."""
        return all_shown(self._properties)

    @property
    def text(self) -> str:
        """Returns the properties as the text of a file, without secrets, sorted by key; it is made
        when they change.
        """
        if self._text is None:
            self._text = write_properties(dict(sorted(self.shown.items())))
        return self._text

    def unknown(self, values: Iterable[str]) -> list[UnknownKey]:
        """Returns those of these keys that are no settings."""
        known = {each for cls in self._parts for each in known_keys(cls)}
        return unknown_keys(values, known, MOST_GUESSES)

    def without_effect(self, values: Iterable[str]) -> list[str]:
        """Returns those of these keys of the original that change nothing here."""
        idle = {
            each for cls in self._parts for each in ignored_keys(cls, dict.fromkeys(values, ""))
        }
        return [key for key in values if key in idle]

    def update(self, values: Mapping[str, str], *, at_start: bool = False) -> list[str]:
        """Takes all of the values or none; returns the keys whose values they change.

        With `at_start`, settings that are not live may change, too. That is for what a server finds
        out while it starts, such as its own address. Raises ConfigError for a value that is not
        valid, for an unknown key, and for a setting that cannot change now, unless it has this
        value already. What is shown in place of a secret changes nothing.
        """
        _check_texts(values)
        values = {key: self._meant(key, text) for key, text in values.items()}
        changed = [
            (part, _changes(part, values, at_start=at_start)) for part in self._parts.values()
        ]
        taken = {key: values[key] for key in values if not self._is_so(key, values[key])}
        if not at_start:
            self._check_live(taken)
        for part, changes in changed:
            for name, value in changes.items():
                object.__setattr__(part, name, value)
        self._properties |= taken
        self._text = None
        if taken:
            for heard in self.on_change:
                heard(taken.keys())
        return list(taken)

    def _meant(self, key: str, text: str) -> str:
        """Returns the value that is meant: whoever writes back what was shown means the secret."""
        now = self._properties.get(key, "")
        return now if text == HIDDEN and shown(key, now) == HIDDEN else text

    def _is_so(self, key: str, text: str) -> bool:
        """Returns whether a key has this value already, however it is written."""
        for part in self._parts.values():
            spec = _fields(type(part)).get(key)
            if spec is not None:
                return bool(_typed(type(part), {key: text})[spec.name] == getattr(part, spec.name))
        return self._properties.get(key) == text

    def _check_live(self, keys: Collection[str]) -> None:
        """Raises ConfigError unless all of the settings may change while the server runs."""
        left = dict.fromkeys(keys, "")
        for cls in self._parts:
            fields, idle = _fields(cls), ignored_keys(cls, left)
            for key in [key for key in left if key in fields and key not in idle]:
                if not fields[key].metadata.get("live"):
                    raise ConfigError(
                        f"{key} cannot change while the server runs: set it in the configuration"
                        " file and restart"
                    )
                del left[key]
            for key in idle:
                left.pop(key, None)
        for unknown in self.unknown(left):
            raise ConfigError(str(unknown))


_FIELDS: Final[dict[type, Mapping[str, dataclasses.Field[Any]]]] = {}
_HINTS: Final[dict[type, Mapping[str, Any]]] = {}


def _fields(cls: type) -> Mapping[str, dataclasses.Field[Any]]:
    if cls not in _FIELDS:
        _FIELDS[cls] = {
            spec.metadata.get("java") or camel_case(spec.name): spec
            for spec in dataclasses.fields(cls)
            if spec.init
        }
    return _FIELDS[cls]


def _hints(cls: type) -> Mapping[str, Any]:
    if cls not in _HINTS:
        _HINTS[cls] = get_type_hints(cls)
    return _HINTS[cls]


def _typed(cls: type, values: Mapping[str, str]) -> dict[str, Any]:
    """Returns typed values by field name, for the keys of this class that are in `values`.

    Raises ConfigError for a value that is not valid, or that promises what is not served.
    """
    unserved: tuple[Unserved, ...] = getattr(cls, "UNSERVED", ())
    for each in unserved:
        if each.key in values:
            each.check(values[each.key])
    hints = _hints(cls)
    return {
        spec.name: _checked(spec, key, _parsed(key, values[key], hints[spec.name]))
        for key, spec in _fields(cls).items()
        if key in values
    }


def _check_texts(values: Mapping[str, str]) -> None:
    if wrong := what_is_wrong(values):
        raise ConfigError(wrong)


def _checked(spec: dataclasses.Field[Any], key: str, value: Any) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        least, most = spec.metadata.get("least", 0), spec.metadata.get("most", INT_MAX)
        if not value >= least:
            raise ConfigError(f"{key} must be at least {least}, not {value}")
        if value > most:
            raise ConfigError(f"{key} must be at most {most}, not {value}")
    return value


def _parsed(key: str, text: str, annotation: Any) -> Any:
    text = text.strip()
    if get_origin(annotation) is tuple:
        return tuple(part for each in text.split(LIST_SEPARATOR) if (part := each.strip()))
    options = [a for a in get_args(annotation) if a is not type(None)] or [annotation]
    kind = options[0]
    if kind is str:
        return text
    if kind is bool:
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise ConfigError(f"{key} must be true or false, not {text!r}")
    if kind is int:
        if _WHOLE.fullmatch(text):
            return int(text)
        raise ConfigError(f"{key} must be a whole number, not {text!r}")
    if kind is float:
        try:
            return float(text)
        except ValueError:
            raise ConfigError(f"{key} must be a number, not {text!r}") from None
    raise TypeError(f"{key}: a setting cannot be {annotation}")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return LIST_SEPARATOR.join(value)
    return str(value)
