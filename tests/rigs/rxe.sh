#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command in a virtual machine whose cards are soft-RoCE devices: no hardware, no privileges, no KVM.
#
#   tests/rigs/rxe.sh [--cards N] [--fabric mesh|switch] [--ports N] [--limit SECONDS] [--memory MIB]
#                     [--nodes N] [--add FILE]... [--folder DIR]... [--] COMMAND
#
# mesh: one veth cable per pair of cards i and j, device rc<i>p<j> at one end and rc<j>p<i> at the other, each cable a
# subnet of its own. switch: N devices rc<i>s<k> per card, all on one bridge and in one subnet. A rank takes its own
# card by WEFT_NET_DEVICES=rc<i>. COMMAND is a line for the machine's shell (busybox); /bin of the machine holds each
# --add FILE (programs come with their shared libraries), / what is in each --folder.
# `cable I J down` pulls the cable between two cards of the mesh, `cable I J up` plugs it in again.
# --nodes: the machine has N NUMA nodes of one core each, and its memory in equal parts on them.
# Its output is this script's, its exit code too; 124 says that the time was up, 125 that the machine did not start.
# WEFT_RIG_CONSOLE is a file that keeps what the kernel said.
set -euo pipefail

packages="qemu-system-x86 busybox-static iproute2 ibverbs-providers ibverbs-utils librdmacm1 cpio perftest"
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
store=${WEFT_RIGS_STORE:-$here/../../build/rigs}
cards=4 fabric=mesh ports=1 limit=120 memory=1024 nodes=1
add=() folders=()

die() { printf 'rxe: %s\n' "$*" >&2 && exit 125; }

parse() {
  while (($# > 0)); do
    case $1 in
      --packages) printf '%s\n' "$packages" && exit ;;
      --cards) cards=$2 ;;
      --fabric) fabric=$2 ;;
      --ports) ports=$2 ;;
      --limit) limit=$2 ;;
      --memory) memory=$2 ;;
      --nodes) nodes=$2 ;;
      --add) add+=("$2") ;;
      --folder) folders+=("$2") ;;
      --) shift && break ;;
      -*) die "no option $1" ;;
      *) break ;;
    esac
    shift 2 || die "$1 takes a value"
  done
  (($# > 0)) || die "no command to run"
  command_line=$*
}

# ---- the kernel: Debian's, unpacked, never installed ---------------------------------------------------

kernel_package() {
  apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: \(linux-image-6\.1[^ ]*-amd64\)$/\1/p' | head -1
}

# Leaves $kernel (the folder it is unpacked in) and $release.
fetch_kernel() {
  kernel=$store/kernel
  if [[ ! -e $kernel/complete ]]; then
    local package
    package=$(kernel_package)
    [[ -n $package ]] || die "apt knows no linux-image-6.1 for amd64; fix: apt-get update, on Debian 12"
    rm -rf "$kernel" && mkdir -p "$kernel"
    (cd "$kernel" && { apt-get download "$package-unsigned" || apt-get download "$package"; } >download.log 2>&1) ||
      die "apt-get could not download $package; $kernel/download.log says why"
    dpkg -x "$kernel"/*.deb "$kernel" && rm "$kernel"/*.deb && touch "$kernel/complete"
  fi
  release=$(basename "$kernel"/lib/modules/*)
}

# ---- what the machine boots: a base that is kept, and this run's files on top ----------------------------

# with_libraries ROOT TARGET FILE: FILE as ROOT/TARGET, and the shared libraries that it needs.
with_libraries() {
  local library
  install -D "$3" "$1/$2"
  for library in $(ldd "$3" 2>/dev/null | grep -o '/[^ ]*'); do
    library=$(realpath "$(dirname "$library")")/$(basename "$library")  # /lib is a link to /usr/lib
    [[ -e $1/$library ]] || install -D "$(readlink -f "$library")" "$1/$library"
  done
}

pack() { (cd "$1" && find . | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) | gzip -1 >"$2.new" && mv "$2.new" "$2"; }

# The order matters: an initrd has no autoloading, and rxe asks for crc32 by name.
modules="crc32c_generic crc32_generic udp_tunnel ip6_udp_tunnel ib_core ib_uverbs rdma_rxe veth llc stp bridge
         sch_netem sch_tbf"

base_initrd() {
  local root tool module plugins
  base=$store/base.gz
  [[ $base -nt $kernel/complete && -z $(find "$here/rxe.sh" "$here/rxe" -newer "$base") ]] && return
  root=$(mktemp -d)
  mkdir -p "$root"/{bin,proc,sys,dev,tmp,etc/libibverbs.d,modules,usr/lib,usr/lib64}
  ln -s usr/lib usr/lib64 "$root/"
  install "$(command -v busybox)" "$root/bin/busybox"
  for tool in ip rdma tc ibv_devinfo ibv_rc_pingpong ib_write_bw ib_write_lat ib_send_lat; do
    with_libraries "$root" "bin/$tool" "$(PATH=$PATH:/sbin:/usr/sbin command -v $tool)"
  done
  plugins=$(dirname "$(realpath "$(ldconfig -p | sed -n 's/.*libibverbs\.so\.1 .*=> //p' | head -1)")")/libibverbs
  with_libraries "$root" "$plugins/librxe-rdmav34.so" "$plugins/librxe-rdmav34.so"
  echo 'driver rxe' >"$root/etc/libibverbs.d/rxe.driver"
  for module in $modules; do
    find "$kernel/lib/modules/$release" -name "$module.ko" -exec cp {} "$root/modules/" \;
    [[ -e $root/modules/$module.ko ]] || die "the kernel package has no module $module"
    echo "$module" >>"$root/modules/order"
  done
  install "$here/rxe/init" "$root/init"
  install "$here/rxe/cable" "$root/bin/cable"
  pack "$root" "$base"
  rm -rf "$root"
}

# $1: where this run's files go.
run_initrd() {
  local root=$1/root file folder
  mkdir -p "$root/etc"
  for file in ${add[@]+"${add[@]}"}; do with_libraries "$root" "bin/$(basename "$file")" "$file"; done
  for folder in ${folders[@]+"${folders[@]}"}; do cp -a "$folder/." "$root/"; done
  printf '%s\n' "$command_line" >"$root/etc/command"
  printf 'cards=%s fabric=%s ports=%s limit=%s\n' "$cards" "$fabric" "$ports" "$limit" >"$root/etc/rig"
  pack "$root" "$1/run.gz"
  cat "$base" "$1/run.gz" >"$1/initrd.gz"
}

# ---- the machine --------------------------------------------------------------------------------------

# The kernel's console is one serial line, kept in a file; the command's output another, $1/output. On a busy machine the
# emulated timer is late, which the kernel would take for a broken one.
boot() {
  local numa=() node
  for ((node = 0; nodes > 1 && node < nodes; ++node)); do
    numa+=(-object "memory-backend-ram,id=m$node,size=$((memory / nodes))M" -numa "node,cpus=$node,memdev=m$node")
  done
  timeout --foreground $((limit + 120)) qemu-system-x86_64 \
    -M pc -accel tcg,thread=multi -smp $((nodes > 1 ? nodes : 2)) -m "$memory" ${numa[@]+"${numa[@]}"} -display none -no-reboot -net none \
    -kernel "$kernel/boot/vmlinuz-$release" -initrd "$1/initrd.gz" \
    -append "console=ttyS0 quiet panic=-1 no_timer_check" -serial "file:$1/console" -serial stdio </dev/null |
    tee "$1/output" | sed -u '/^rxe-rig: exit [0-9]*$/d'
}

main() {
  parse "$@"
  mkdir -p "$store" && store=$(readlink -f "$store")
  exec 9>"$store/lock" && flock 9 # of several rigs one makes the base
  fetch_kernel && base_initrd
  exec 9>&-
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  [[ -z ${WEFT_RIG_CONSOLE:-} ]] || ln -sf "$WEFT_RIG_CONSOLE" "$work/console"
  run_initrd "$work"
  boot "$work" || true
  if [[ ! -s $work/output ]] && grep -q 'Kernel panic' "$work/console"; then
    echo "rxe: the kernel did not start ($(grep -m1 -o 'Kernel panic.*' "$work/console")); once more" >&2
    boot "$work" || true
  fi
  code=$(sed -n 's/^rxe-rig: exit \([0-9]*\)$/\1/p' "$work/output" | tail -1)
  [[ -n $code ]] || {
    tail -n 30 "$work/console" >&2
    die "the machine ended without a result; its console is above"
  }
  exit "$code"
}

main "$@"
