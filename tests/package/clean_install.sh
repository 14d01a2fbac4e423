#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# clean_install.sh FOLDER DEB...: makes a bare Debian in FOLDER, where there is none, by debootstrap; does there, word for word, what
# the README's section "Debian packages" shows, as root what installs, as nobody all else; tries what else is installed; and purges
# it. As root, with a network.
set -eu
root=$1
shift
here=$(dirname "$(readlink -f "$0")")
readme=$here/../../README.md
work=/home/work

[ -x "$root/usr/bin/apt-get" ] || debootstrap --variant=minbase bookworm "$root" >/dev/null
mounts="proc sys dev/shm dev/pts"
unmount() {
  for place in $mounts; do ! mountpoint -q "$root/$place" || umount "$root/$place"; done
}
unmount
trap unmount EXIT
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t devpts -o ptmxmode=666,newinstance devpts "$root/dev/pts"
rm -rf "${root:?}$work"
mkdir -p "$root$work/build/package"
cp "$@" "$root$work/build/package"
chmod -R a+rwX "$root$work"
echo 'APT::Install-Recommends "false";' >"$root/etc/apt/apt.conf.d/50bare"

# inside USER COMMANDS
inside() {
  chroot --userspec="$1" "$root" env -i LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    HOME="$work" TMPDIR=/tmp ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    OMPI_MCA_rmaps_base_oversubscribe=1 sh -exc "cd $work; $2"
}

# block NUMBER: that of the section's blocks of commands.
block() {
  sed -n '/^## Debian packages$/,/^## /p' "$readme" |
    awk -v wanted="$1" '/^```sh$/ { inside = 1; number++; next } /^```$/ { inside = 0 } inside && number == wanted'
}
[ -n "$(block 1)" ] && [ -n "$(block 2)" ]

inside root 'apt-get -q update'
inside root "alias apt-get='apt-get -qy'
$(block 1)"
inside nobody "$(block 2)"
inside nobody 'weft-perf all_reduce -b 8 -e 1M -f 16 --ranks 2 -n 5 -w 1'
inside nobody 'weft-test --version && weft-health --version && weft-doctor --version && weft-sim --version && weft-topo >/dev/null'
inside nobody "python3 -c 'import numpy, weft; print(weft.run(lambda comm: comm.all_reduce(numpy.arange(3.0)), ranks=4)[3])'"
inside root 'cd /usr/share/man && ls man1/weft-perf.1.gz man1/weft-mpi.1.gz man3/weftAllReduce.3.gz man3/weftStepWait.3.gz'
inside root 'apt-get -qy purge libweft0 "libweft-*" "weft-*" "python3-weft*" >/dev/null'
left=$(find "$root/usr" -iname '*weft*')
[ -z "$left" ] || { echo "what is left of packages that were purged: $left" >&2 && exit 1; }
