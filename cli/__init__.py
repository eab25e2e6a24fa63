# SPDX-License-Identifier: Apache-2.0
if __name__ != "txrocketmq.cli":
    raise ImportError("import txrocketmq.cli, not cli: each class would exist twice")
