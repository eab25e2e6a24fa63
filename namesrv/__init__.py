# SPDX-License-Identifier: Apache-2.0
"""The name server: keeps which brokers have which topics; `mqnamesrv` runs it.

This is the inside of the server: programs use `txrocketmq.client`, and tests also
`txrocketmq.testing.server`.
"""

if __name__ != "txrocketmq.namesrv":
    raise ImportError("import txrocketmq.namesrv, not namesrv: each class would exist twice")
