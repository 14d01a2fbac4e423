# SPDX-License-Identifier: Apache-2.0
"""The trainings that the jobs of the array are, and what comes of each if nobody disturbs it."""

import dataclasses
import subprocess

from jobs import STEPS
from storage import Storage

SMALL = "--layers 2 --hidden 32 --heads 2 --seq 32 --warmup 5 --threads 1 --bucket-mb 0.02 --reproducible".split()
MODELS = ("gpt", "neox", "bert", "gptj")
WAYS = ("--shard none", "--shard zero1 --optimizer lamb", "--shard zero3", "--shard mics --optimizer sgd --lr 0.05")


@dataclasses.dataclass
class Variant:
    name: str
    flags: list
    curve: list
    weights: str


def train_undisturbed(tools, data, folder, count):
    """On one rank, to its end, without a checkpoint: the others must come to the same bits."""
    variants = []
    for number in range(count):
        model, way = MODELS[number % len(MODELS)], WAYS[number // len(MODELS) % len(WAYS)]
        flags = ["--data", data, "--model", model, *way.split(), "--seed", number + 1, *SMALL]
        storage = Storage(folder / f"undisturbed.{number}")
        files = ["--csv", storage.folder / "curve", "--json", storage.folder / "report"]
        command = [tools / "weft-train", *flags, *files, "--steps", STEPS, "--batch", "1", "--global-batch", "4", "--quiet"]
        subprocess.run([str(word) for word in command], check=True)
        variants.append(Variant(f"{model} {way}", flags, storage.curve(), storage.weights()))
    return variants
