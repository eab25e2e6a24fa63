# SPDX-License-Identifier: Apache-2.0
"""The broker: stores messages and delivers them; `mqbroker` runs it.

This is the inside of the server: programs use `txrocketmq.client`, and tests also
`txrocketmq.testing.server`.
"""

if __name__ != "txrocketmq.broker":
    raise ImportError("import txrocketmq.broker, not broker: each class would exist twice")
