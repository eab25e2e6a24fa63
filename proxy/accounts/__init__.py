# SPDX-License-Identifier: Apache-2.0
"""Who calls, and whether that account may: signatures of gRPC, and where accounts come from."""
