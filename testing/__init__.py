# SPDX-License-Identifier: Apache-2.0
if __name__ != "txrocketmq.testing":
    raise ImportError("import txrocketmq.testing, not testing: each class would exist twice")
