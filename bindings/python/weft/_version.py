# SPDX-License-Identifier: Apache-2.0
"""The release of weft that this package is of; a test compares it with weft.h."""

VERSION = (0, 1, 0)
