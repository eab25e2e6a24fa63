# SPDX-License-Identifier: Apache-2.0
if __name__ != "txrocketmq.broker":
    raise ImportError("import txrocketmq.broker, not broker: else every class would exist twice")
