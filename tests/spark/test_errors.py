# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pickle

from txrocketmq.spark import errors


def test_an_option_error_names_the_option_and_the_valid_values() -> None:
    error = errors.OptionError.of("badRecords", "ignore", ["fail", "skip"])
    assert str(error) == "option badRecords='ignore' is not valid; valid: fail, skip"
    assert isinstance(error, ValueError)


def test_errors_cross_from_process_to_process() -> None:
    error = pickle.loads(pickle.dumps(errors.UnsupportedLayout("no reader for RocksDB")))  # noqa: S301
    assert type(error) is errors.UnsupportedLayout
    assert str(error) == "no reader for RocksDB"
