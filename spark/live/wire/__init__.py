# SPDX-License-Identifier: Apache-2.0
"""The small client with which tasks ask brokers and name servers."""
