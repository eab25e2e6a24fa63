# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.spark.store.test_deleted_topics import places
from tests.spark.stores import Draft, StoreWriter
from tests.spark.streaming import Query, reader
from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning.plan import stores_of
from txrocketmq.spark.planning.reading import Reading
from txrocketmq.spark.store.broker_names import check_brokers

Stores = dict[str, StoreWriter]


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    """Two brokers of one name, with 6 and 4 messages in each of two queues."""
    made = {}
    for cluster, count in (("east", 12), ("west", 8)):
        made[cluster] = StoreWriter(tmp_path / cluster / "broker-a")
        made[cluster].put_all(Draft(queue_id=number % 2) for number in range(count))
        made[cluster].write_config()
    return made


def options_of(stores: Stores, **more: str) -> SourceOptions:
    paths = ",".join(str(writer.root) for writer in stores.values())
    return SourceOptions.of({"storePath": paths, "cluster": "east,west", **more})


def read(stores: Stores, **more: str) -> Counter[str]:
    """The number of rows by cluster."""
    options = options_of(stores, columns="cluster", **more)
    reading = Reading(options, Output.of(options))
    return Counter(
        name
        for part in reading.parts()
        for batch in reading.batches(part)
        for name in batch.column("cluster").to_pylist()
    )


def test_both_are_in_one_read(stores: Stores) -> None:
    assert read(stores) == {"east": 12, "west": 8}


def test_a_cluster_tells_which_is_meant(stores: Stores) -> None:
    offsets = '{"Topic": {"east/broker-a": {"0": 5}, "west/broker-a": {"0": 3, "1": 3}}}'
    assert read(stores, startingOffsets=offsets) == {"east": 7, "west": 2}
    assert read(stores, endingOffsets='{"log": {"east/broker-a": 0}}') == {"west": 8}
    assert read(stores, assign='{"Topic": {"west/broker-a": [1]}}') == {"west": 4}
    assert read(stores, assign='{"Topic": {"*": [1]}}') == {"east": 6, "west": 4}


def test_a_name_that_several_have_is_refused(stores: Stores) -> None:
    offsets = '{"Topic": {"broker-a": {"0": 5}}}'
    with pytest.raises(
        OptionError, match=r"several clusters have; name one of \['east/broker-a', "
    ):
        read(stores, startingOffsets=offsets)
    with pytest.raises(OptionError, match="assign names the broker broker-b; the stores are of"):
        read(stores, assign='{"Topic": {"broker-b": [0]}}')


def test_a_name_alone_is_enough_where_it_is_one(stores: Stores) -> None:
    del stores["west"]
    for name in ("broker-a", "east/broker-a"):
        offsets = f'{{"Topic": {{"{name}": {{"0": 5}}}}}}'
        options = options_of(stores, cluster="east", startingOffsets=offsets)
        check_brokers(stores_of(options), options)
        found = places(stores["east"].root, topic="Topic", cluster="east", startingOffsets=offsets)
        assert len(found) == 7


def test_a_stream_keeps_a_position_of_each(stores: Stores) -> None:
    paths = ",".join(str(writer.root) for writer in stores.values())
    query = Query().run(reader(paths, startingOffsets="earliest", cluster="east,west"))
    assert len(query.rows) == 20
    assert set(query.offsets[-1]["brokers"]) == {"east/broker-a", "west/broker-a"}
    stores["west"].put(Draft())
    query.run(reader(paths, cluster="east,west"))
    assert len(query.rows) == 21


def test_names_of_clusters(stores: Stores) -> None:
    with pytest.raises(OptionError, match="one for each of the 2 stores"):
        stores_of(options_of(stores, cluster="a,b,c"))
    with pytest.raises(OptionError, match="are both of broker 'broker-a' in the cluster 'c'"):
        stores_of(options_of(stores, cluster="c"))
    with pytest.raises(OptionError, match="no name has a slash"):
        stores_of(options_of(stores, cluster="a/b,c"))
