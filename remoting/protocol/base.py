# SPDX-License-Identifier: Apache-2.0
"""Fields that most request headers of 5.x share; 4.9 knows only `bname`.

Java: remoting.rpc.RpcRequestHeader, TopicRequestHeader.
"""

from __future__ import annotations

from txrocketmq.remoting.header import Header, header


@header("org.apache.rocketmq.remoting.rpc.RpcRequestHeader")
class RpcRequestHeader(Header):
    """Namespace, whether names are within it already, the broker's name, and one-way."""

    ns: str | None = None
    nsd: bool | None = None
    bname: str | None = None
    oway: bool | None = None


@header("org.apache.rocketmq.remoting.rpc.TopicRequestHeader")
class TopicRequestHeader(RpcRequestHeader):
    """`lo`: the queue is one of a logical (static) topic."""

    lo: bool | None = None
