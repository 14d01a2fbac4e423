#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools.sh BIN TOOL...: what every tool has: a version, help that people can read, numbers without hundreds of digits in
# complaints, and an exit code that says so when its output is lost.
set -eu
bin=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

fail() {
  echo "FAILED: $*" >&2  # standard output may be the full device
  failures=$((failures + 1))
}

# ends CODE COMMAND...: with that code, whatever it says.
ends() {
  wanted=$1 code=0
  shift
  "$@" 2>"$folder/errors" || code=$?
  [ "$code" = "$wanted" ] || fail "$*: exit code $code, not $wanted: $(cat "$folder/errors")"
}

# A device of our own that is always full, where devices may be made.
full=$folder/full
mknod "$full" c 1 7 2>/dev/null && (: >"$full") 2>/dev/null || full=

for tool in "$@"; do
  ends 0 "$bin/$tool" --version >"$folder/said"
  grep -qx "$tool [0-9]*\.[0-9]*\.[0-9]*" "$folder/said" || fail "$tool --version: $(cat "$folder/said")"
  ends 0 "$bin/$tool" --help >"$folder/said"
  ! grep -E 'ENUM:|BOOLEAN:|[0-9]{30}' "$folder/said" || fail "$tool --help"
  if [ -n "$full" ]; then
    ends 73 "$bin/$tool" --help >"$full"
    ends 73 "$bin/$tool" --version >"$full"
  fi
done

for command in 'weft-perf all_reduce -n 0' 'weft-perf all_reduce -w -1' 'weft-test allr -r 2 -n 0' \
  'weft-train --data x --lr -1' 'weft-train --data x --steps 0'; do
  [ -x "$bin/${command%% *}" ] || continue
  # The command is words, to be split.
  # shellcheck disable=SC2086
  ends 64 "$bin/"$command
  ! grep -E '[0-9]{30}' "$folder/errors" || fail "$command"
done
[ $failures = 0 ]
