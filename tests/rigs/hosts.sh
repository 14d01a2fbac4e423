#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Four "hosts" of two ranks each, as network namespaces joined by shaped cables: shm inside, libfabric over TCP between.
# Needs root.
#
#   tests/rigs/hosts.sh [--build FOLDER] [--repeats N] [--first SEED] [PART...]
#
# Parts: collectives (all of them, with their results checked), cut (a host's cable is pulled while an all-reduce runs),
# kill (a rank is killed), slow (a host's cable gets slower), figures (64 MiB against the bound that the cables allow,
# and against Open MPI and Gloo, side by side; needs weft-peers), scaling (weft-train's table; needs weft-train). By
# default the first four, each fault N times (1), with the seeds from SEED (1) on.
# Prints what passed and what failed; the exit code is 1 if anything failed.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck source=tests/rigs/hosts/net.sh
source "$here/hosts/net.sh"
build=$here/../../build/release repeats=1 first=1 parts=()
hosts=4 each=2 ranks=8 rate=400mbit
passed=0 failed=0

die() { printf 'hosts: %s\n' "$*" >&2 && exit 2; }

parse() {
  while (($# > 0)); do
    case $1 in
      --build) build=$2 && shift 2 ;;
      --repeats) repeats=$2 && shift 2 ;;
      --first) first=$2 && shift 2 ;;
      --rate) rate=$2 && shift 2 ;;
      -*) die "no option $1" ;;
      *) parts+=("$1") && shift ;;
    esac
  done
  ((${#parts[@]} > 0)) || parts=(collectives cut kill slow)
}

# start ARGUMENT...: a rank of weft-perf for each place, in ${pids[@]}; what rank R says is in $work/R.
start() { start_program weft-perf "$@"; }

# start_program PROGRAM ARGUMENT...: the same of another. Ranks that share cores give way at once.
start_program() {
  local rank program=$1
  shift
  pids=()
  port=$((20000 + RANDOM % 10000))
  for ((rank = 0; rank < ranks; rank++)); do
    WEFT_RANK=$rank WEFT_SIZE=$ranks WEFT_ROOT=10.77.0.1:$port WEFT_SECRET=rig WEFT_SPIN_US=0 \
      on_host $((rank / each)) "$build/bin/$program" "$@" >"$work/$rank" 2>&1 &
    pids+=($!)
  done
}

# Waits until rank 0 has printed the head of its table: all have joined.
await_start() {
  local i
  for ((i = 0; i < 300; i++)); do
    grep -q 'size.*count' "$work/0" && return
    sleep 0.1
  done
  return 1
}

# finish: how many ranks ended with an error, in $errors.
finish() {
  local pid
  errors=0
  for pid in "${pids[@]}"; do wait "$pid" || errors=$((errors + 1)); done
}

result() { # NAME 0|1
  if (($2 == 0)); then
    passed=$((passed + 1)) && printf 'hosts: passed: %s\n' "$1"
  else
    failed=$((failed + 1)) && printf 'hosts: FAILED: %s\n' "$1" && tail -n 5 "$work"/[0-9]
  fi
}

part_collectives() {
  local collective
  for collective in all_reduce all_gather all_gather_v reduce_scatter reduce_scatter_v broadcast reduce gather scatter \
    alltoall gather_v scatter_v alltoallv sendrecv barrier; do
    start "$collective" -b 0 -e 1M -f 31 -n 1 -w 0 -T 60
    finish
    result "$collective on $hosts hosts" $((errors > 0))
  done
  grep -q 'rank 1: shm' "$work/0" && grep -q 'rank.*: tcp;ofi_rxm' "$work/0"
  result "shm inside, libfabric between" $?
  places
}

# What weft-perf prints as the device of a rank is its place on its host, as weftCommLocalRank gives it.
places() {
  local rank wrong=0
  for ((rank = 0; rank < ranks; rank++)); do
    grep -Eq "^# +Rank +$rank .* device +$((rank % each)) " "$work/0" || wrong=1
  done
  result "local ranks" $wrong
}

# fault SEED NAME PATTERN COMMAND...: while an all-reduce runs, COMMAND; all ranks end with an error within 20 s, and
# one names PATTERN.
fault() {
  local seed=$1 name=$2 pattern=$3 began code=0
  shift 3
  start all_reduce -b 64K -e 64K -n 1000000 -w 0 -c 0 -T 15
  await_start || code=1
  sleep "0.$((seed * 37 % 90 + 10))"
  began=$(date +%s%N)
  "$@"
  finish
  ((errors == ranks)) && grep -qhE "^weft-perf: .*($pattern)" "$work"/[0-9] || code=1
  result "$name, seed $seed, $((($(date +%s%N) - began) / 1000000)) ms: $(grep -hE "^weft-perf: .*($pattern)" \
    "$work"/[0-9] | head -1 | cut -c12-220)" "$code"
}

part_cut() {
  local seed host
  for ((seed = first; seed < first + repeats; seed++)); do
    host=$((1 + seed % (hosts - 1)))
    fault "$seed" "cable of host $host pulled" "node$host|10\.77\.0\.$((host + 1))" host_cut "$host"
    host_join "$host"
  done
}

part_kill() {
  local seed host
  for ((seed = first; seed < first + repeats; seed++)); do
    host=$((seed % hosts))
    fault "$seed" "rank of host $host killed" "rank [0-9]+ \(host node$host" kill_on "$host"
  done
}

# The second rank of that host.
kill_on() {
  local pid
  for pid in $(ip netns pids "wefthost$1"); do
    tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "WEFT_RANK=$(($1 * each + 1))" || continue
    [[ $(cat "/proc/$pid/comm") == weft-perf ]] && kill -KILL "$pid" && return
  done
}

part_slow() {
  local seed host
  for ((seed = first; seed < first + repeats; seed++)); do
    host=$((seed % hosts))
    start all_reduce -b 256K -e 256K -n 20 -w 1 -T 60
    await_start || true
    host_rate "$host" 50mbit
    finish
    host_rate "$host" "$rate"
    result "cable of host $host slowed, seed $seed" $((errors > 0))
  done
}

part_figures() {
  local addresses
  addresses=$(seq -s, -f '10.77.0.%g' "$hosts")
  WEFT_SPIN_US=0 "$build/bin/weft-peers" --hosts "$addresses" --shell "$here/hosts/on_host" --ranks "$ranks" --rounds 3 \
    --sizes 64M --collectives all_reduce --modes steady --only weft:any,openmpi:default,gloo:ring,gloo:bcube \
    --variant flat:WEFT_ALGO=mesh --variant one-lane:WEFT_LANES=1
  result "figures" $?
}

part_scaling() {
  local code=0
  start_program weft-train --data "$here/../../README.md" --layers 2 --hidden 32 --heads 2 --seq 32 --scaling 1,2,8 \
    --scaling-seconds 1 --scaling-rounds 2 --csv "$work/scaling.csv" --json "$work/scaling.json"
  finish
  cat "$work/0"
  result "a scaling table of 8 ranks on $hosts hosts" $((errors > 0))
  diff <(cut -d, -f 1,10 "$work/scaling.csv") \
    <(printf '%s\n' ranks,hosts 1,node0 2,node0 '8,node0 node1 node2 node3') || code=1
  grep -q '"node3"' "$work/scaling.json" || code=1
  result "the hosts of its rows, in CSV and JSON" $code
}

parse "$@"
((EUID == 0)) || { echo "hosts: skipped: network namespaces need root" && exit 77; }
build=$(readlink -f "$build")
[[ -x $build/bin/weft-perf ]] || die "$build/bin/weft-perf is not there; fix: ./dev build"
work=$(mktemp -d)
trap 'hosts_down; rm -rf "$work"' EXIT
hosts_up "$hosts" "$rate"
for part in "${parts[@]}"; do
  [[ $(type -t "part_$part") == function ]] || die "no part $part"
  "part_$part"
done
printf 'hosts: %d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
