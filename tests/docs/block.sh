#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# block.sh README LANGUAGE: standard input must be what the README shows in its block of that language.
set -eu
shown=$(sed -n "/^\`\`\`$2\$/,/^\`\`\`\$/p" "$1" | sed '1d;$d')
truth=$(cat)
if [ "$shown" != "$truth" ]; then
  printf '%s shows, as %s:\n%s\nbut the truth is:\n%s\n' "$1" "$2" "$shown" "$truth" >&2
  exit 1
fi
