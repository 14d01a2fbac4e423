#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# exit_codes.sh path/to/weft-test: what a scheduler sees of each kind of end, alone and under mpirun.
set -u

test=$1
output=$(mktemp)
folder=$(mktemp -d)
trap 'rm -rf "$output" "$folder"' EXIT
failures=0

# ended COMMAND...: the code that it ends with. MPICH's launcher is itself killed by SIGPIPE now and then, where ranks
# end at once (8 times in 300 under "sh -c 'exit 64'"): that says nothing of ours.
ended() {
  local code try
  for try in 1 2 3 4; do
    code=0
    timeout -k 5 60 "$@" >"$output" 2>&1 </dev/null || code=$?
    [[ $1 == mpiexec.mpich && $code -eq 141 && $try -lt 4 ]] || return "$code"
  done
}

# expect CODE SENTENCE COMMAND...: ends with that code and says that, an extended regular expression.
expect() {
  local code=0 wanted=$1 sentence=$2
  shift 2
  ended "$@" || code=$?
  [[ $code -eq $wanted ]] && grep -qE -- "$sentence" "$output" && return
  failures=$((failures + 1))
  printf 'FAILED: exit code %s, not %s with "%s": %s\n' "$code" "$wanted" "$sentence" "$*"
  cat "$output"
}

small=(-b 64kb -e 64kb -n 2 -w 0)

alone() {
  local ports=$((20000 + RANDOM % 10000))
  expect 0 'Avg bus bandwidth' "$test" allr -r 2 "${small[@]}" --check
  expect 64 "unknown 'allx'; use one of all_reduce" "$test" allx -r 2
  expect 64 'larger than -e' "$test" allr -r 2 -b 4M -e 1M
  expect 64 'weft has no integers of 16 bits; use one of' "$test" allr -r 2 -d uint16
  expect 64 "'4q' is not a size; use bytes with kb" "$test" allr -r 2 -b 4q
  expect 64 'need a launcher: mpirun -n 4' "$test" allr -r 4 -N 2
  expect 64 'srun has not started this' env -u SLURM_STEP_NUM_TASKS "$test" allr -r 4 -S
  expect 64 'launcher has started 1 ranks; start 2' env WEFT_RANK=0 WEFT_SIZE=1 "$test" allr -r 2 "${small[@]}"
  expect 64 "cannot read '/tmp'" "$test" allr -r 2 --custom-replica-group /tmp
  expect 78 'fix: correct or unset WEFT_LANES' env WEFT_LANES=none "$test" allr -r 2 "${small[@]}"
  expect 73 "cannot write '/nowhere/report.json'" "$test" allr -r 2 --report-to-json-file /nowhere/report.json
  expect 73 'it is a folder' "$test" allr -r 2 --report-to-json-file /tmp
  if mknod "$folder/full" c 1 7 2>/dev/null && (: >"$folder/full") 2>/dev/null; then
    expect 73 'No space left' "$test" allr -r 2 "${small[@]}" --report-to-json-file "$folder/full"
    # shellcheck disable=SC2016
    expect 73 'cannot write standard output' sh -c '"$@" >"$0"' "$folder/full" "$test" allr -r 2 "${small[@]}"
  fi
  expect 0 '"results"' "$test" allr allg -r 2 "${small[@]}" --report-to-json-file -
  expect 75 'waiting for 1 of 2 ranks: 1. fix:' env WEFT_RANK=0 WEFT_SIZE=2 "WEFT_ROOT=127.0.0.1:$ports" WEFT_SECRET=never \
    WEFT_INIT_TIMEOUT_MS=1500 "$test" allr -r 2 "${small[@]}"
}

# A rank with another secret than rank 0's, which waits for the right one until its deadline.
unauthenticated() {
  local root=127.0.0.1:$((20000 + RANDOM % 10000)) pid
  WEFT_RANK=0 WEFT_SIZE=2 WEFT_ROOT=$root WEFT_SECRET=one WEFT_INIT_TIMEOUT_MS=6000 \
    "$test" allr -r 2 "${small[@]}" >/dev/null 2>&1 &
  pid=$!
  expect 77 'rank 1 on host .* foreign unique id or secret.* fix: hand the same id' \
    env WEFT_RANK=1 WEFT_SIZE=2 "WEFT_ROOT=$root" WEFT_SECRET=two "$test" allr -r 2 "${small[@]}"
  kill "$pid"
  wait "$pid" 2>/dev/null
}

# One bit of a large put from rank 0 to rank 1 is flipped. Which put is in a call that is checked depends on the algorithm
# and on how many pieces a call is cut into, so neither is left to the machine's numbers.
pinned=(WEFT_ALGO=mesh:staged WEFT_SEGMENT_KB=256 WEFT_DIRECT_MIN=1G)
corrupted() {
  expect 69 'to blame is the link from rank 0 on .* to rank 1 on ' \
    env "${pinned[@]}" WEFT_TRANSPORT=faulty:seed=1,corrupt=3:0-1 "$test" allg -r 3 -b 66kb -e 66kb -n 1 -w 0 -c
  expect 69 'rank 1: all_gather uint8 .* element [0-9]+ is [0-9]+, expected [0-9]+ from rank 0' \
    env "${pinned[@]}" WEFT_TRANSPORT=faulty:seed=1,corrupt=3:0-1 "$test" allg -r 3 -b 66kb -e 66kb -n 1 -w 0 -c
  expect 1 '[0-9]+ errors found - test failed' \
    env "${pinned[@]}" WEFT_TRANSPORT=faulty:seed=1,corrupt=4:0-1 "$test" allr -r 3 -b 66kb -e 66kb -n 1 -w 0 -c
}

# launched LAUNCHER...: the same through a launcher's own exit code.
launched() {
  command -v "$1" >/dev/null || return 0
  export TMPDIR=$folder # two mpiruns that share a folder get in each other's way
  expect 0 'Avg bus bandwidth' "$@" -n 2 "$test" allr -r 2 -N 1 "${small[@]}" --check
  expect 64 'launcher has started 2 ranks; start 4' "$@" -n 2 "$test" allr -r 4 "${small[@]}"
  expect 64 '2 hosts were asked for' "$@" -n 2 "$test" allr -r 2 -N 2 "${small[@]}"
  expect 64 "unknown 'allx'" "$@" -n 2 "$test" allx -r 2
  expect 73 "cannot write '/nowhere/report.json'" "$@" -n 2 "$test" allr -r 2 --report-to-json-file /nowhere/report.json
  export "${pinned[@]}" WEFT_TRANSPORT=faulty:seed=1,corrupt=3:0-1
  expect 69 'to blame is the link from rank 0' "$@" -n 3 "$test" allg -r 3 -b 66kb -e 66kb -n 1 -w 0 -c
}

case ${2:-alone} in
  alone)
    alone
    unauthenticated
    corrupted
    ;;
  openmpi) launched mpirun.openmpi --allow-run-as-root --oversubscribe ;;
  mpich) launched mpiexec.mpich ;;
esac
echo "$failures failed"
[[ $failures -eq 0 ]]
