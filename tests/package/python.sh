#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# python.sh PYTHON PREFIX: the installed package finds the library that was installed with it.
set -eu
cd /
PYTHONPATH=$2/lib/python3/dist-packages "$1" -B - "$2" <<'END'
import sys, weft
assert weft.__file__.startswith(sys.argv[1]), weft.__file__
with open("/proc/self/maps") as maps:
    assert any(sys.argv[1] in line and "libweft.so" in line for line in maps), "another libweft.so"
assert weft.run(lambda comm: comm.all_gather(b"x").nbytes, ranks=2) == [2, 2]
END
