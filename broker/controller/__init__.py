# SPDX-License-Identifier: Apache-2.0
"""A broker whose master is chosen by a controller: who it is there, and what it hears."""
