#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pkg_config.sh CC CXX LIBDIR C_SOURCE CXX_SOURCE VERSION: moves a copy of the installed tree elsewhere, then compiles, links
# and runs both sources with what pkg-config says there.
set -eu
cc=$1 cxx=$2 libdir=$3 source=$4 cxx_source=$5 version=$6
prefix=${libdir%/lib*}
moved=$(mktemp -d)
trap 'rm -rf "$moved"' EXIT
cp -a "$prefix/." "$moved"
libdir=$moved${libdir#"$prefix"}
export PKG_CONFIG_PATH="$libdir/pkgconfig" LD_LIBRARY_PATH="$libdir"

test "$(pkg-config --modversion weft)" = "$version"
# The flags are words, to be split.
# shellcheck disable=SC2046
"$cc" -std=c99 -o "$moved/program" "$source" $(pkg-config --cflags --libs weft)
"$moved/program"
# shellcheck disable=SC2046
"$cxx" -std=c++17 -o "$moved/program_cxx" "$cxx_source" $(pkg-config --cflags --libs weft)
"$moved/program_cxx"
