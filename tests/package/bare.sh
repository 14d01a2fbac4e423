#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bare.sh WEFT_PERF: without libibverbs, libfabric and hwloc weft runs over shared memory, and says what is missing
# when it is asked for. Hides the libraries in a mount namespace; needs root, else 77.
set -eu
[ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null || exit 77
if [ "${2:-}" != hidden ]; then exec unshare --mount "$0" "$1" hidden; fi

hidden=0
for library in $(ldconfig -p | sed -n 's/.*\(libibverbs\|libfabric\|libhwloc\)\.so.* => //p'); do
  mount --bind /dev/null "$(readlink -f "$library")"
  hidden=$((hidden + 1))
done
[ "$hidden" -gt 0 ] || { echo "no library to hide" >&2 && exit 1; }

"$1" all_reduce -b 8 -e 8 -n 2 -w 1 --ranks 2 >/dev/null
for transport in ofi verbs; do
  if said=$(WEFT_TRANSPORT=$transport "$1" all_reduce -b 8 -e 8 --ranks 2 2>&1); then
    echo "$transport works without its library" >&2 && exit 1
  fi
  printf '%s\n' "$said" | grep -m1 "not installed.*fix:" || { printf '%s\n' "$said" >&2 && exit 1; }
done
