#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/rigs/rxe_suite.sh short|full|figures|detour [BUILD]: weft over verbs between four soft-RoCE cards. short takes a few
# minutes, full about forty; figures puts the transport beside the raw tools, detour trees around a cut cable beside a
# slower way around it.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
form=${1:-short}
bin=${2:-$here/../../build/release}/bin

# machine LIMIT OPTION... -- PART...
machine() {
  local limit=$1 options=() program
  shift
  while [[ $1 != -- ]]; do options+=("$1") && shift; done
  shift
  for program in wire contract rxe_trouble rxe_recovery rxe_put_perf rxe_detour_perf weft-perf weft-health; do options+=(--add "$bin/$program"); done
  "$here/rxe.sh" --limit "$limit" "${options[@]}" --add "$here/rxe/suite" -- "suite $(printf ' "%s"' "$@")"
}

libfabric=$(ldconfig -p | sed -n 's/.*libfabric\.so\.1 .*=> //p' | head -1)

case $form in
  short)
    machine 850 -- wire contract wiring "pulls 1" "broken 1" "recovered 1" "around short" \
      "collectives all_reduce,sendrecv 10K 10K"
    ;;
  full)
    machine 2400 -- wire contract wiring "pulls 100" "broken 100" "recovered 100" "around whole" "crossed 10" "collectives all 0 1M"
    machine 1200 -- "collectives all 10K 10K -d all -o all"
    [[ -z $libfabric ]] || machine 1200 --add "$libfabric" -- "mixed all 0 1M" "detour 4194304 1"
    machine 600 --fabric switch --ports 2 -- wire contract "collectives all 0 1M"
    machine 200 -- figures
    ;;
  figures) machine 200 -- figures ;;
  detour) machine 200 --add "$libfabric" -- "detour 16777216 3" ;;
  *) echo "rxe_suite: short, full, figures or detour, not '$form'" >&2 && exit 64 ;;
esac
