# SPDX-License-Identifier: Apache-2.0
"""Arrays in memory of weftMemAlloc: usable as any other, freed with their last view."""

import gc
import resource
import unittest

import numpy
import weft
from weft import memory


def is_shared(address):
    """Whether the page there is one that processes share."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            begin, end = (int(number, 16) for number in line.split()[0].split("-"))
            if begin <= address < end:
                return line.split()[1][3] == "s"
    return False


class Memory(unittest.TestCase):
    def test_arrays(self):
        made = weft.empty((3, 4), "int32")
        self.assertEqual((made.shape, made.dtype, made.sum()), ((3, 4), numpy.dtype("int32"), 0))
        self.assertEqual(made.ctypes.data % 4096, 0)
        self.assertEqual(weft.empty(5).dtype, numpy.dtype("float32"))
        self.assertEqual(weft.empty(5, weft.DataType.FLOAT64).dtype, numpy.dtype("float64"))
        self.assertEqual(weft.empty(5, "bfloat16").dtype, numpy.dtype("uint16"))
        self.assertEqual(weft.empty((0, 3)).shape, (0, 3))
        self.assertTrue(made.flags.writeable)

    def test_the_last_view_frees(self):
        freed = []
        memory.lib.weftMemFree, original = (
            lambda at: freed.append(original(at)),
            memory.lib.weftMemFree,
        )
        try:
            view = weft.empty(1000)[10:20]
            gc.collect()
            self.assertEqual(freed, [])
            view[:] = 1
            del view
            gc.collect()
            self.assertEqual(freed, [0])
        finally:
            memory.lib.weftMemFree = original

    def test_much_memory_in_a_loop(self):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(100):
            weft.empty(1 << 20)[:1] = 1
        self.assertLess(
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 100 << 10
        )  # KiB

    def test_in_collectives(self):
        def work(comm):
            mine, total = weft.empty(1 << 16, "float64"), weft.empty(1 << 16, "float64")
            mine[:] = comm.rank + 1
            comm.all_reduce(mine, out=total)
            comm.all_reduce(total, out=total, op="max")
            return float(total[-1]), comm.empty(3, "int8").dtype.name

        self.assertEqual(weft.run(work, 3, timeout=30), [(6.0, "int8")] * 3)

    def test_registered_until_it_is_undone(self):
        def work(comm):
            seen = []
            for array in numpy.ones(1 << 16), numpy.ones(1 << 16, "int16"), bytearray(1 << 19):
                page = (numpy.frombuffer(array, "uint8").ctypes.data + 4095) // 4096 * 4096
                undo = comm.register(array)
                seen.append(is_shared(page))
                undo()
                seen.append(is_shared(page))
                undo()  # once more does nothing
            return seen

        self.assertEqual(weft.run(work, 2, timeout=30), [[True, False] * 3] * 2)

    def test_no_memory(self):
        with self.assertRaises(weft.OutOfMemory) as caught:
            weft.empty(1 << 50, "uint8")
        self.assertIsInstance(caught.exception, MemoryError)


if __name__ == "__main__":
    unittest.main()
