/* SPDX-License-Identifier: Apache-2.0 */
/* descent.c: ranks fit y = 3x + 1 together, each on points of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

/* Every call returns a result; what went wrong, where and what to do is weftGetLastError's sentence. */
#define CHECK(call)                                                               \
  do {                                                                            \
    weftResult_t r = (call);                                                      \
    if (r != weftSuccess) {                                                       \
      fprintf(stderr, "%s: %s\n", weftGetErrorString(r), weftGetLastError(comm)); \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)

int main(void) {
  weftComm_t comm = NULL;
  int rank, ranks;
  CHECK(weftCommInitFromEnv(&comm, NULL)); /* who am I? The launcher knows. */
  CHECK(weftCommUserRank(comm, &rank));
  CHECK(weftCommCount(comm, &ranks));

  float weights[2] = {0, 0};
  for (int step = 0; step < 200; ++step) {
    float gradient[2] = {0, 0};
    for (int i = 0; i < 8; ++i) {
      float x = (float)(rank * 8 + i) / (float)(ranks * 8);
      float error = weights[0] * x + weights[1] - (3 * x + 1);
      gradient[0] += error * x / 8;
      gradient[1] += error / 8;
    }
    /* The mean over all ranks, in place. All ranks get the same bits. */
    CHECK(weftAllReduce(gradient, gradient, 2, weftFloat32, weftAvg, comm, NULL, NULL));
    for (int k = 0; k < 2; ++k) weights[k] -= gradient[k];
  }
  if (rank == 0) printf("%d ranks: y = %.2f x + %.2f\n", ranks, weights[0], weights[1]);
  CHECK(weftCommDestroy(comm));
  return 0;
}
