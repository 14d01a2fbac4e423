#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs libfabric's own efa provider over a fake EFA device that delivers out of order: no hardware, no privileges.
#
#   tests/rigs/efa.sh [--build FOLDER] [--seeds N] [--repeats N] [COMMAND...]
#
# COMMAND runs with the fake device in place, so that WEFT_TRANSPORT=ofi or a WEFT_OFI_* means efa. Without one: the
# contract of wires under N seeds (3), then each kind of trouble N times (5), then, if FOLDER (build/release) has them,
# the contract of transports and every collective with its results checked; as root also on two hosts of two ranks (network
# namespaces), shm inside and efa between, in two levels where a collective has them. With one repeat, the short form, these
# are four collectives, the device's moods meet what the contract says of delivery, and the provider's queues hold fewer
# messages: it clears buffers for all of them at each endpoint, which takes longer than what is sent.
# Prints what passed and what failed; the exit code is 1 if anything failed. The knobs of the device, FAKE_EFA_*, are
# in tests/rigs/efa/fake.h.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck source=tests/rigs/hosts/net.sh
source "$here/hosts/net.sh"
hosts_net=weftefa$$
root=$here/../..
build=$root/build/release seeds=3 repeats=5 command=()
passed=0 failed=()
collectives=(all_reduce all_gather all_gather_v reduce_scatter reduce_scatter_v broadcast reduce gather scatter alltoall
  gather_v scatter_v alltoallv sendrecv barrier)

die() { printf 'efa: %s\n' "$*" >&2 && exit 2; }

parse() {
  while (($# > 0)); do
    case $1 in
      --build) build=$2 && shift 2 ;;
      --seeds) seeds=$2 && shift 2 ;;
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

# "${with_device[@]}" COMMAND...: it has the fake device.
make_device() {
  mkdir "$work/wire"
  make_sysfs "$work/sys"
  with_device=(env SYSFS_PATH="$work/sys" FAKE_EFA_WIRE="$work/wire" LD_PRELOAD="$fake" FI_PROVIDER="efa,tcp,ofi_rxm"
    FI_EFA_ENABLE_SHM_TRANSFER=0 FI_EFA_USE_DEVICE_RDMA=1 WEFT_OFI_PROVIDER="${WEFT_OFI_PROVIDER:-efa}"
    WIRES_UNDER_TEST=ofi)
}

result() { # NAME 0|1 LOG...
  if (($2 == 0)); then
    passed=$((passed + 1)) && printf 'efa: passed: %s\n' "$1"
  else
    failed+=("$1") && printf 'efa: FAILED: %s\n' "$1" && tail -n 40 "${@:3}"
  fi
}

# check NAME COMMAND...
check() {
  local name=$1 log=$work/log code=0
  shift
  "${with_device[@]}" FAKE_EFA_TALLY="$work/tally" timeout 300 "$@" >"$log" 2>&1 || code=1
  result "$name" "$code" "$log"
}

check_wires() {
  local seed wire=("$build/bin/wire" --gtest_filter='Wires*')
  for ((seed = 1; seed <= seeds; ++seed)); do
    check "wires, seed $seed" env FAKE_EFA_SEED="$seed" "${wire[@]}"
  done
  ((repeats > 1)) || wire=("$build/bin/wire" --gtest_filter='Wires/Delivery*')
  check "wires, late arrivals" env FAKE_EFA_DELAY_US=2000 "${wire[@]}"
  check "wires, receivers not ready" env FAKE_EFA_NOT_READY=5 "${wire[@]}"
  check "wires, emulated writes" env WEFT_OFI_MODE=rdma "${wire[@]}"
  check "wires, no RDMA read" env FAKE_EFA_READS=0 FI_EFA_USE_DEVICE_RDMA=0 "${wire[@]}"
}

check_trouble() {
  check "troubles, $repeats times each" env EFA_TROUBLE_REPEATS="$repeats" "$build/bin/efa_trouble"
}

# away NAME OPERATION BYTES ROUNDS: two ranks, of which one is away between its calls; see ofi/away.cpp. Larger
# messages go by the provider's reads, which their target makes.
away() {
  local rank pid pids=() code=0 port=$((20000 + RANDOM % 10000)) signs
  signs=$(mktemp -d -p "$work")
  for rank in 1 0; do
    WEFT_RANK=$rank WEFT_SIZE=2 WEFT_ROOT=127.0.0.1:$port WEFT_SECRET=rig WEFT_TRANSPORT=ofi \
      FI_EFA_INTER_MIN_READ_MESSAGE_SIZE=32768 \
      "${with_device[@]}" timeout 100 "$build/bin/ofi_away" "${@:2}" "$signs" >"$work/rank$rank" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || code=1; done
  result "$1" "$code" "$work"/rank[01]
}

check_away() {
  away "nobody waits for a peer that is away" give 60000 5
  FAKE_EFA_NOT_READY=20 away "nor where receivers are not ready" all_reduce 60000 $((repeats > 5 ? 100 : 20 * repeats))
}

check_transport() {
  local collective
  check "contract of transports" env FABRICS_UNDER_TEST=ofi "$build/bin/contract" --gtest_filter='*/ofi'
  for collective in "${collectives[@]}"; do
    check "$collective, 4 ranks" env WEFT_TRANSPORT=ofi WEFT_TIMEOUT_MS=60000 \
      "$build/bin/weft-perf" "$collective" -b 0 -e 1M -f 11 -n 2 -w 1 --ranks 4
  done
}

# on_hosts ARGUMENT...: weft-perf on two hosts of two ranks; what rank R says is in $work/rankR. Of the larger messages
# the provider makes RDMA reads, sooner than by default.
on_hosts() {
  local rank way pid pids=() port=$((20000 + RANDOM % 10000)) code=0
  for rank in 0 1 2 3; do
    WEFT_RANK=$rank WEFT_SIZE=4 WEFT_ROOT=10.77.0.1:$port WEFT_SECRET=rig WEFT_SPIN_US=0 WEFT_TRANSPORT=auto \
      FI_EFA_INTER_MIN_READ_MESSAGE_SIZE=32768 FAKE_EFA_TALLY=$work/tally \
      on_host $((rank / 2)) "${with_device[@]}" timeout 120 "$build/bin/weft-perf" "$@" >"$work/rank$rank" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || code=1; done
  for way in '1: shm' '2: efa' '3: efa'; do grep -q "^# rank $way" "$work/rank0" || code=1; done
  return "$code"
}

check_hosts() {
  local collective code levels two_level
  two_level=$("$build/bin/weft-perf" --algo list | sed -n 's/: .*two-level.*//p')
  hosts_up 2 1gbit
  for collective in "${collectives[@]}"; do
    code=0 levels=()
    ! grep -qx "$collective" <<<"$two_level" || levels=(--algo two-level)
    on_hosts "$collective" -b 0 -e 4M -f 11 -n 2 -w 1 -T 60 "${levels[@]}" || code=1
    result "2 hosts of 2 ranks, shm inside, efa between: $collective ${levels[*]}" "$code" "$work"/rank?
  done
}

# Why there can be no hosts; nothing if there can.
no_hosts() {
  local tool
  ((EUID == 0)) || { echo "needs root" && return; }
  for tool in ip tc unshare; do
    command -v "$tool" >/dev/null || { echo "needs $tool" && return; }
  done
  unshare --net true 2>/dev/null || echo "no network namespaces on this machine"
}

# Only what is built: a developer at work on the wire has no weft-perf.
has() { [[ -x $build/bin/$1 ]]; }

parse "$@"
if ((repeats == 1)); then
  collectives=(all_reduce all_gather alltoall sendrecv)
  export FI_EFA_RX_SIZE=512 FI_EFA_TX_SIZE=256
fi
fake=$(readlink -f "$build/lib/libfake_efa.so") || die "$build/lib/libfake_efa.so is not there; fix: build fake_efa"
build=$(readlink -f "$build")
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
make_device
if ((${#command[@]} > 0)); then
  "${with_device[@]}" "${command[@]}"
  exit
fi
check_wires
check_trouble
if has ofi_away; then check_away; fi
if has contract && has weft-perf; then check_transport; fi
why=$(no_hosts)
if [[ -n $why ]]; then
  printf 'efa: skipped, two hosts: %s\n' "$why"
elif has weft-perf; then
  trap 'hosts_down; rm -rf "$work"' EXIT
  check_hosts
fi
awk '{ all += $1; late += $2 } END { printf "efa: %d datagrams, %d of them out of order\n", all, late }' "$work/tally"
printf 'efa: %d passed, %d failed\n' "$passed" "${#failed[@]}"
((${#failed[@]} == 0)) || { printf 'efa: FAILED: %s\n' "${failed[@]}" && exit 1; }
