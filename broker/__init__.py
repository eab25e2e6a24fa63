# SPDX-License-Identifier: Apache-2.0
if __name__ != "txrocketmq.broker":
    raise ImportError("import txrocketmq.broker, not broker: each class would exist twice")
