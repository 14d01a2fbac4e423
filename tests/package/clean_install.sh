#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# clean_install.sh FOLDER DEB...: installs the packages by apt into a bare Debian in FOLDER, which debootstrap makes where there
# is none, and does there what the README's doors show. As root, with a network.
set -eu
root=$1
shift
[ -x "$root/usr/bin/apt-get" ] || debootstrap --variant=minbase bookworm "$root" >/dev/null
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
mountpoint -q "$root/dev/shm" || mount -t tmpfs tmpfs "$root/dev/shm"
trap 'umount "$root/proc" "$root/dev/shm"' EXIT
rm -rf "$root/debs"
mkdir "$root/debs"
cp "$@" "$root/debs"

inside() { chroot "$root" env -u PYTHONPATH LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -exc "$1"; }
inside 'apt-get -q update && apt-get -qy install --no-install-recommends /debs/*.deb gcc libc6-dev pkg-config python3-numpy'
# The inner shell expands it.
# shellcheck disable=SC2016
inside 'cd /tmp && cc -o all_reduce /usr/share/doc/libweft-dev/examples/all_reduce.c $(pkg-config --cflags --libs weft) && ./all_reduce'
inside 'weft-perf all_reduce -b 8 -e 1M -f 16 --ranks 2 -n 5 -w 1'
inside 'weft-doctor --version && weft-sim --version && weft-topo >/dev/null'
inside 'python3 /usr/share/doc/libweft-dev/examples/all_reduce.py'
inside "python3 -c 'import numpy, weft; print(weft.run(lambda comm: comm.all_reduce(numpy.arange(3.0)), ranks=4)[3])'"
inside 'ls /usr/share/man/man1/weft-perf.1.gz && apt-get -qy purge libweft0 libweft-dev weft-tools python3-weft >/dev/null'
