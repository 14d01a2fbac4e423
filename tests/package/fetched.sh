#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fetched.sh CMAKE SOURCE BUILD: a project that takes SOURCE by FetchContent is configured, and its own files, of C and
# C++, compiled. The library would be compiled once more, so it is only seen that the programs are linked to it.
set -eu
rm -rf "$3"
"$1" -G Ninja -S "$2/tests/package/fetched" -B "$3" -DWEFT_SOURCE="$2" >"$3.log" || { cat "$3.log" && exit 1; }
for program in consumer consumer_cxx; do
  object=$(ninja -C "$3" -t targets all | sed -n "s/^\(CMakeFiles\/$program\.dir.*\.o\): .*/\1/p")
  ninja -C "$3" "$object"
  ninja -C "$3" -t query $program | grep -q libweft.so
done
