# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's protocol: frames, requests, messages, connections.

This is the inside of clients and servers: programs use `txrocketmq.client`.
"""

if __name__ != "txrocketmq.remoting":
    raise ImportError("import txrocketmq.remoting, not remoting: each class would exist twice")
