# SPDX-License-Identifier: Apache-2.0
"""Help and errors of the commands that are made without click."""

from __future__ import annotations

import pytest

from txrocketmq.remoting.settings.option_parser import OptionParser


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> OptionParser:
    monkeypatch.setenv("COLUMNS", "80")
    made = OptionParser("prog", "Do something.", arguments="--many DIR...", epilog="The end.")
    made.add_argument("--many", nargs="+", metavar="DIR", help="Several things.")
    made.add_argument("-f", "--form", choices=["a", "b"], help="One of two.")
    made.add_argument("-y", "--yes", action="store_true", help="Do not ask.")
    made.add_argument("--plain", help="A word.")
    made.add_argument_group("Other").add_argument("--last", metavar="N", help="A number.")
    return made


def test_help_looks_like_that_of_click(parser: OptionParser) -> None:
    assert (
        parser.format_help()
        == """\
Usage: prog [OPTIONS] --many DIR...

  Do something.

Options:
  --many DIR...     Several things.
  -f, --form [a|b]  One of two.
  -y, --yes         Do not ask.
  --plain PLAIN     A word.
  -h, --help        Show this message and exit.

Other:
  --last N          A number.

  The end.
"""
    )


def test_asking_for_help_is_no_error(
    parser: OptionParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["-h"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("Usage: prog [OPTIONS]")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--wrong"], "there is no option --wrong"),
        (["--from=a"], "there is no option --from; did you mean --form?"),
        (["--port=1"], "option --port; did you mean --a-port, --b-port or --c-port?"),
        (["more"], "there is an argument 'more' too many"),
        (["--form", "c"], "invalid choice: 'c'"),
    ],
)
def test_wrong_usage_looks_like_that_of_click(
    parser: OptionParser, words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("--a-port", "--b-port", "--c-port"):
        parser.add_argument(name)
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(words)
    assert ended.value.code == 2
    said = capsys.readouterr().err.splitlines()
    assert said[:3] == ["Usage: prog [OPTIONS] --many DIR...", "Try 'prog --help' for help.", ""]
    assert said[3].startswith("Error: ")
    assert why in said[3]


@pytest.mark.parametrize("columns", ["20", "80", "200"])
def test_lines_are_as_long_as_the_terminal_but_not_too_long(
    parser: OptionParser, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    parser.description = "word " * 100
    assert max(map(len, parser.format_help().splitlines())) <= min(max(int(columns), 50), 100)
