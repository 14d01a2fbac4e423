/* SPDX-License-Identifier: Apache-2.0 */
/* A program of MPI: adds up 1, 2, ... over its ranks. mpirun -n 2 weft-mpi ./mpi_sum runs the sum on weft. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank = 0, ranks = 0;
  float mine = 0, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  mine = (float)(rank + 1);
  MPI_Allreduce(&mine, &sum, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("the sum of %d ranks is %g\n", ranks, (double)sum);
  return MPI_Finalize();
}
