/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <weft/weft.h>

/* Adds up 1, 2, ... over the ranks that a launcher started; without a launcher, one rank alone. */
int main(void) {
  weftComm_t comm = NULL;
  int rank = 0, ranks = 0;
  weftResult_t result = weftCommInitFromEnv(&comm, NULL);
  if (result == weftSuccess) result = weftCommUserRank(comm, &rank);
  if (result == weftSuccess) result = weftCommCount(comm, &ranks);

  float mine = (float)(rank + 1), sum = 0;
  if (result == weftSuccess)
    result = weftAllReduce(&mine, &sum, 1, weftFloat32, weftSum, comm, NULL, NULL);

  if (result == weftSuccess)
    printf("rank %d of %d: the sum is %g\n", rank, ranks, sum);
  else
    fprintf(stderr, "%s: %s\n", weftGetErrorString(result), weftGetLastError(comm));
  weftCommDestroy(comm);
  return result == weftSuccess && fflush(stdout) == 0 ? 0 : 1;
}
