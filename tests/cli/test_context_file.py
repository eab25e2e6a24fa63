# SPDX-License-Identifier: Apache-2.0
"""The file of contexts: what it may say, and that people's text in it stays."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.cli.context_file import (
    MAX_FILE_BYTES,
    Context,
    ContextError,
    ContextFile,
    chosen_context,
    contexts_path,
)

TEXT = """\
# my clusters
current = "dev"   # for now

[dev]
namesrv = "127.0.0.1:9876"

[prod]  # handle with care
namesrv = "a:1;b:2"
tls = true
access_key = "me"
secret_key = "hush"
"""


def parsed(text: str = TEXT) -> ContextFile:
    return ContextFile.parse(Path("f"), text)


def test_what_the_file_says() -> None:
    file = parsed()
    assert (sorted(file.contexts), file.current) == (["dev", "prod"], "dev")
    assert file.get("prod") == Context(
        namesrv="a:1;b:2",
        tls=True,
        access_key="me",
        secret_key="hush",  # noqa: S106 - of no account
    )
    assert "hush" not in repr(file.get("prod"))


def test_without_a_file_there_are_no_contexts() -> None:
    assert ContextFile.read().contexts == {}
    assert chosen_context(None, has_address=False) is None


def test_the_file_is_where_settings_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert contexts_path() == tmp_path / "config" / "txrocketmq" / "contexts.toml"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", "/h")
    assert contexts_path() == Path("/h/.config/txrocketmq/contexts.toml")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[a", "is not valid TOML"),
        ("current = 5", 'write current = "NAME"'),
        ('a = "x"', r"a stands outside of a section: begin one with \[NAME\]"),
        ('[a]\nnameserv = "x:1"', "has no setting nameserv; did you mean namesrv?"),
        ('[a]\nzzz = "x:1"', "has no setting zzz; there are namesrv, tls"),
        ("[a]\nnamesrv = 5", "namesrv of context a must be a text"),
        ('[a]\nnamesrv = "x:1"\ntls = "yes"', "tls of context a must be true or false"),
        ("[a]\ntls = true", "has no namesrv"),
        ('[a]\nnamesrv = "x:1"\naccess_key = "k"', "needs access_key and secret_key"),
    ],
)
def test_what_the_file_cannot_say(text: str, why: str) -> None:
    with pytest.raises(ContextError, match=why):
        parsed(text)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ContextError, match="cannot be read: Is a directory"):
        ContextFile.read(tmp_path)
    path = tmp_path / "f"
    path.write_bytes(b"\xff")
    with pytest.raises(ContextError, match="is not text in UTF-8"):
        ContextFile.read(path)
    path.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(ContextError, match="is larger than"):
        ContextFile.read(path)


def test_an_unknown_name() -> None:
    with pytest.raises(ContextError, match="there is no context prd; did you mean prod?"):
        parsed().get("prd")
    with pytest.raises(ContextError, match="there is no context x; contexts in f: dev, prod"):
        parsed().get("x")


def test_a_context_is_added_behind_what_is_there() -> None:
    file = parsed().with_context("test", Context(namesrv="c:3", tls_key='a"b\\c'))
    assert file.text.startswith(TEXT)
    assert file.get("test").tls_key == 'a"b\\c'
    with pytest.raises(ContextError, match="there is a context test already"):
        file.with_context("test", Context(namesrv="c:3"))


@pytest.mark.parametrize("name", ["", "current", "a b", "a.b", "[a]", "ä", "x" * 65])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(ContextError, match="cannot be the name of a context"):
        parsed().with_context(name, Context(namesrv="c:3"))


def test_a_value_that_cannot_be_printed() -> None:
    with pytest.raises(ContextError, match="cannot be printed"):
        parsed().with_context("a", Context(namesrv="c:3\n"))


def test_another_is_used_and_comments_stay() -> None:
    file = parsed().using("prod")
    assert file.current == "prod"
    assert "# my clusters" in file.text
    assert "# handle with care" in file.text
    assert file.using(None).current is None
    with pytest.raises(ContextError, match="there is no context x"):
        file.using("x")


def test_one_is_removed_and_the_others_stay() -> None:
    file = parsed().without("prod")
    assert (list(file.contexts), file.current) == (["dev"], "dev")
    assert "hush" not in file.text
    assert file.without("dev").current is None
    with pytest.raises(ContextError, match="there is no context prod"):
        file.without("prod")


def test_what_is_not_in_a_section_is_removed_by_hand() -> None:
    with pytest.raises(ContextError, match="remove a by hand"):
        parsed('a.namesrv = "x:1"\n').without("a")


def test_only_its_owner_reads_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "f"
    ContextFile(path).with_context("a", Context(namesrv="c:3")).write()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ContextFile.read(path).get("a").namesrv == "c:3"
    with pytest.raises(ContextError, match="cannot be written"):
        ContextFile(path / "below").write()


names = st.from_regex(r"[A-Za-z0-9_-]{1,9}", fullmatch=True).filter(lambda name: name != "current")


@given(st.dictionaries(names, st.text(st.characters(codec="utf-8"), min_size=1), max_size=5))
def test_what_was_added_is_there_until_it_is_removed(values: dict[str, str]) -> None:
    file = ContextFile(Path("f"), "# mine\n")
    for name, value in values.items():
        namesrv = "".join(filter(str.isprintable, value)) or "x"
        file = file.with_context(name, Context(namesrv=namesrv)).using(name)
        assert (file.current, file.get(name).namesrv) == (name, namesrv)
    for name in values:
        file = file.without(name)
    assert (file.contexts, file.current, file.text.split("\n")[0]) == ({}, None, "# mine")


def test_which_context_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    ContextFile.parse(contexts_path(), TEXT).write()

    def used(name: str | None = None, *, has_address: bool = False) -> str | None:
        found = chosen_context(name, has_address=has_address)
        return None if found is None else found.namesrv

    assert used() == "127.0.0.1:9876", "the current one"
    assert used(has_address=True) is None
    assert used("prod", has_address=True) == "a:1;b:2"
    monkeypatch.setenv("NAMESRV_ADDR", "c:3")
    assert used() is None, "the environment comes before what was chosen once"
    monkeypatch.setenv("TXROCKETMQ_CONTEXT", "prod")
    assert used() == "a:1;b:2"
    assert used("dev") == "127.0.0.1:9876"
    monkeypatch.setenv("TXROCKETMQ_CONTEXT", "prd")
    with pytest.raises(ContextError, match=r"^\$TXROCKETMQ_CONTEXT: there is no context prd"):
        used()


def test_a_current_context_that_is_gone() -> None:
    ContextFile.parse(contexts_path(), TEXT.replace("[dev]", "[old]")).write()
    with pytest.raises(ContextError, match="^current in .*: there is no context dev"):
        chosen_context(None, has_address=False)
