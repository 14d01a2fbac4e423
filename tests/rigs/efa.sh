#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs libfabric's own efa provider over a fake EFA device that delivers out of order: no hardware, no privileges.
#
#   tests/rigs/efa.sh [--build FOLDER] [--seeds N] [--repeats N] [--short] [COMMAND...]
#
# COMMAND runs with the fake device in place, so that WEFT_TRANSPORT=ofi or a WEFT_OFI_* means efa. Without one: the
# contract of wires under N seeds (3), then each kind of trouble N times (5), then, if FOLDER (build/release) has them,
# the contract of transports and every collective with its results checked; --short leaves most of it out. Prints what
# passed and what failed; the exit code is 1 if anything failed. The knobs of the device, FAKE_EFA_*, are in
# tests/rigs/efa/fake.h.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$here/../..
build=$root/build/release seeds=3 repeats=5 short= command=()
passed=0 failed=0

die() { printf 'efa: %s\n' "$*" >&2 && exit 2; }

parse() {
  while (($# > 0)); do
    case $1 in
      --build) build=$2 && shift 2 ;;
      --seeds) seeds=$2 && shift 2 ;;
      --short) short=yes && shift ;;
      --repeats) repeats=$2 && shift 2 ;;
      -*) die "no option $1" ;;
      *) command=("$@") && return ;;
    esac
  done
}

# What the provider reads about its devices: /sys, in small.
make_sysfs() {
  local sys=$1 i device
  mkdir -p "$sys/class/infiniband_verbs" "$sys/class/infiniband" "$sys/drivers/efa"
  echo 6 >"$sys/class/infiniband_verbs/abi_version"
  for i in 0 1 2 3; do
    device=$sys/devices/0000:00:1$i.0
    mkdir -p "$device" "$sys/class/infiniband/efa_$i"
    ln -s ../../drivers/efa "$device/driver"
    ln -s "../../../devices/0000:00:1$i.0" "$sys/class/infiniband/efa_$i/device"
  done
}

with_device() {
  env SYSFS_PATH="$sysfs" FI_PROVIDER="efa,tcp,ofi_rxm" FI_EFA_ENABLE_SHM_TRANSFER=0 FI_EFA_USE_DEVICE_RDMA=1 \
    WEFT_OFI_PROVIDER="${WEFT_OFI_PROVIDER:-efa}" WIRES_UNDER_TEST=ofi LD_PRELOAD="$fake" "$@"
}

# check NAME COMMAND...
check() {
  local name=$1 log=$work/log
  shift
  if with_device FAKE_EFA_TALLY="$work/tally" timeout 300 "$@" >"$log" 2>&1; then
    passed=$((passed + 1)) && printf 'efa: passed: %s\n' "$name"
  else
    failed=$((failed + 1)) && printf 'efa: FAILED: %s\n' "$name" && tail -40 "$log"
  fi
}

check_wires() {
  local seed wire=("$build/bin/wire" --gtest_filter='Wires*')
  for ((seed = 1; seed <= seeds; ++seed)); do
    check "wires, seed $seed" env FAKE_EFA_SEED="$seed" "${wire[@]}"
  done
  [[ -z $short ]] || return 0
  check "wires, late arrivals" env FAKE_EFA_DELAY_US=2000 "${wire[@]}"
  check "wires, receivers not ready" env FAKE_EFA_NOT_READY=5 "${wire[@]}"
  check "wires, emulated writes" env WEFT_OFI_MODE=rdma "${wire[@]}"
  check "wires, no RDMA read" env FAKE_EFA_READS=0 FI_EFA_USE_DEVICE_RDMA=0 "${wire[@]}"
}

check_trouble() {
  check "troubles, $repeats times each" env EFA_TROUBLE_REPEATS="$repeats" "$build/bin/efa_trouble"
}

check_transport() {
  local collective collectives=(all_reduce all_gather all_gather_v reduce_scatter reduce_scatter_v broadcast reduce
    gather scatter alltoall sendrecv barrier)
  check "contract of transports" env FABRICS_UNDER_TEST=ofi "$build/bin/contract" --gtest_filter='*/ofi'
  [[ -z $short ]] || collectives=(all_reduce alltoall)
  for collective in "${collectives[@]}"; do
    check "$collective, 4 ranks" env WEFT_TRANSPORT=ofi WEFT_TIMEOUT_MS=60000 \
      "$build/bin/weft-perf" "$collective" -b 0 -e 1M -f 11 -n 2 -w 1 --ranks 4
  done
}

# Only what is built: a developer at work on the wire has no weft-perf.
has() { [[ -x $build/bin/$1 ]]; }

parse "$@"
fake=$(readlink -f "$build/lib/libfake_efa.so") || die "$build/lib/libfake_efa.so is not there; fix: build fake_efa"
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
sysfs=$work/sys
make_sysfs "$sysfs"
if ((${#command[@]} > 0)); then
  with_device "${command[@]}"
  exit
fi
check_wires
[[ -n $short ]] || check_trouble
if has contract && has weft-perf; then check_transport; fi
awk '{ all += $1; late += $2 } END { printf "efa: %d datagrams, %d of them out of order\n", all, late }' "$work/tally"
printf 'efa: %d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
