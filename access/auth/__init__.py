# SPDX-License-Identifier: Apache-2.0
"""ACL 2 of RocketMQ 5: users, their policies, and who may do what."""
