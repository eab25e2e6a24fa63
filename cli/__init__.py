# SPDX-License-Identifier: Apache-2.0
"""The command `txrocketmq`, which is also `python -m txrocketmq`.

This is the inside of the command: what programs use instead is the client, `txrocketmq.client`.
"""

if __name__ != "txrocketmq.cli":
    raise ImportError("import txrocketmq.cli, not cli: each class would exist twice")
