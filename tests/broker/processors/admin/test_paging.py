# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.processors.admin.paging import Page
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.protocol.body.route import DataVersion

TABLE = {name: name.upper() for name in "dbcae"}
VERSION = DataVersion(timestamp=5, counter=2)
SAME = VERSION.encode().decode()


def names(page: Page, largest: int = 100) -> str:
    return "".join(page.of(TABLE, VERSION, largest))


def test_an_old_caller_gets_everything() -> None:
    page = Page(None, None, None)
    assert page.is_everything
    assert page.of(TABLE, VERSION, 1) == TABLE


def test_pages_follow_one_another_by_name() -> None:
    assert [names(Page(start, 2, SAME)) for start in (0, 2, 4, 6)] == ["ab", "cd", "e", ""]


def test_the_smaller_limit_counts() -> None:
    assert names(Page(0, 4, SAME), largest=3) == "abc"
    assert names(Page(0, None, SAME), largest=3) == "abc"


def test_a_changed_table_is_read_from_its_start() -> None:
    older = DataVersion(timestamp=5, counter=1).encode().decode()
    assert names(Page(2, 2, older)) == "ab"
    assert names(Page(2, 2, None)) == "ab"
    assert names(Page(None, None, SAME), largest=2) == "ab"


@pytest.mark.parametrize("page", [Page(-3, 2, SAME), Page(0, -1, SAME)])
def test_numbers_below_zero_do_no_harm(page: Page) -> None:
    assert names(page) in ("ab", "")


def test_a_version_that_is_none() -> None:
    with pytest.raises(HeaderError):
        names(Page(1, 2, "{nonsense"))
