#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# valgrind.sh VALGRIND PROGRAM LIBRARY: memory of weftMemAlloc and a unique id under valgrind, in little time and without a
# complaint. Skipped where valgrind ends whatever loads Highway, as it does where a processor does not say that it has RDTSCP,
# with which Debian's counts cycles when it is loaded.
set -eu
hwy=$(ldd "$3" | sed -n 's/.*libhwy[^ ]* => \([^ ]*\) .*/\1/p')
if [ -n "$hwy" ] && ! LD_PRELOAD=$hwy "$1" -q true; then
  echo "valgrind: skipped: it cannot run $hwy on this processor"
  exit 77
fi
exec "$1" -q --error-exitcode=1 "$2" '--gtest_filter=*IsNotTiedToACommunicator/threads'
