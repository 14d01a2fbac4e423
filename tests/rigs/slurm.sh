#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# weft's tools under a real Slurm of two nodes, which are network namespaces of this machine. Needs root, and what
# Debian calls slurm-wlm and munge; an installed Slurm is neither used nor disturbed.
#
#   tests/rigs/slurm.sh [--build FOLDER] [PART...]
#
# Parts, by default all: health (weft-health under srun, with and without PMIx), test (weft-test), perf (weft-perf),
# scaling (weft-train's table, where it is built), codes (exit codes as srun and as job scripts hand them on),
# doctor (weft-doctor as a prolog, and which jobs Slurm starts again).
# Prints what passed and what failed; the exit code is 1 if anything failed, 77 if this machine cannot run it.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck source=tests/rigs/hosts/net.sh
source "$here/hosts/net.sh"
# shellcheck source=tests/rigs/slurm/cluster.sh
source "$here/slurm/cluster.sh"
export hosts_net=slurm
build=$here/../../build/release parts=()
passed=0 failed=0

die() { printf 'slurm: %s\n' "$*" >&2 && exit 2; }
skip() { printf 'slurm: skipped: %s\n' "$*" && exit 77; }

parse() {
  while (($# > 0)); do
    case $1 in
      --build) build=$2 && shift 2 ;;
      -*) die "no option $1" ;;
      *) parts+=("$1") && shift ;;
    esac
  done
  ((${#parts[@]} > 0)) || parts=(health test perf scaling codes doctor)
}

# result NAME COMMAND...: did the COMMAND succeed?
result() {
  local name=$1
  shift
  if "$@"; then
    passed=$((passed + 1)) && printf 'slurm: passed: %s\n' "$name"
  else
    failed=$((failed + 1)) && printf 'slurm: FAILED: %s\n' "$name" && evidence
  fi
}

evidence() {
  tail -n 40 "$work/out"
  [[ -z ${job:-} ]] || client scontrol show job "$job" || true
  client sinfo -N -o '%N %T %E' || true
  tail -n 8 "$work"/log/node?/*
}

# ---- jobs ---------------------------------------------------------------------------------------------------------

# client COMMAND...: as on the login node.
client() { on_host 0 "$@"; }

# expect CODE PATTERN NAME COMMAND...: it ends with CODE and says PATTERN.
expect() {
  local wanted=$1 pattern=$2 name=$3 code=0
  shift 3
  job=
  client "$@" >"$work/out" 2>&1 || code=$?
  result "$name" matches "$code" "$wanted" "$pattern"
}

matches() { # CODE WANTED PATTERN
  [[ $1 == "$2" ]] || { echo "exit code $1, wanted $2" && return 1; }
  grep -qE -- "$3" "$work/out" || { echo "it does not say $3" && return 1; }
}

# submit ARGUMENT...: to sbatch; waits until the job has ended. Its number is in $job, what it says in $work/out. What
# Slurm requeues starts at once, not after its two minutes.
submit() {
  : >"$work/out"
  job=$(client sbatch --parsable --open-mode=append -o "$work/out" "$@")
  await 90 ended || echo "job $job has not ended"
}

ended() {
  case $(field JobState) in
    COMPLETED | FAILED) return 0 ;;
    PENDING) [[ $(field Reason) != BeginTime ]] || client scontrol update "jobid=$job" starttime=now ;;
  esac
  return 1
}

field() { client scontrol show job "$job" | sed -n "s/^.*\b$1=\([^ ]*\).*$/\1/p"; }
is() { [[ $(field "$1") == "$2" ]]; }

node_is() { [[ $(client sinfo -h -n "$1" -o %T) == "$2" ]]; }

# ---- parts --------------------------------------------------------------------------------------------------------

part_health() {
  local mpi
  for mpi in none pmix; do
    WEFT_DEBUG=INFO expect 0 'healthy \(4 ranks on 1 host' "weft-health, 4 ranks, --mpi=$mpi" \
      srun "--mpi=$mpi" -N 1 -n 4 weft-health --quick
    result "the launcher with --mpi=$mpi" grep -qE "rank 3 of 4.*launcher: $(launcher "$mpi")" "$work/out"
    expect 0 'healthy \(2 ranks on 2 hosts' "weft-health, 2 nodes, --mpi=$mpi" \
      srun "--mpi=$mpi" -N 2 weft-health --quick
  done
  documented >"$work/script"
  submit "$work/script"
  result "the job script of docs/operating.md" is ExitCode 0:0
  result "both of its lines" grep -q '^Avg bus bandwidth' "$work/out"
  submit -N 1 -n 4 --wrap "weft-health --quick --ranks 2"
  result "a job script itself is no rank" grep -q 'healthy (2 ranks' "$work/out"
}
# shellcheck disable=SC2016  # a pattern
documented() { sed -n '/^### Under Slurm/,/^```$/{/^```sh/,/^```$/{/^```/!p}}' "$here/../../docs/operating.md"; }
launcher() { if [[ $1 == pmix ]]; then echo PMIx; else echo Slurm; fi; }

part_test() {
  expect 0 '^Avg bus bandwidth' "weft-test, 4 ranks" \
    srun -N 1 -n 4 weft-test allr -r 4 -b 8 -e 1MB -f 16 -d fp32 --check random
  expect 0 '^Avg bus bandwidth' "weft-test, 2 nodes" \
    srun -N 2 --ntasks-per-node=2 weft-test allr allg redsct -r 4 -b 8 -e 64KB -f 16 -d fp32 --check random
  expect 64 'started 2 ranks; start 4' "weft-test -r larger than -n" srun -N 1 -n 2 weft-test allr -r 4
}

part_perf() {
  expect 0 'Out of bounds values : 0 OK' "weft-perf, 2 ranks" srun -N 1 -n 2 weft-perf all_reduce -b 8 -e 1M -f 8
  expect 0 'Out of bounds values : 0 OK' "weft-perf, 2 nodes in turn" \
    srun -N 2 -n 4 -m cyclic weft-perf all_reduce -b 8 -e 1M -f 8
}

part_scaling() {
  [[ -x $build/bin/weft-train ]] || { echo "slurm: no weft-train here: no scaling" && return; }
  expect 0 '^ +4 .* %' "weft-train --scaling, 4 ranks on 2 nodes" \
    srun -N 2 --ntasks-per-node=2 weft-train --data "$here/../../README.md" --layers 2 --hidden 32 --heads 2 --seq 32 \
    --scaling 1,2,4 --scaling-seconds 1 --scaling-rounds 2 --csv "$work/scaling.csv" --json "$work/scaling.json"
  result "2 ranks are on one node, 4 on both" \
    diff <(cut -d, -f 1,10 "$work/scaling.csv") <(printf 'ranks,hosts\n1,node0\n2,node0\n4,node0 node1\n')
  result "the same in JSON" grep -q '"node1"' "$work/scaling.json"
}

# code CODE SAYS NAME LINE: 4 ranks of that line end with CODE under srun, and so does a job script.
code() {
  printf '%s\n' "$4" >"$work/rank"
  expect "$1" "$2" "$3: srun ends with $1" srun -N 1 -n 4 sh "$work/rank"
  submit -N 1 -n 4 --wrap "srun sh $work/rank || exit \$?"
  result "$3: the job's ExitCode is $1:0" is ExitCode "$1:0"
}

# A rank, of number 1, that never joins, and one that is killed while the others work.
# shellcheck disable=SC2016  # for the shell of the rank
miss_one='[ "$SLURM_PROCID" = 1 ] || exec weft-health --quick --join-timeout 5'
# shellcheck disable=SC2016
kill_one='if [ "$SLURM_PROCID" = 1 ]; then (sleep 2 && kill -KILL $$) & fi; exec weft-health --quick'

part_codes() {
  code 0 'Avg bus' "all is well" "exec weft-test allr -r 4 -b 8 -e 8 --check random"
  code 64 'not expected: --bogus' "an unknown option" "exec weft-health --bogus"
  code 69 'fault: link from rank 0 .* to rank 1 ' "a link that corrupts data" \
    "WEFT_TRANSPORT=faulty:corrupt=5:0-1 exec weft-health --quick"
  code 75 'fault: .*rank.* 1' "a rank that never joins" "$miss_one"
  # shellcheck disable=SC2016
  code 77 'secret' "a rank with another secret" \
    'WEFT_SECRET=$((SLURM_PROCID == 2)) exec weft-health --quick --join-timeout 10'
  # srun hands on the highest code.
  code 137 'fault: rank 1 .*killed' "a rank that is killed" "$kill_one"
  result "the other ranks end with 75" grep -q 'tasks 0,2-3: Exited with exit code 75' "$work/out"
}

# emitted: what weft-doctor says about Slurm is put where it says.
emitted() {
  local file
  client weft-doctor --emit slurm >"$work/out"
  file=$(sed -n 's/^# \(.*\), executable.*/\1/p' "$work/out")
  sed '/^$/,$d' "$work/out" >>/etc/slurm/slurm.conf
  mkdir -p "$(dirname "$file")"
  sed '1,/, executable/d' "$work/out" >"$file"
  chmod 755 "$file"
}

part_doctor() {
  expect 0 'is healthy' "weft-doctor" srun -n 1 weft-doctor --quick
  emitted
  result "Slurm starts with what weft-doctor emits" cluster_up
  submit -N 2 --wrap "true"
  result "the prolog lets a job run on healthy nodes" is JobState COMPLETED
  result "and drains none" both_idle
  requeued 69 "a bad link" "export WEFT_TRANSPORT=faulty:corrupt=5:0-1; exec weft-health --quick"
  requeued 75 "a missing rank" "$miss_one"
  requeued 137 "a killed rank" "$kill_one"
  cluster_up prlimit --nofile=60:60  # too few for the ranks of a job, enough for slurmd
  submit -N 1 --wrap hostname
  result "the prolog drains a bad node" node_is node0 drained
  result "and says why" grep -q 'fault: .*open files' "$work/log/node0/weft-doctor.log"
  result "its job runs on the other one" grep -qx node1 "$work/out"
}

# requeued CODE NAME LINE: a job whose ranks do that at first is started again, and then ends well.
requeued() {
  printf '%s\n' "$3" >"$work/rank"
  submit -N 1 -n 4 --wrap "[ \${SLURM_RESTART_COUNT:-0} = 1 ] || srun sh $work/rank || exit \$?"
  result "a job that ends with $1 ($2) is started again" is Restarts 1
  result "and ends well" is JobState COMPLETED
}

# ---- a machine of its own -----------------------------------------------------------------------------------------

# outside ARGUMENT...: the rig again, in namespaces that end with it, daemons, mounts and network included.
outside() {
  local program inner code=0
  for program in munged slurmctld slurmd srun ip tc unshare; do
    [[ -n $(type -P "$program") ]] || skip "no $program here; ./dev rigs slurm installs it"
  done
  [[ -d /etc/slurm ]] || skip "no /etc/slurm here; ./dev rigs slurm installs Slurm"
  unshare --mount --pid --fork true 2>/dev/null || skip "no namespaces here"
  work=$(mktemp -d)
  trap '[[ -z ${inner:-} ]] || kill -KILL "$inner" 2>/dev/null; rm -rf "$work"' EXIT
  RIG_SLURM_WORK=$work unshare --mount --pid --fork --kill-child --mount-proc "$0" "$@" &
  inner=$!
  wait "$inner" || code=$?
  inner=
  exit "$code"
}

parse "$@"
((EUID == 0)) || skip "a Slurm needs root"
build=$(readlink -f "$build")
[[ -x $build/bin/weft-health ]] || die "$build/bin/weft-health is not there; fix: ./dev build"
[[ -n ${RIG_SLURM_WORK:-} ]] || outside "$@"
work=$RIG_SLURM_WORK
export PATH=$build/bin:$PATH WEFT_SECRET=rig WEFT_TUNE_FILE=$work/tune
unset RIG_SLURM_WORK SLURM_CONF
cluster_folders
for part in "${parts[@]}"; do
  [[ $(type -t "part_$part") == function ]] || die "no part $part"
  cluster_config
  cluster_up || { echo 'slurm: FAILED: Slurm starts' && tail -n 20 "$work"/log/*/* "$work/munge/out" && exit 1; }
  "part_$part"
done
printf 'slurm: %d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
