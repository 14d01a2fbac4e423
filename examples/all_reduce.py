# SPDX-License-Identifier: Apache-2.0
import numpy
import weft

with weft.Communicator.from_environment() as comm:
    mine = numpy.array([comm.rank + 1.0])
    total = comm.all_reduce(mine)
    print(f"rank {comm.rank} of {comm.size}: the sum is {total[0]:g}", flush=True)
