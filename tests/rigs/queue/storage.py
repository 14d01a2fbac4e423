# SPDX-License-Identifier: Apache-2.0
"""The folder of a job on the file system that all hosts share: its checkpoints, its curve, and what befalls them."""

import json
import os
import subprocess

SMALL = "8m"  # of a disk that will be full


def steps_of(checkpoint):
    return int(checkpoint[5:13])


class Storage:
    def __init__(self, folder):
        self.folder, self.is_mounted, self.damaged = folder, False, None
        folder.mkdir()

    def put_on_small_disk(self):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "none", self.folder], check=True)
        self.is_mounted = True

    def fill_disk(self):
        if not self.is_mounted:
            raise RuntimeError(f"{self.folder} is no small disk: this would fill the machine's")
        with open(self.folder / "filler", "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(1 << 16)):
                    pass
            except OSError:
                pass

    def make_room(self):
        (self.folder / "filler").unlink(missing_ok=True)

    def remove(self):
        if self.is_mounted:
            subprocess.run(["umount", "--lazy", self.folder], check=True)

    def checkpoints(self):
        """The names of those that are there, newest first, and whether one is being written."""
        names = [name for name in os.listdir(self.folder) if name.startswith("step-")]
        written = [name for name in names if name[5:].replace(".", "").isdigit()]
        return sorted(written, reverse=True), any(name.endswith(".tmp") for name in names)

    def steps_to_resume(self):
        """What must not be lost: the steps of the last checkpoint, or if that was damaged of the best of the others."""
        latest = self.latest()
        if latest is None or latest.name != self.damaged or self.was_set_aside():
            return steps_of(latest.name) if latest else 0
        return max(steps_of(name) for name in self.checkpoints()[0] if name != self.damaged)

    def was_set_aside(self):
        return (self.folder / f"{self.damaged}.damaged").exists()

    def latest(self):
        """The folder that a new run begins with, or None."""
        try:
            return self.folder / (self.folder / "latest").read_text().strip()
        except FileNotFoundError:
            return None

    def damage_last_checkpoint(self, rng):
        newest = self.latest()
        self.damaged = newest.name
        file = rng.choice(sorted(newest.iterdir()))
        content = bytearray(file.read_bytes())
        at = rng.randrange(len(content))
        match rng.choice(("cut off", "flipped", "gone")):
            case "cut off":
                file.write_bytes(content[:at])
            case "flipped":
                content[at] ^= 1 << rng.randrange(8)
                file.write_bytes(content)
            case "gone":
                file.unlink()

    def curve(self):
        """What is to be repeated to the bit of each step: its number, loss, norm and learning rate. Whole lines alone."""
        try:
            text = (self.folder / "curve").read_text()
        except FileNotFoundError:
            return []
        lines = text[: text.rfind("\n") + 1].splitlines()[1:]
        return [tuple(line.split(",")[:4]) for line in lines]

    def steps_made(self):
        """As many as the curve has; cheap, to be asked all the time."""
        try:
            with open(self.folder / "curve", "rb") as file:
                file.seek(max(os.fstat(file.fileno()).st_size - 400, 0))
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return 0
        step = lines[-2].split(b",")[0] if len(lines) > 1 else b""
        return int(step) + 1 if step.isdigit() else 0

    def weights(self):
        return json.loads((self.folder / "report").read_text())["weights"]
