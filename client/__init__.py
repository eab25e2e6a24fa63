# SPDX-License-Identifier: Apache-2.0
if __name__ != "txrocketmq.client":
    raise ImportError("import txrocketmq.client, not client: each class would exist twice")
