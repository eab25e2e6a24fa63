# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools

import numpy as np

from tests.spark.logs import log_of
from tests.spark.stores import Draft
from txrocketmq.remoting.message.ids import encode_message_id, host_of
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.columns.hosts import BORN, STORE, hosts, message_ids

KINDS = list(itertools.product((False, True), repeat=2)) * 3
LOG = log_of([Draft(born_ipv6=born, store_ipv6=store) for born, store in KINDS], 1 << 33)
RECORDS = Records(LOG.buffer, np.array(LOG.starts, np.int64), LOG.first_offset)


def test_hosts_of_all_four_combinations() -> None:
    for which in (BORN, STORE):
        packed = [each[which] for each in LOG.parsed]
        expected = [str(host_of(each.ip, each.port)) for each in packed]
        assert hosts(RECORDS, which).to_pylist() == expected
    assert "[f0f1:f2f3:f4f5:f6f7:f8f9:fafb:fcfd:feff]:40002" in expected


def test_message_ids_of_both_kinds() -> None:
    expected = [
        encode_message_id(host_of(each.store_host.ip, each.store_host.port), each.physical_offset)
        for each in LOG.parsed
    ]
    assert message_ids(RECORDS).to_pylist() == expected
    assert {len(each) for each in expected} == {32, 56}


def test_chosen_records_and_none() -> None:
    some = RECORDS.where(np.arange(len(RECORDS)) % 3 == 1)
    assert hosts(some, BORN).to_pylist() == hosts(RECORDS, BORN).to_pylist()[1::3]
    none = RECORDS.slice(0, 0)
    assert hosts(none, STORE).to_pylist() == message_ids(none).to_pylist() == []
