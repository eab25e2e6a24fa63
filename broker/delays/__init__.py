# SPDX-License-Identifier: Apache-2.0
"""Delay levels: the schedule that delivers what waits for one, and the message it delivers."""
