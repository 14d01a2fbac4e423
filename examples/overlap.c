/* SPDX-License-Identifier: Apache-2.0 */
/* overlap.c: a sum of 64 MiB beside computing, in memory that all ranks of the host reach. */
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

#define CHECK(call)                                                               \
  do {                                                                            \
    weftResult_t r = (call);                                                      \
    if (r != weftSuccess) {                                                       \
      fprintf(stderr, "%s: %s\n", weftGetErrorString(r), weftGetLastError(comm)); \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)

int main(void) {
  const size_t count = 16 << 20;
  weftComm_t comm = NULL;
  weftStream_t stream;
  float* data;
  int ranks;
  CHECK(weftCommInitFromEnv(&comm, NULL));
  CHECK(weftCommCount(comm, &ranks));
  CHECK(weftMemAlloc((void**)&data,
                     count * sizeof(float))); /* malloc's memory works as well, slower */
  for (size_t i = 0; i < count; ++i) data[i] = 1;

  CHECK(weftStreamCreate(&stream)); /* a queue of calls, with a thread of its own */
  CHECK(weftAllReduce(data, data, count, weftFloat32, weftSum, comm, stream, NULL));
  double other = 0; /* returns at once: time for something else */
  for (int i = 1; i < 1000000; ++i) other += 1.0 / i;
  CHECK(weftStreamSynchronize(stream));

  printf("%g of %d ranks, and %.3f meanwhile\n", data[count - 1], ranks, other);
  CHECK(weftStreamDestroy(stream));
  CHECK(weftCommDestroy(comm));
  CHECK(weftMemFree(data));
  return 0;
}
