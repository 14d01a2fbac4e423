#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tsan.sh CC SOURCE PREFIX LIBDIR: what ThreadSanitizer says of SOURCE with the library of PREFIX/LIBDIR is of the
# library alone, and share/weft/tsan.supp takes that away, but not a race of the program's own.
set -eu
cc=$1 source=$2 prefix=$3 libdir=$3/$4
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
"$cc" -std=c99 -g -O1 -fsanitize=thread -I"$prefix/include" "$source" -o "$made/ranks" -L"$libdir" -lweft \
  -Wl,-rpath,"$libdir" -lpthread
supp=$prefix/share/weft/tsan.supp
[ -s "$supp" ] || { echo "$supp is missing" && exit 1; }

# expect STATUS TSAN_OPTIONS [ARGUMENT]: how the program must end; its output is in $made/said.
expect() {
  status=0
  TSAN_OPTIONS="exitcode=66 $2" "$made/ranks" ${3:+"$3"} >"$made/said" 2>&1 || status=$?
  [ "$status" = "$1" ] && grep -q "^done" "$made/said" && return
  cat "$made/said"
  echo "ended with $status instead of $1: TSAN_OPTIONS='$2'"
  exit 1
}

expect 66 ""
grep -q "libweft\.so" "$made/said" || { cat "$made/said" && exit 1; }
expect 0 "suppressions=$supp"
expect 66 "suppressions=$supp" race
grep SUMMARY "$made/said" | grep -vq "ranks.c.* in play" && { cat "$made/said" && exit 1; }
exit 0
