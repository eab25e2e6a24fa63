# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: fixtures with a name server and a broker for tests."""
