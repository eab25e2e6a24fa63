# SPDX-License-Identifier: Apache-2.0
"""Options of the commands that are made without click, shown as click shows those of the others.

The servers start without click, and have the original's options; whoever reads their help should
not notice it.
"""

from __future__ import annotations

import argparse
import difflib
import shutil
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

_INDENT: Final = "  "
_WIDTHS: Final = (50, 98)
"""How narrow and how wide the text is at most."""
_COLUMN: Final = 32
"""Where the descriptions of options begin, at most."""


class OptionParser(argparse.ArgumentParser):
    """Parses options. `arguments` are what the line of usage shows besides [OPTIONS]."""

    def __init__(
        self, prog: str, description: str, *, arguments: str = "", epilog: str | None = None
    ) -> None:
        super().__init__(
            prog=prog,
            usage=f"{prog} [OPTIONS] {arguments}".rstrip(),
            description=description,
            epilog=epilog,
            formatter_class=_Formatter,
            add_help=False,
        )
        self._optionals.title = "Options"
        self.add_argument("-h", "--help", action=_Help, nargs=0, help="Show this message and exit.")

    def parse_args(  # type: ignore[override] # of its overloads only the usual one
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Returns the values of the options; an unknown one is answered with those like it."""
        values, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.error(self._what_is_unknown(unknown[0]))
        return values

    def _what_is_unknown(self, argument: str) -> str:
        name = argument.partition("=")[0]
        if not name.startswith("-"):
            return f"there is an argument {name!r} too many"
        known = [each for each in self._option_string_actions if each.startswith("--")]
        word = name.lstrip("-")
        near = [each for each in known if word in each.lstrip("-").split("-")]
        near = near or difflib.get_close_matches(name, known, 1)
        words = " or ".join((", ".join(near[:-1]), near[-1])) if near[1:] else "".join(near)
        hint = f"; did you mean {words}?" if near else ""
        return f"there is no option {name}{hint}"

    def error(self, message: str) -> NoReturn:
        """Ends the process with the exit code of wrong usage."""
        hint = f"Try '{self.prog} --help' for help."
        self.exit(2, f"Usage: {self.usage}\n{hint}\n\nError: {message}\n")


class _Help(argparse.Action):
    """Prints the help. It is a class of its own, to be found among the other options."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        parser.print_help()
        parser.exit()


class _Formatter(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        least, most = _WIDTHS
        width = min(max(shutil.get_terminal_size().columns - len(_INDENT), least), most)
        super().__init__(prog, max_help_position=_COLUMN, width=width)

    def add_usage(
        self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None
    ) -> None:
        super().add_usage(usage, actions, groups, prefix or "Usage: ")

    def add_arguments(self, actions: Iterable[argparse.Action]) -> None:
        """Adds options, --help as the last of its group."""
        super().add_arguments(sorted(actions, key=lambda each: isinstance(each, _Help)))

    def _format_text(self, text: str) -> str:
        return self._fill_text(text, self._width - len(_INDENT), _INDENT) + "\n\n"

    def _format_action_invocation(self, action: argparse.Action) -> str:
        names = ", ".join(action.option_strings)
        if action.nargs == 0:
            return names
        return f"{names} {self._format_args(action, str(action.dest).upper())}"

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        metavar = action.metavar or default_metavar
        if action.choices is not None:
            metavar = f"[{'|'.join(map(str, action.choices))}]"
        return f"{metavar}..." if action.nargs == "+" else str(metavar)
