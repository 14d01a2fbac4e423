#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# exports.sh LIBRARY: fails if the library exports a name that does not begin with weft, or none at all.
set -eu
names=$(nm -D --defined-only "$1" | awk '{print $NF}')
strangers=$(printf '%s\n' "$names" | grep -v '^weft' || true)
if [ -n "$strangers" ]; then
  printf '%s exports names of its own inside:\n%s\n' "$1" "$strangers" >&2
  exit 1
fi
printf '%s\n' "$names" | grep -q '^weftAllReduce@@weft_0$'
