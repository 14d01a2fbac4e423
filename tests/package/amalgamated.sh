#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# amalgamated.sh PYTHON SOURCES FOLDER LIBDIR CC CXX [LAUNCHER]: weft_amalgamated.cpp by itself, beside libweft: it compiles
# without a warning and needs nothing, ranks of both give the same bits, and meet in one communicator. Not optimized, or the
# compiler alone would take a minute and a half.
set -euo pipefail
python=$1 sources=$2 folder=$3 libdir=$4 cc=$5 cxx=$6
launcher=(${7:+"$7"})
program=$sources/tests/package/amalgamated/ranks.c

rm -rf "$folder"
"$python" -B "$sources/tools/amalgamate/amalgamate.py" "$folder"
cd "$folder"
strict=(-std=c++20 -Wall -Wextra -Werror)
# The quicker compiler without optimization; release's has compiled these sources for libweft.
if clang=$(command -v clang++-16); then cxx=$clang; fi
"${launcher[@]}" "$cxx" "${strict[@]}" -O0 -c weft_amalgamated.cpp -o weft_amalgamated.o

# build PROGRAM HEADER ARGUMENT...
build() { "$cc" -std=gnu99 -Wall -Wextra -Werror -O1 "-DWEFT_HEADER=$2" "$program" -o "$1" "${@:3}"; }
build alone '"weft_amalgamated.h"' -I. weft_amalgamated.o -lstdc++ -lm -pthread
build linked '<weft/weft.h>' "-I$sources/include" "-L$libdir" -lweft "-Wl,-rpath,$libdir"
if readelf -d alone | grep NEEDED | grep -Ev 'lib(c|m|stdc\+\+|gcc_s|dl|rt|pthread)\.so|ld-linux'; then
  echo "weft_amalgamated.cpp needs libraries" && exit 1
fi

./linked >libweft.txt
[[ $(wc -l <libweft.txt) -gt 300 ]] || { echo "the program says too little" && exit 1; }
./alone | diff libweft.txt -
./alone with ./linked | diff libweft.txt -

# refused VARIABLE=VALUE TEXT: what is not there is said, and what to do.
refused() {
  if env "$1" ./alone >said.txt 2>&1 || ! grep -q "$2.*fix: " said.txt; then
    echo "$1 was to be refused: $2" && cat said.txt && exit 1
  fi
}
refused WEFT_TRANSPORT=ofi "no transport 'ofi'"
refused WEFT_TRANSPORT=local "threads of one process"
refused WEFT_ALGO=some.xml "reads no schedules from files"

# Where there is no folder to write to, a sentence.
status=0
said=$("$python" -B "$sources/tools/amalgamate/amalgamate.py" "$program/none" 2>&1) || status=$?
[[ $status == 65 && $said == *"fix: "* ]] || { echo "ended with $status: $said" && exit 1; }
