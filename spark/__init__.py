# SPDX-License-Identifier: Apache-2.0
if __name__ != "txrocketmq.spark":
    raise ImportError(
        "import txrocketmq.spark, not spark: the bare name would make a second copy of each class"
    )
