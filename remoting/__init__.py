# SPDX-License-Identifier: Apache-2.0
if __name__ != "txrocketmq.remoting":
    raise ImportError("import txrocketmq.remoting, not remoting: each class would exist twice")
