# SPDX-License-Identifier: Apache-2.0
"""What is done to messages of one kind, each declared with what it acts on."""
