#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Planted faults for weft-health: does it name the culprit first, and nobody when all is well?
# Needs root for the hosts, which are network namespaces.
#
#   tests/rigs/health.sh [--build FOLDER] [--repeats N] [--first SEED] [PART...]
#
# Parts, each N times (1) with the seeds from SEED (1) on: healthy (4 ranks on cores that are busy with other work), and
# faults of ranks and links (starved, late_link, corrupt, stopped, killed, missing) and of hosts (slow_cable, slow_way,
# cut_cable, memlock, nofile). By default one of all. The wrong cable of a RoCE mesh is in rxe_suite.sh.
# Prints what passed and what failed; the exit code is 1 if anything failed.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck source=tests/rigs/hosts/net.sh
source "$here/hosts/net.sh"
export hosts_net=sick$$  # other rigs may run
build=$here/../../build/release repeats=1 first=1 parts=()
passed=0 failed=0 helpers=()

die() { printf 'health: %s\n' "$*" >&2 && exit 2; }

parse() {
  while (($# > 0)); do
    case $1 in
      --build) build=$2 && shift 2 ;;
      --repeats) repeats=$2 && shift 2 ;;
      --first) first=$2 && shift 2 ;;
      -*) die "no option $1" ;;
      *) parts+=("$1") && shift ;;
    esac
  done
  ((${#parts[@]} > 0)) || parts=(healthy starved late_link corrupt stopped killed missing slow_cable slow_way
    cut_cable memlock nofile)
}

# start RANKS [PREFIX...]: a rank of weft-health for each number up to RANKS but $absent, in ${pids[@]}; what rank R says
# is in $work/R. With $each, so many ranks on each host of net.sh. place RANK, if a part defines it, says what stands
# before the command of that rank.
start() {
  local ranks=$1 rank port=$((20000 + RANDOM % 10000)) root=127.0.0.1 before
  pids=()
  [[ -z ${each:-} ]] || root=10.77.0.1
  for ((rank = 0; rank < ranks; rank++)); do
    [[ $rank == "${absent:-}" ]] && continue
    before=()
    [[ -z ${each:-} ]] || before=(on_host $((rank / each)))
    read -ra placed <<<"$(place "$rank")"
    WEFT_RANK=$rank WEFT_SIZE=$ranks WEFT_ROOT=$root:$port WEFT_SECRET=rig WEFT_TUNE_FILE=off \
      "${before[@]}" "${placed[@]}" "$build/bin/weft-health" --quick --seed "$seed" --join-timeout 15 \
      >"$work/$rank" 2>&1 &
    pids[rank]=$!
  done
}
place() { echo env; }

# finish: waits for all; their exit codes are in ${codes[@]}.
finish() {
  local rank
  codes=()
  for rank in "${!pids[@]}"; do
    codes[rank]=0
    wait "${pids[rank]}" || codes[rank]=$?
  done
}

# first_finding: of rank 0, or if that one says nothing, of another.
# What the machine below takes from this one is true, and no part has planted it.
first_finding() {
  grep -hE '(^|: )(fault|warning|note): ' "$work"/[0-9]* | grep -vE '\[cpu-(stolen|throttled|hot)\]' | head -1 |
    sed 's/^weft-health: //'
}

# result NAME PATTERN CODE: the first finding is PATTERN (none if it is empty), and every rank that the part has not
# killed ended with CODE.
result() {
  local found ok=0 rank
  found=$(first_finding || true)
  if [[ -z $2 ]]; then [[ -z $found ]] || ok=1; else grep -qE "^$2" <<<"$found" || ok=1; fi
  for rank in "${!codes[@]}"; do [[ $rank == "${victim:-}" || ${codes[rank]} == "$3" ]] || ok=1; done
  if ((ok == 0)); then
    passed=$((passed + 1)) && printf 'health: passed: %s, seed %s: %s\n' "$1" "$seed" "${found:0:150}"
  else
    failed=$((failed + 1)) && printf 'health: FAILED: %s, seed %s, exit codes %s, wanted %s: %s\n' "$1" "$seed" \
      "${codes[*]}" "$3" "$2" && head -n 12 "$work"/[0-9]*
  fi
}

# pick COUNT [SALT]: a number below COUNT, by the seed.
pick() { echo $(((seed * 7919 + ${2:-0} * 104729) / 13 % $1)); }

moment() { sleep "$(pick 3).$((3 + $(pick 5 1)))"; }

# busy [PREFIX...]: a process that computes, until end_helpers.
busy() {
  "$@" sh -c 'while :; do :; done' &
  helpers+=($!)
  disown
}
end_helpers() {
  ((${#helpers[@]} == 0)) || kill -KILL "${helpers[@]}" 2>/dev/null || true
  helpers=()
}

part_healthy() {
  busy env
  busy env
  start 4
  finish
  end_helpers
  result "healthy on busy cores" "" 0
}

part_starved() {
  local core
  victim_rank=$(pick 4)
  core=$(pick "$(nproc)" 1)
  place() { if [[ $1 == "$victim_rank" ]]; then echo taskset -c "$core"; else echo env; fi; }
  busy taskset -c "$core"
  start 4
  finish
  end_helpers
  result "rank $victim_rank starved" "fault: rank $victim_rank " 69
}

# edge: two different ranks of four, in $a and $b.
edge() {
  a=$(pick 4)
  b=$(((a + 1 + $(pick 3 1)) % 4))
}

part_late_link() {
  edge
  place() { echo "env WEFT_TRANSPORT=faulty:lag=$((4000 + $(pick 4000 2))):$a-$b"; }
  start 4
  finish
  result "late link $a-$b" "fault: link from (rank $a .* to rank $b|rank $b .* to rank $a) " 69
}

# The first or the second large message of the link: a slow machine sends no more than two before the collectives, whose
# sums tell a bad rank and not a bad link.
part_corrupt() {
  edge
  place() { echo "env WEFT_TRANSPORT=faulty:seed=$seed,corrupt=$((1 + $(pick 2 2))):$a-$b"; }
  start 4
  finish
  result "a flipped bit from $a to $b" "fault: link from rank $a .* to rank $b " 69
}

# What a rank suffers at a moment of the run; the others say which one it was.
part_stopped() {
  victim=$(pick 4)
  start 4
  moment
  kill -STOP "${pids[victim]}" 2>/dev/null || true
  (sleep 14 && kill -KILL "${pids[victim]}") 2>/dev/null &
  helpers+=($!)
  finish
  end_helpers
  result "rank $victim stopped" "fault: rank $victim " 75
}

part_killed() {
  victim=$(pick 4)
  start 4
  moment
  kill -KILL "${pids[victim]}" || true
  finish
  result "rank $victim killed" "fault: rank $victim " 75
}

part_missing() {
  absent=$((1 + $(pick 3)))
  start 4
  finish
  result "rank $absent missing" "fault: .*rank(s|) ?.*$absent" 75
}

# hosts_part: four hosts of two ranks.
hosts_part() {
  each=2 sick_host=$(pick 4)
  hosts_up 4 400mbit
}

part_slow_cable() {
  hosts_part
  host_rate "$sick_host" 50mbit
  start 8
  finish
  result "cable of host $sick_host at an eighth" "fault: host node$sick_host: " 69
}

part_cut_cable() {
  hosts_part
  start 8
  moment
  host_cut "$sick_host"
  finish
  codes=()  # those on either side of the cut are each alone
  result "cable of host $sick_host pulled" "fault: .*(host node$sick_host|10.77.0.$((sick_host + 1)))" 75
}

# The port towards the host is slow, what the host sends is not.
part_slow_way() {
  hosts_part
  tc -n "${hosts_net}switch" qdisc replace dev "port$sick_host" root tbf rate 50mbit burst 256kb latency 400ms
  start 8
  finish
  result "one way of the cable of host $sick_host at an eighth" "fault: host node$sick_host: " 69
}

limited_part() { # NAME PRLIMIT_OPTION
  local option=$2
  hosts_part
  # shellcheck disable=SC2317  # start calls it
  place() { if (($1 / each == sick_host)); then echo prlimit "$option"; else echo env; fi; }
  start 8
  finish
  result "$1 of host $sick_host" "(fault|warning): host node$sick_host: .*$1" 0
}
part_memlock() { limited_part "locked memory" --memlock=65536:65536; }
part_nofile() { limited_part "open files" --nofile=512:512; }

parse "$@"
((EUID == 0)) || { echo "health: skipped: network namespaces need root" && exit 77; }
build=$(readlink -f "$build")
[[ -x $build/bin/weft-health ]] || die "$build/bin/weft-health is not there; fix: ./dev build"
work=$(mktemp -d)
trap 'end_helpers; hosts_down; rm -rf "$work"' EXIT
for part in "${parts[@]}"; do
  [[ $(type -t "part_$part") == function ]] || die "no part $part"
  for ((seed = first; seed < first + repeats; seed++)); do
    rm -f "$work"/*
    victim='' absent='' each=''
    place() { echo env; }
    "part_$part"
    hosts_down
  done
done
printf 'health: %d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
