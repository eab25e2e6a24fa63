# SPDX-License-Identifier: Apache-2.0
"""The JSON bodies of requests and answers."""
