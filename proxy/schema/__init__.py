# SPDX-License-Identifier: Apache-2.0
"""The definitions of apache.rocketmq.v2: names, numbers and types, and the classes made of them."""
