# SPDX-License-Identifier: Apache-2.0
"""Reads weft-test's output as scripts read nccom-test's: columns by their titles, the average by its
words, JSON by its keys, bandwidths in 2^30 bytes per second.

    read_test.py path/to/weft-test
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

WEFT_TEST = sys.argv.pop(1)
GIBI = 2.0**30
BUS_FACTOR = {
    "allr": lambda r: 2 * (r - 1) / r,
    "allg": lambda r: (r - 1) / r,
    "redsct": lambda r: (r - 1) / r,
    "alltoall": lambda r: (r - 1) / r,
    "alltoallv": lambda r: (r - 1) / r,
    "bcast": lambda r: 1,
    "sendrecv": lambda r: 1,
    "permute": lambda r: 1,
}


class Table:
    def __init__(self):
        self.rows = []
        self.average = None


def tables_of(text):
    """One table for each line of titles, its rows as dictionaries."""
    tables, titles = [], None
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["size(B)"]:
            titles = words
            tables.append(Table())
        elif line.startswith("Avg bus bandwidth:"):
            tables[-1].average = float(words[-1].removesuffix("GB/s"))
            titles = None
        elif titles:
            assert len(words) == len(titles), line
            tables[-1].rows.append(dict(zip(titles, words)))
    return tables


def run(*arguments):
    ended = subprocess.run([WEFT_TEST, *arguments], capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stderr
    return tables_of(ended.stdout)


class ReadAsNccomTests(unittest.TestCase):
    def check_figures(self, row, operation, ranks):
        size, time = int(row["size(B)"]), float(row["time:avg(us)"])
        algbw, busbw = float(row["algbw(GB/s)"]), float(row["busbw(GB/s)"])
        self.assertGreater(time, 0)
        self.assertAlmostEqual(algbw, size / GIBI / (time * 1e-6), delta=0.01 + 0.01 * algbw)
        self.assertAlmostEqual(busbw, algbw * BUS_FACTOR[operation](ranks), delta=0.02)

    def test_each_operation(self):
        for operation in BUS_FACTOR:
            with self.subTest(operation):
                (table,) = run(operation, "-r", "3", "-b", "12kb", "-e", "768kb", "-f", "8",
                               "-d", "fp32", "-n", "5", "-w", "2", "--check")  # fmt: skip
                sizes = [int(row["size(B)"]) for row in table.rows]
                self.assertEqual(sizes, [12 << 10, 96 << 10, 768 << 10])
                for row in table.rows:
                    self.assertEqual(int(row["count(elems)"]) * 4, int(row["size(B)"]))
                    self.assertEqual(row["type"], "fp32")
                    self.check_figures(row, operation, 3)
                mean = sum(float(row["busbw(GB/s)"]) for row in table.rows) / 3
                self.assertAlmostEqual(table.average, mean, delta=0.02)

    def test_several_operations_have_a_table_each(self):
        tables = run("allr", "allg", "bcast", "-r", "2", "-b", "8", "-e", "1kb", "-i", "508", "-n", "3")
        self.assertEqual([len(table.rows) for table in tables], [3, 3, 3])

    def test_statistics_are_in_order(self):
        (table,) = run("--check", "allr", "-r", "2", "-b", "4kb", "-e", "4kb", "-n", "50",
                       "--stats", "avg", "p0", "p50", "p90", "p100")  # fmt: skip
        (row,) = table.rows
        times = [float(row[f"time:{name}(us)"]) for name in ("p0", "p50", "p90", "p100")]
        self.assertEqual(times, sorted(times))
        self.assertTrue(times[0] <= float(row["time:avg(us)"]) <= times[-1])

    def test_more_columns(self):
        (table,) = run("allg", "-r", "2", "-b", "1kb", "-e", "64kb", "-f", "8", "-n", "3",
                       "--show-algorithm", "--show-input-output-size")  # fmt: skip
        for row in table.rows:
            self.assertTrue(row["algorithm"])
            self.assertEqual(int(row["total_input_size(B)"]) * 2, int(row["size(B)"]))
            self.assertEqual(row["total_output_size(B)"], row["size(B)"])

    def test_groups_are_measured_as_groups(self):
        (table,) = run("allr", "-r", "4", "-b", "64kb", "-e", "64kb", "-n", "3", "--check",
                       "--custom-replica-group", '{"replica_groups": [[[0, 2], [3, 1]]]}')  # fmt: skip
        self.check_figures(table.rows[0], "allr", 2)

    def test_json_is_the_table(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results.json")
            (table,) = run("redsct", "-r", "2", "-b", "1kb", "-e", "64kb", "-f", "8", "-n", "3", "-c",
                           "--stats", "avg", "p50", "--report-to-json-file", path)  # fmt: skip
            with open(path) as file:
                results = json.load(file)["results"]
            self.assertEqual(os.listdir(folder), ["results.json"])
        self.assertEqual(len(results), len(table.rows))
        for result, row in zip(results, table.rows):
            for title in ("size(B)", "count(elems)"):
                self.assertEqual(result[title], int(row[title]))
            for title in ("time:avg(us)", "time:p50(us)", "algbw(GB/s)", "busbw(GB/s)"):
                self.assertAlmostEqual(result[title], float(row[title]), delta=0.0051)
            self.assertEqual(result["type"], "uint8")
            self.assertEqual(result["op"], "reduce_scatter")
            self.assertEqual(result["wrong"], 0)


if __name__ == "__main__":
    unittest.main()
