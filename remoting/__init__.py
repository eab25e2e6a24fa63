# SPDX-License-Identifier: Apache-2.0
if __name__ != "txrocketmq.remoting":
    raise ImportError("import txrocketmq.remoting, not remoting: else every class would exist twice")
