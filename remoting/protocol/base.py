# SPDX-License-Identifier: Apache-2.0
"""Fields that most request headers of 5.x share; of these, 4.9 has only `bname`.

Java: remoting.rpc.RpcRequestHeader, TopicRequestHeader.
"""

from __future__ import annotations

from txrocketmq.remoting.header import Header, header


@header("org.apache.rocketmq.remoting.rpc.RpcRequestHeader")
class RpcRequestHeader(Header):
    """Fields that most requests share.

    `ns` is a namespace, `nsd` says whether the names already contain it, `bname` is the name of the
    broker, and `oway` says whether the request is one-way.
    """

    ns: str | None = None
    nsd: bool | None = None
    bname: str | None = None
    oway: bool | None = None


@header("org.apache.rocketmq.remoting.rpc.TopicRequestHeader")
class TopicRequestHeader(RpcRequestHeader):
    """Fields of requests about a topic; `lo` says whether it is a logical (static) topic."""

    lo: bool | None = None
