#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install.sh CMAKE BUILD PREFIX: installs the build tree into an empty PREFIX.
set -eu
rm -rf "$3"
"$1" --install "$2" --prefix "$3"
