# SPDX-License-Identifier: Apache-2.0
"""BERT's shards as h5py writes and reads them, read by weft-train. usage: bert_shards_test.py PRINT_BERT_SHARD"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import h5py
    import numpy
except ImportError:
    print("skipped: there is no h5py for this Python (python3-h5py)")
    sys.exit(77)

PRINT = sys.argv.pop(1)
LENGTH, MASKED = 128, 20

# The types and layouts that create_pretraining_data.py chooses, and others that hold the same.
PUBLISHED = dict(ids="i4", bits="i1", layout=dict(compression="gzip"))
OTHERS = (
    dict(ids="i8", bits="u1", layout=dict(compression="gzip", shuffle=True, fletcher32=True)),
    dict(ids=">i4", bits="i2", layout=dict(chunks=True)),
    dict(ids="u2", bits="i4", layout={}),
)


class ShardsOfH5py(unittest.TestCase):
    def check(self, samples, ids, bits, layout):
        random = numpy.random.default_rng(samples)
        drawn = {
            "input_ids": (ids, random.integers(0, 30522, (samples, LENGTH))),
            "input_mask": (bits, random.integers(0, 2, (samples, LENGTH))),
            "segment_ids": (bits, random.integers(0, 2, (samples, LENGTH))),
            "masked_lm_positions": (ids, random.integers(0, LENGTH, (samples, MASKED))),
            "masked_lm_ids": (ids, random.integers(0, 30522, (samples, MASKED))),
            "next_sentence_labels": (bits, random.integers(0, 2, samples)),
        }
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "shard.hdf5"
            with h5py.File(path, "w") as file:
                for name, (kind, values) in drawn.items():
                    file.create_dataset(name, data=values, dtype=kind, **layout)
            read = subprocess.run([PRINT, path, str(LENGTH)], check=True, capture_output=True, text=True).stdout
            with h5py.File(path) as file:
                for line in read.splitlines():
                    name, *values = line.split(" ")
                    expected = file[name][:].ravel()
                    self.assertTrue(numpy.array_equal(numpy.array(values, dtype=numpy.int64), expected), name)
        self.assertEqual([line.split(" ")[0] for line in read.splitlines()], list(drawn))

    def test_published_layout(self):
        for samples in (1, 777):
            self.check(samples, **PUBLISHED)

    def test_other_types_and_layouts(self):
        for other in OTHERS:
            with self.subTest(**other):
                self.check(50, **other)


if __name__ == "__main__":
    unittest.main()
