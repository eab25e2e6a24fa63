# SPDX-License-Identifier: Apache-2.0
"""Every public name of the client, and every setting of it, says what it is."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.client import blocking, names
from txrocketmq.client.config import ClientConfig
from txrocketmq.client.faces import config_class, members

ROOT = Path(__file__).resolve().parent.parent.parent


def _texts(field_texts: Callable[[type], dict[str, str]]) -> Iterator[tuple[str, str | None]]:
    configs: set[type] = {ClientConfig}
    for name in blocking.__all__:
        if name in names.__all__:
            continue
        core: Any = getattr(blocking, name)._core_class
        configs.add(config_class(core))
        yield name, core.__doc__
        for member in members(core):
            yield f"{name}.{member.name}", member.function.__doc__
    for name in names.__all__:
        thing = getattr(names, name)
        is_made = inspect.isclass(thing) and (thing.__doc__ or "").startswith(f"{name}(")
        yield name, None if is_made else thing.__doc__
    for config in configs:
        texts = field_texts(config)
        for field in dataclasses.fields(config):
            yield f"{config.__name__}.{field.name}", texts.get(field.name)


def test_all_of_it_is_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    config_page = importlib.import_module("docs.generate_config")
    everything = list(_texts(config_page.field_texts))
    assert len(everything) > 200
    assert [name for name, text in everything if not (text or "").strip()] == []
