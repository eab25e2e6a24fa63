# SPDX-License-Identifier: Apache-2.0
"""The two codecs of a command's header."""
