# SPDX-License-Identifier: Apache-2.0
"""Parses command lines of the client without running them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TypeVar

import click

from txrocketmq.cli.command_line import Servers

T = TypeVar("T")


def given(command: click.Command, options: Callable[..., T], words: Sequence[str]) -> T:
    """Returns the options that the words give, without the servers, which the session uses."""
    servers = {each.name for each in fields(Servers)}
    with command.make_context("prog", list(words)) as context:
        return options(**{name: it for name, it in context.params.items() if name not in servers})
