#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs weft-perf over collectives x ranks x sizes x transports, and lists what failed.
#
#   matrix.sh path/to/weft-perf brief   a third of quick
#   matrix.sh path/to/weft-perf quick   about a minute: to 1 MiB, a few faulty seeds
#   matrix.sh path/to/weft-perf seeds   an hour: the faulty transport, to 1 MiB, many seeds
#   matrix.sh path/to/weft-perf full    hours: 0 bytes to 1 GiB, all types, many seeds
set -u

perf=$1
scope=${2:-quick}
collectives="all_reduce all_gather all_gather_v reduce_scatter reduce_scatter_v broadcast reduce
             gather gather_v scatter scatter_v alltoall alltoallv sendrecv barrier"
output=$(mktemp)
trap 'rm -f "$output"' EXIT
runs=0
failures=0

# check <seconds> <argument>...: one run, which must end with exit code 0.
check() {
  local limit=$1 code=0
  shift
  runs=$((runs + 1))
  timeout -k 10 "$limit" "$perf" "$@" >"$output" 2>&1 || code=$?
  [ "$code" -eq 0 ] && return
  failures=$((failures + 1))
  echo "FAILED with exit code $code: weft-perf $*"
  grep -v '^#' "$output" | tail -n 5
}

brief() {
  for collective in $collectives; do
    check 60 "$collective" -b 8 -e 1M -f 512 -d double -o sum --ranks 3 -n 1 -w 1 --exact-counts
    check 60 "$collective" -b 0 -e 64K -f 64 -u 1 -n 1 -w 0 -g 3 --transport faulty:3
  done
}

quick() {
  for collective in $collectives; do
    check 60 "$collective" -b 0 -e 1M -f 512 -u 3 -d half -o all -g 3 -n 1 -w 1 --exact-counts
    check 60 "$collective" -b 8 -e 1M -f 512 -d double -o sum --ranks 3 -n 1 -w 1 --exact-counts
    for ranks in 2 3 5; do
      check 60 "$collective" -b 0 -e 64K -f 64 -u 1 -n 1 -w 0 -g "$ranks" --transport "faulty:$ranks"
    done
    check 60 "$collective" -b 0 -e 64K -f 64 -u 1 -n 1 -w 0 --ranks 2 --transport faulty:7
  done
}

# Each seed at the usual rates of faults, and at rates where hardly a put arrives in order.
seeds() {
  local rates=hold=0.5,again=0.3,late=0.5,depth=3,scribble=1,check=1
  for seed in $(seq 101 300); do
    for collective in $collectives; do
      for faults in "$seed" "seed=$seed,$rates"; do
        check 600 "$collective" -b 0 -e 1M -f 33 -u 1 -n 1 -w 0 -g $((2 + seed % 4)) \
          --transport "faulty:$faults"
      done
    done
  done
}

# Odd sizes and odd addresses from nothing to 1 GiB. Eight ranks stop at 128 MiB, for the memory.
full() {
  for collective in $collectives; do
    for ranks in 1 2 3 4 5 6 7 8; do
      local largest=1G
      [ "$ranks" -gt 3 ] && largest=128M
      for launch in -g --ranks; do
        check 3600 "$collective" -b 0 -e 300K -f 7 -u 3 -d all -o all -r all --exact-counts -n 2 \
          $launch "$ranks"
        check 3600 "$collective" -b 1M -e "$largest" -f 4 -u 5 -d float -n 2 -w 1 $launch "$ranks"
        check 3600 "$collective" -b "$largest" -e "$largest" -d bfloat16 -n 1 -w 0 $launch "$ranks"
      done
      for seed in 1 2 3 4 5 6 7 8 9 10; do
        check 600 "$collective" -b 0 -e 8M -f 23 -u 1 -n 1 -w 0 -g "$ranks" --transport "faulty:$seed"
      done
    done
  done
}

case $scope in
  brief) brief ;;
  quick) quick ;;
  seeds) seeds ;;
  full) full ;;
  *)
    echo "usage: matrix.sh path/to/weft-perf [brief|quick|seeds|full]" >&2
    exit 64
    ;;
esac
echo "$runs runs, $failures failed"
[ "$failures" -eq 0 ]
