#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# exit_codes.sh WEFT_HEALTH: what it says and how it ends, of two ranks that it starts itself.
set -eu
health=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# expect CODE WORDS ARGUMENT...: it ends with that code, and says these words.
expect() {
  wanted=$1 words=$2 code=0
  shift 2
  "$health" "$@" >"$folder/said" 2>&1 || code=$?
  if [ "$code" != "$wanted" ] || ! grep -q "$words" "$folder/said"; then
    echo "weft-health $*: exit code $code, wanted $wanted and '$words'"
    cat "$folder/said"
    exit 1
  fi
}

WEFT_TUNE_FILE=off expect 0 '^weft-health: healthy' --ranks 2 --time 4 --json "$folder/report" --svg "$folder/picture" \
  --baseline "$folder/history"
grep -q '"exit_code": 0' "$folder/report"
grep -q '</svg>' "$folder/picture"
grep -q '"2 ranks on 1 hosts"' "$folder/history"
echo hello >"$folder/foreign"
expect 64 'is not a history of weft-health' --ranks 2 --baseline "$folder/foreign"
expect 73 'cannot write' --ranks 2 --json /nowhere/report.json
expect 64 'ranks' --ranks 0
expect 64 'sideways' --sideways
expect 0 'Exit codes' --help

# Reports that cannot be written: a device of our own that is always full, where devices may be made.
if mknod "$folder/full" c 1 7 2>/dev/null && (: >"$folder/full") 2>/dev/null; then
  expect 73 'No space left' --ranks 2 --time 4 --no-host --json "$folder/full"
  expect 73 'No space left' --ranks 2 --time 4 --no-host --baseline "$folder/full"
  test -c "$folder/full"
  code=0
  "$health" --ranks 2 --time 4 --no-host >"$folder/full" 2>"$folder/said" || code=$?
  test $code = 73
  grep -q 'cannot write standard output' "$folder/said"
fi
WEFT_DEBUG=INFO expect 0 '\[1\] WEFT INFO communicator' --ranks 2 --time 4 --no-host
expect 0 '"verdict"' --ranks 2 --time 4 --no-host --json -
WEFT_TRANSPORT=faulty:corrupt=2:0-1 expect 69 'link from rank 0 .* to rank 1 .*data-corrupt' --ranks 2 --time 4 --no-host
WEFT_RANK=0 WEFT_SIZE=2 WEFT_ROOT=127.0.0.1:$((10000 + $$ % 10000)) WEFT_SECRET=x expect 75 'rank-lost' --quick --join-timeout 1 \
  --json "$folder/alone"
grep -q '"exit_code": 75' "$folder/alone"
grep -q '"kind": "rank-lost"' "$folder/alone"
grep -q '"missing_ranks"' "$folder/alone"
