# SPDX-License-Identifier: Apache-2.0
"""The accounts of RocketMQ 4.x (ACL 1): files of YAML, and what they allow."""
