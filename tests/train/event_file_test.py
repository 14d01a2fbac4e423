# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's event files of weft-train, read by their formats' descriptions alone. usage: event_file_test.py WEFT_TRAIN

https://www.tensorflow.org/tutorials/load_data/tfrecord has the records, event.proto and summary.proto of TensorFlow the fields.
"""

import csv
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

FLAGS = "--layers 2 --hidden 32 --heads 2 --seq 16 --batch 1 --threads 1 --eval-every 2 --eval-batches 1 --quiet"
COLUMNS = {  # by tag: of the CSV file, what it rounds away, and what it is to be multiplied with
    "train/loss": ("loss", 0, 1),
    "train/grad_norm": ("grad_norm", 0, 1),
    "train/lr": ("lr", 0, 1),
    "perf/tokens_per_s": ("tokens_per_s", 0.051, 1),
    "perf/samples_per_s": ("tokens_per_s", 0.0032, 1 / 16),
    "perf/teraflop_per_s": ("tokens_per_s", 2e-8, None),
    "perf/step_ms": ("step_ms", 0.00051, 1),
    "comm/exposed_ms": ("exposed_ms", 0.00051, 1),
    "valid/loss": ("valid_loss", 0, 1),
    "valid/perplexity": ("valid_perplexity", 0, 1),
}


def crc32c(data):
    """Bit by bit, from the polynomial."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    while data:
        length, checksum = struct.unpack("<QI", data[:12])
        assert checksum == masked(data[:8]), "checksum of a length"
        body, (checksum,) = data[12 : 12 + length], struct.unpack("<I", data[12 + length : 16 + length])
        assert checksum == masked(body), "checksum of an event"
        yield body
        data = data[16 + length :]


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return value, at


def fields(data):
    """(number, value) of a message; fixed ones as bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = {1: (8, at), 5: (4, at)}.get(key & 7) or varint(data, at)
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def read(path):
    """The file's version, the steps at which runs start, and {tag: {step: value}}."""
    version, starts, scalars, times = None, [], {}, []
    for record in records(path.read_bytes()):
        event = dict(fields(record))
        times += struct.unpack("<d", event[1])
        step = event.get(2, 0)
        version = event.get(3, version)
        if 7 in event:
            starts.append((step, dict(fields(event[7]))))
        for _, value in fields(event.get(5, b"")):
            value = dict(fields(value))
            scalars.setdefault(value[1].decode(), {})[step] = struct.unpack("<f", value[2])[0]
    assert times == sorted(times)
    return version, starts, scalars


class EventFileTest(unittest.TestCase):
    def test_a_run_and_the_one_that_goes_on_are_two_files_with_all_of_the_curve(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            text = folder / "text"
            text.write_text("".join(f"{i} squared is {i * i}.\n" for i in range(500)))
            for steps in (4, 7):
                line = f"{sys.argv[1]} --data {text} {FLAGS} --steps {steps} --csv {folder}/csv --save {folder}/save --resume {folder}/save"
                subprocess.run(f"{line} --tensorboard {folder}/events".split(), check=True)
            files = sorted((folder / "events").iterdir())
            (version, starts, first), (_, more_starts, second) = map(read, files)
            self.assertEqual(version, b"brain.Event:2")
            self.assertEqual([starts, more_starts], [[(0, {1: 1})], [(4, {1: 1})]])
            self.assertEqual(list(first["train/loss"]), [0, 1, 2, 3])
            self.assertEqual(list(second["train/loss"]), [4, 5, 6])
            rows = list(csv.DictReader((folder / "csv").read_text().splitlines()))
            self.compare({tag: first[tag] | second[tag] for tag in first}, rows)

    def compare(self, scalars, rows):
        self.assertEqual(set(scalars), set(COLUMNS))
        layer, embeddings = 12 * 32 * 32 + 13 * 32, (256 + 16 + 256) * 32 + 2 * 32
        flops_per_token = 6 * (2 * layer + embeddings) + 12 * 2 * 32 * 16
        for tag, (column, rounding, factor) in COLUMNS.items():
            factor = factor or flops_per_token / 1e12
            wanted = {int(row["step"]): float(row[column]) * factor for row in rows if row[column]}
            self.assertEqual(list(scalars[tag]), list(wanted), tag)
            for step, value in wanted.items():
                close = math.isclose(scalars[tag][step], value, rel_tol=1e-7, abs_tol=rounding)
                self.assertTrue(close, (tag, step, scalars[tag][step], value))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
