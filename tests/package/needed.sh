#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needed.sh LIBRARY: fails if the library's soname is not libweft.so.0 or if it needs a library that is not
# in the list below; whoever links weft has to have those installed.
set -eu
allowed='^(libc|libm|libstdc\+\+|libgcc_s|libpthread|libhwy|libcrypto|ld-linux.*)\.so'
dynamic=$(readelf -d "$1")
printf '%s\n' "$dynamic" | grep -q 'SONAME.*\[libweft\.so\.0\]'
others=$(printf '%s\n' "$dynamic" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -Ev "$allowed" || true)
if [ -n "$others" ]; then
  printf '%s needs more than it may:\n%s\n' "$1" "$others" >&2
  exit 1
fi
