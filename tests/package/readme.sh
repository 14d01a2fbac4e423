#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# readme.sh README SOURCE: fails unless the README's C program is SOURCE (less its licence line), which the
# other tests here compile and run.
set -eu
shown=$(sed -n '/^```c$/,/^```$/p' "$1" | sed '1d;$d')
test "$shown" = "$(tail -n +2 "$2")"
