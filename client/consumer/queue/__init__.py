# SPDX-License-Identifier: Apache-2.0
"""One queue of a consumer: messages that wait, offsets, locks."""
