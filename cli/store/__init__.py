# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq store`: check, repair and print the store of a broker."""
