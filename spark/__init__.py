# SPDX-License-Identifier: Apache-2.0
if __name__ != "txrocketmq.spark":
    raise ImportError("import txrocketmq.spark, not spark: each class would exist twice")
