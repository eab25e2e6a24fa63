# SPDX-License-Identifier: Apache-2.0
"""What a command line of the client comes to, without running it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import click

T = TypeVar("T")


def given(command: click.Command, options: Callable[..., T], words: Sequence[str]) -> T:
    """The options that the words give; the name servers are for the session alone."""
    with command.make_context("prog", list(words)) as context:
        return options(**{name: it for name, it in context.params.items() if name != "namesrv"})
