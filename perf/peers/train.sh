#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# perf/peers/train.sh [BUILD [ROUNDS]]: weft-train with ZeRO-1 beside the same model on PyTorch's DDP and
# ZeroRedundancyOptimizer over Gloo (Debian: python3-torch), 2 ranks of one thread, alternating in one run.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
train=${1:-$here/../../build/release}/bin/weft-train
rounds=${2:-5}
data=/usr/share/common-licenses/GPL-3
# The same kernels on both sides: weft-train chooses these by itself.
export ATEN_CPU_CAPABILITY=${ATEN_CPU_CAPABILITY:-avx512} OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX} OMP_WAIT_POLICY=passive

weft() { "$train" --data "$data" --ranks 2 --threads 1 --shard zero1 --quiet --json "$out" "$@" && sed -n 's/.*"tokens_per_s": \([0-9.]*\).*/\1/p' "$out"; }
torch() { /usr/bin/python3 "$here/ddp_zero.py" --data "$data" --ranks 2 "$@" | sed -n 's/ tokens.*//p'; }
median() { sort -g | sed -n "$(((rounds + 1) / 2))p"; }

out=$(mktemp)
trap 'rm -f "$out" "$out".*' EXIT
for shape in "--layers 4 --hidden 512 --heads 8 --seq 32 --batch 1 --steps 40" \
  "--layers 4 --hidden 256 --heads 4 --seq 128 --batch 8 --steps 20"; do
  read -ra words <<<"$shape"
  rm -f "$out".*
  for ((i = 0; i < rounds; i++)); do
    weft "${words[@]}" >>"$out.fp32"
    torch "${words[@]}" >>"$out.torch"
    weft "${words[@]}" --wire bf16 >>"$out.bf16"
  done
  for wire in fp32 bf16; do
    a=$(median <"$out.$wire") b=$(median <"$out.torch")
    printf '%s: weft, %s wire %.0f, torch %.0f tokens/s: %.2fx\n' "$shape" "$wire" "$a" "$b" \
      "$(awk "BEGIN{print $a / $b}")"
  done
done
