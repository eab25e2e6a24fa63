# SPDX-License-Identifier: Apache-2.0
"""Commands that administer a cluster.

Java: MQAdminStartup and its commands, which work with these servers as well.
"""
