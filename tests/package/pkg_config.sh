#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pkg_config.sh CC LIBDIR SOURCE VERSION: moves a copy of the installed tree elsewhere, then compiles, links
# and runs SOURCE with what pkg-config says there.
set -eu
cc=$1 libdir=$2 source=$3 version=$4
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
