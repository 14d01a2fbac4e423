#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# documents.sh FOLDER: what is installed to be read is there, and every link of the pages leads somewhere.
set -eu
cd "$1"
for file in LICENSE README.md CHANGELOG.md docs/porting.md docs/operating.md examples/all_reduce.c \
  examples/topologies/dl1.24xlarge.topo; do
  [ -s "$file" ] || { echo "$1 lacks $file" && exit 1; }
done
if ls docs/*.py 2>/dev/null; then echo "$1 has scripts that make documents" && exit 1; fi
for page in docs/*.md; do
  grep -o '](\([^)#:]*\.\(md\|svg\)\)' "$page" | sed 's/^](//; s/)$//' | while read -r link; do
    [ -e "docs/$link" ] || { echo "$page links to $link, which is not there" && exit 1; }
  done
done
