#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Many ranks: processes of one host, and hosts of 16 ranks as network namespaces (shm inside, libfabric over TCP
# between). Creation, calls, splits, a mismatch and a death, by weft-scale, which prints a table; then nothing may be
# left behind. Needs root for hosts.
#
#   tests/rigs/scale.sh [--build FOLDER] [--transport NAME] WORLD...
#
# A WORLD is HOSTSxRANKS, as 8x16: 8 hosts of 16 ranks; 1x1024: 1,024 ranks of this host.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck source=tests/rigs/hosts/net.sh
source "$here/hosts/net.sh"
hosts_net=weftscale
build=$here/../../build/release transport=auto worlds=()
passed=0 failed=0

die() { printf 'scale: %s\n' "$*" >&2 && exit 2; }

parse() {
  while (($# > 0)); do
    case $1 in
      --build) build=$2 && shift 2 ;;
      --transport) transport=$2 && shift 2 ;;
      [0-9]*x[0-9]*) worlds+=("$1") && shift ;;
      *) die "no option $1" ;;
    esac
  done
  ((${#worlds[@]} > 0)) || worlds=(1x128 8x16)
}

result() { # NAME 0|1
  if (($2 == 0)); then
    passed=$((passed + 1)) && printf 'scale: passed: %s\n' "$1"
  else
    failed=$((failed + 1)) && printf 'scale: FAILED: %s\n' "$1"
  fi
}

# What a run may leave behind: processes, and sockets of weft where its ranks are. Not elsewhere: other tests run beside.
leftovers() { # HOSTS
  local host
  pgrep -cx weft-scale || true
  if (($1 == 1)); then
    grep -c '@weft-' /proc/net/unix || true
    return
  fi
  for ((host = 0; host < $1; host++)); do
    ip netns exec "${hosts_net}host$host" grep -c '@weft-' /proc/net/unix || true
  done
}

world() { # HOSTSxRANKS
  local hosts=${1%x*} each=${1#*x} before code=0
  ((hosts == 1)) || ((EUID == 0)) || { echo "scale: skipped: $1: network namespaces need root" && return; }
  ((hosts == 1)) || hosts_up "$hosts" 10gbit
  before=$(leftovers "$hosts")
  WEFT_SPIN_US=0 "$build/bin/weft-scale" --net "$hosts_net" --hosts "$hosts" --each "$each" \
    --transport "$transport" || code=1
  result "$1 ranks" "$code"
  code=0 && [[ $(leftovers "$hosts") == "$before" ]] || code=1
  result "$1 ranks leave nothing behind" "$code"
  ((hosts == 1)) || hosts_down
}

parse "$@"
build=$(readlink -f "$build")
[[ -x $build/bin/weft-scale ]] || die "$build/bin/weft-scale is not there; fix: ./dev build"
ulimit -n "$(ulimit -Hn)"
trap 'hosts_down 2>/dev/null || true' EXIT
for one in "${worlds[@]}"; do world "$one"; done
printf 'scale: %d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
