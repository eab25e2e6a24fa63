# SPDX-License-Identifier: Apache-2.0
"""Refusals say nothing that was not put into them."""

from __future__ import annotations

from txrocketmq.access.authority import Refusal


def test_a_refusal_may_be_about_no_resource() -> None:
    refusal = Refusal("username cannot be null.", "no account is named")
    assert (refusal.user, refusal.resource, refusal.action) == ("", "", "")
