# SPDX-License-Identifier: Apache-2.0
"""Settings: files of properties, dataclasses that declare types, TLS, metrics."""
