# SPDX-License-Identifier: Apache-2.0
"""The reactor of servers, and of the client's thread."""
