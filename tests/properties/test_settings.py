# SPDX-License-Identifier: Apache-2.0
"""Every setting that is a number has bounds, at a start as well as while the server runs."""

from __future__ import annotations

import dataclasses
from typing import Any, get_type_hints

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.remoting.header import camel_case
from txrocketmq.remoting.settings.config_file import ConfigError, Configuration, load

NUMBERS = [
    pytest.param(cls, spec, id=spec.name)
    for cls in (NamesrvConfig, BrokerConfig, StoreConfig)
    for spec in dataclasses.fields(cls)
    if get_type_hints(cls)[spec.name] is int
]
BESIDE = {"inSyncReplicas": {"brokerRole": "SYNC_MASTER"}}
"""Other settings without which a number has no effect, for which it is refused."""
IN_SYNC_REPLICAS = next(each for each in NUMBERS if each.id == "in_sync_replicas")


@pytest.mark.parametrize(("cls", "spec"), NUMBERS)
def test_a_number_out_of_bounds_is_refused(cls: type[Any], spec: dataclasses.Field[Any]) -> None:
    key = spec.metadata["java"] or camel_case(spec.name)
    least, most = spec.metadata["least"], spec.metadata["most"]
    assert least <= spec.default <= most
    for number, why in ((least - 1, f"at least {least}"), (most + 1, f"at most {most}")):
        with pytest.raises(ConfigError, match=f"{key} must be {why}, not {number}"):
            load(cls, {key: str(number)})
        with pytest.raises(ConfigError, match=f"{key} must be {why}, not {number}"):
            Configuration([cls()], {}).update({key: str(number)})


@example(IN_SYNC_REPLICAS, 2)
@given(st.sampled_from(NUMBERS), st.integers(-(2**70), 2**70))
def test_what_is_taken_is_within_bounds(case: Any, number: int) -> None:
    cls, spec = case.values
    key = spec.metadata["java"] or camel_case(spec.name)
    try:
        config, _ = load(cls, {key: str(number), **BESIDE.get(key, {})})
    except ConfigError as refused:
        assert str(refused).startswith(f"{key} must be ")
    else:
        assert spec.metadata["least"] <= getattr(config, spec.name) <= spec.metadata["most"]
