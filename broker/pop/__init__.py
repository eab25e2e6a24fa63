# SPDX-License-Identifier: Apache-2.0
"""POP: messages that are taken, hidden, acknowledged and revived."""
