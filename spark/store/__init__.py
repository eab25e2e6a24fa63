# SPDX-License-Identifier: Apache-2.0
"""A store seen from outside: its folders, files, queues and settings."""
