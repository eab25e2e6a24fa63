# SPDX-License-Identifier: Apache-2.0
if __name__ != "txrocketmq.namesrv":
    raise ImportError("import txrocketmq.namesrv, not namesrv: each class would exist twice")
