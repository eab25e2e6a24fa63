# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq store check`: compares a store with itself."""
