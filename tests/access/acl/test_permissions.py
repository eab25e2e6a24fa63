# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.access.acl.errors import AclError
from txrocketmq.access.acl.permissions import (
    ANY,
    DENY,
    PUB,
    SUB,
    check_entries,
    is_enough,
    permission,
    permissions,
)

WORDS = ["DENY", "PUB", "SUB", "PUB|SUB", "SUB|PUB", "pub", "ANY", "", "PUB,SUB"]
NAMES = st.text(alphabet="abc%", min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("text", "value"),
    [(None, DENY), (" PUB ", PUB), ("SUB", SUB), ("PUB|SUB", PUB | SUB), ("SUB|PUB", PUB | SUB)]
    + [(word, DENY) for word in ("DENY", "pub", "ANY", "", "PUB |SUB", "PUB,SUB")],
)
def test_a_word_that_is_not_known_denies(text: str | None, value: int) -> None:
    assert permission(text) == value


@given(st.sets(st.sampled_from([DENY, PUB, SUB])), st.sampled_from([ANY, PUB, SUB]))
def test_enough_is_what_the_words_say(owned: set[int], needed: int) -> None:
    expected = DENY not in owned and bool(owned & {PUB, SUB} if needed == ANY else needed in owned)
    assert is_enough(sum(owned), needed) == expected


@given(
    st.dictionaries(NAMES, st.sampled_from(WORDS[:5])),
    st.dictionaries(NAMES, st.sampled_from(WORDS[:5])),
)
def test_topics_and_groups_are_in_one_table(topics: dict[str, str], groups: dict[str, str]) -> None:
    table = permissions(
        [f" {name} = {text}" for name, text in topics.items()],
        [f"{name}={text} " for name, text in groups.items()],
    )
    expected = {f"%RETRY%{name}": permission(text) for name, text in groups.items()}
    assert table == expected | {name: permission(text) for name, text in topics.items()}


@pytest.mark.parametrize("text", ["", "a", "a=", "=PUB", "a=PUB=SUB", "="])
def test_an_entry_has_a_name_and_a_permission(text: str) -> None:
    with pytest.raises(AclError, match="Parse resource permission failed for topic:"):
        permissions([text], [])
    with pytest.raises(AclError, match="Parse Resource format error for"):
        check_entries([text])


def test_an_administrator_is_told_of_words_that_are_not_known() -> None:
    check_entries(["a=DENY", "b=SUB|PUB"])
    with pytest.raises(AclError, match="Parse resource permission error for a=WRITE"):
        check_entries(["a=WRITE"])
