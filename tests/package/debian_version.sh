#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# debian_version.sh CHANGELOG VERSION: the packages have the version of weft.h.
set -eu
said=$(sed -n '1s/^weft (\(.*\)-[^-]*) .*/\1/p' "$1")
[ "$said" = "$2" ] || { echo "$1 says $said, weft.h $2; fix: add an entry" && exit 1; }
