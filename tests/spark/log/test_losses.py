# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.spark.stores import StoreWriter
from txrocketmq.spark.arrow.errors import DataLossError
from txrocketmq.spark.log.losses import lose, loss_text
from txrocketmq.spark.store.store import Store


def test_what_is_gone_is_an_error_or_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = StoreWriter(tmp_path / "broker-a")
    text = loss_text(Store.open(str(writer.root)), 5, 10)
    assert "broker-a" in text
    assert "from 5 to 10" in text
    with pytest.raises(DataLossError, match="from 5 to 10.*failOnDataLoss=false"):
        lose(text, fail=True)
    with caplog.at_level(logging.WARNING, "txrocketmq.spark"):
        lose(text, fail=False)
    assert [record.message for record in caplog.records] == [text]
