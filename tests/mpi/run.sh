#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs of MPI with their collectives on weft. usage: run.sh openmpi|mpich FOLDER OF PROGRAMS
set -u

mpi=$1 programs=$2
run=$(command -v "mpirun.$mpi") || { echo "no mpirun.$mpi" && exit 77; }
options=()
[ "$mpi" = openmpi ] && options=(--allow-run-as-root --oversubscribe)
output=$(mktemp) errors=$(mktemp)  # mpirun mixes the two within lines
trap 'rm -f "$output" "$errors"' EXIT
failures=0

# Each on so many ranks; what it prints must have these words.
expect() {
  local ranks=$1 words=$2
  shift 2
  timeout 60 "$run" "${options[@]}" -n "$ranks" "$programs/weft-mpi" "$@" >"$output" 2>"$errors"
  local ended=$?
  if [ $ended -ne 0 ] || ! grep -qE "$words" "$output" "$errors"; then
    echo "$mpi, $ranks ranks, $*: exit code $ended, and no '$words':" && tail -25 "$output" "$errors"
    failures=$((failures + 1))
  fi
}

# Ranks of MPICH keep their cores while they wait: where these are few, more ranks take long.
cases=40
[ "$mpi" = mpich ] && cases=8
for ranks in 2 3 4; do
  expect "$ranks" "^weft-mpi: rank 0 of $ranks: [0-9]+ collectives on weft \(Allreduce [0-9]+.*Barrier [0-9]+\), [0-9]+ on the MPI below \(.*type or operation" \
    "$programs/mpi_collectives_$mpi" "$cases"
done
expect 2 "^the sum of 2 ranks is 3$" "$programs/mpi_sum_$mpi"
for ranks in 2 3; do
  expect "$ranks" "^all is as MPI says$" "$programs/mpi_semantics_$mpi"
done

# Without weft-mpi's library a program runs as ever, and a wrong one is told.
if "$programs/weft-mpi" /bin/true 2>"$output"; then failures=$((failures + 1)) && echo "/bin/true was run"; fi
grep -q "is linked to neither Open MPI" "$output" || { failures=$((failures + 1)) && cat "$output"; }
exit $((failures > 0))
