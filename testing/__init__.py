# SPDX-License-Identifier: Apache-2.0
if __name__ != "txrocketmq.testing":
    raise ImportError(
        "import txrocketmq.testing, not testing: the bare name would make a second copy of each class"
    )
