# SPDX-License-Identifier: Apache-2.0
"""Which broker has which topic: registrations, what routes answer, and who is told of changes."""
