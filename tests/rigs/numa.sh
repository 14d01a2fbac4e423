#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/rigs/numa.sh [BUILD]: a virtual machine with two NUMA nodes of one core each, where it is seen on which node
# windows and their pages come to lie, and what the library knows of that. Its speeds mean nothing.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
bin=${1:-$here/../../build/release}/bin
add=()
for program in contract unit_topology ranks_numa weft-perf; do add+=(--add "$bin/$program"); done
exec "$here/rxe.sh" --cards 2 --nodes 2 --limit 400 "${add[@]}" -- "
  set -e
  [ \"\$(cat /sys/devices/system/node/has_cpu)\" = 0-1 ]
  contract --gtest_brief=1 --gtest_filter='*Placement*'
  unit_topology --gtest_brief=1 --gtest_filter='Numa*'
  ranks_numa --gtest_brief=1"
