# SPDX-License-Identifier: Apache-2.0
"""The accounts of a broker: their files, and who asks them about requests."""
