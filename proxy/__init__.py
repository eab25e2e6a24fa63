# SPDX-License-Identifier: Apache-2.0
"""The gRPC proxy: serves the clients of RocketMQ 5.x that speak gRPC, in front of any cluster.

This is the inside of the server: programs use `txrocketmq.client`, or a gRPC client.
"""

if __name__ != "txrocketmq.proxy":
    raise ImportError("import txrocketmq.proxy, not proxy: each class would exist twice")
