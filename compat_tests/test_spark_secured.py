# SPDX-License-Identifier: Apache-2.0
"""The Spark source and sink with original brokers that want accounts (ACL 1, ACL 2) and encryption.

Readers and writers are called as Spark calls them, without a session.
"""

import itertools
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.peers import Broker, NameServer, Original, running
from compat_tests.scene import poll
from compat_tests.test_python_secured import ACL_2, PASSWORD, Closed
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.live.batch import LiveReader
from txrocketmq.spark.live.bounds import cluster_of
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.sink.writer import BatchWriter

ROWS = 500
USER = "pythonist"
"""ACL 1 wants names of more than six letters."""
SCHEMA = StructType([StructField("body", BinaryType()), StructField("tags", StringType())])
ACCOUNT = {"accessKey": USER, "secretKey": PASSWORD}
PLAIN_ACL = f"""\
accounts:
  - accessKey: {USER}
    secretKey: {PASSWORD}
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: PUB|SUB
    defaultGroupPerm: SUB
"""
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module", params=RELEASES)
def secured(request: pytest.FixtureRequest, engine: Engine, work_folder: Path) -> Iterator[Broker]:
    """A broker that wants an account: 4.9 by ACL 1, 5.x by ACL 2; both encrypt for who asks."""
    release: str = request.param
    origin = Original(release, engine)
    folder = work_folder / f"spark-secured-{release}"
    names = NameServer(origin, work_folder / f"spark-secured-namesrv-{release}")
    if release.startswith("4."):
        settings = {"aclEnable": "true"}
        (folder / "conf").mkdir(parents=True)
        (folder / "conf" / "plain_acl.yml").write_text(PLAIN_ACL)
    else:
        settings = {
            **ACL_2,
            "authConfigPath": str(folder / "auth"),
            "initAuthenticationUser": f'{{"username":"{USER}","password":"{PASSWORD}"}}',
        }
    broker = Closed(origin, folder, names, "broker-s", settings)
    with running(names, broker):
        yield broker


@pytest.fixture
def topic() -> str:
    """A topic that no other test has, and no earlier attempt at the same one."""
    return f"Guarded-{next(_NUMBERS)}"


def of(broker: Broker, topic: str, **more: str) -> SourceOptions:
    own = {"nameServer": broker.name_server.address, "topic": topic}
    return SourceOptions.of({**own, **more})


def write(broker: Broker, topic: str, **more: str) -> int:
    """What a task and the driver do."""
    options = of(broker, topic, sendTimeoutMs="20000", **more)
    writer = BatchWriter(options, SCHEMA, overwrite=False)
    task: Any = pickle.loads(pickle.dumps(writer))  # noqa: S301 - our own
    bodies = pa.array([b"%d" % number for number in range(ROWS)], pa.binary())
    rows = pa.RecordBatch.from_arrays([bodies, pa.array(["A"] * ROWS)], names=SCHEMA.names)
    written: Any = task.write(iter([rows]))
    writer.commit([written])
    return int(written.sent)


def wait_for(broker: Broker, topic: str, count: int) -> None:
    """Until so many messages can be read: the original fills its queues after its answers."""

    def is_there() -> bool:
        cluster = cluster_of(of(broker, topic, **ACCOUNT))
        return sum(cluster.max_offsets(cluster.read_queues(topic)).values()) >= count

    poll(is_there, f"{count} messages in the queues of {topic}", 60)


def read(broker: Broker, topic: str, **more: str) -> list[bytes]:
    options = of(broker, topic, pullTimeoutMs="20000", columns="body", **more)
    reader = LiveReader(options, Output.of(options))
    task: LiveReader = pickle.loads(pickle.dumps(reader))  # noqa: S301 - our own
    found = [batch for part in reader.partitions() for batch in task.read(part)]
    return [body for batch in found for body in batch.column("body").to_pylist()]


def test_an_account_writes_and_reads_encrypted_or_not(secured: Broker, topic: str) -> None:
    assert write(secured, topic, **ACCOUNT) == ROWS
    assert write(secured, topic, **ACCOUNT, useTls="true") == ROWS
    wait_for(secured, topic, 2 * ROWS)
    expected = sorted(2 * [b"%d" % number for number in range(ROWS)])
    assert sorted(read(secured, topic, **ACCOUNT)) == expected
    assert sorted(read(secured, topic, **ACCOUNT, useTls="true")) == expected


@pytest.mark.parametrize("wrong", [{}, {**ACCOUNT, "secretKey": "wrong-one"}])
def test_others_are_refused(secured: Broker, topic: str, wrong: dict[str, str]) -> None:
    with pytest.raises(ClusterError, match=r"refused SEND|not be sent in 1 attempts"):
        write(secured, topic, sendRetries="0", **wrong)
    write(secured, topic, **ACCOUNT)
    wait_for(secured, topic, ROWS)
    with pytest.raises(ClusterError, match=r"refused GET_(MIN|MAX)_OFFSET|refused PULL_MESSAGE"):
        read(secured, topic, **wrong)
