#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# commands.sh README SECTION BIN: what the section shows as commands must succeed, with the programs in BIN.
set -eu
mpirun='^mpirun'
command -v mpirun >/dev/null && mpirun='^$'
commands=$(sed -n "/^## $2\$/,/^## /{/^\`\`\`sh\$/,/^\`\`\`\$/p}" "$1" | grep -v -e '^```' -e "$mpirun" | sed "s#build/release/bin#$3#")
[ -n "$commands" ]
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export TMPDIR="$folder" # mpirun's, too
cd "$folder"
printf '%s\n' "$commands" | sh -ex
