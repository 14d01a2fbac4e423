/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as threads, in a program that is built with -fsanitize=thread. It is free of data races;
 * with an argument it has one of its own. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

enum { kRanks = 2, kCount = 20000 };

static weftUniqueId id;
static int noted[kRanks], races, racing;

static void ok(weftResult_t result) {
  if (result == weftSuccess) return;
  fprintf(stderr, "%s\n", weftGetLastError(NULL));
  exit(1);
}

static void note(void* arg) { ++*(int*)arg; }

static float* numbers(float value) {
  size_t i;
  float* made = malloc(kRanks * kCount * sizeof *made);
  if (made == NULL) exit(1);
  for (i = 0; i < kRanks * kCount; ++i) made[i] = value;
  return made;
}

static void check(const float* out, float value) {
  size_t i;
  for (i = 0; i < kCount; ++i)
    if (out[i] != value) exit(1);
}

static void exchange(weftComm_t comm, int rank, const float* in, float* out) {
  ok(weftAllGather(in, out, kCount, weftFloat32, comm, NULL, NULL));
  check(out, 1);
  ok(weftAlltoAll(in, out, kCount, weftFloat32, comm, NULL, NULL));
  check(out, 1);
  ok(weftGroupStart());
  ok(weftSend(in, kCount, weftFloat32, 1 - rank, comm, NULL, NULL));
  ok(weftRecv(out, kCount, weftFloat32, 1 - rank, comm, NULL, NULL));
  ok(weftGroupEnd());
  check(out, (float)(2 - rank));
}

static void queue(weftComm_t comm, int rank, const float* in, float* out) {
  weftStream_t stream;
  noted[rank] = 6;
  ok(weftStreamCreate(&stream));
  ok(weftAllReduce(in, out, kCount, weftFloat32, weftSum, comm, stream, NULL));
  ok(weftStreamCallback(stream, note, &noted[rank]));
  ok(weftStreamSynchronize(stream));
  check(out, 3);
  if (noted[rank] != 7) exit(1);
  ok(weftStreamDestroy(stream));
}

static void* play(void* arg) {
  const int rank = (int)(intptr_t)arg;
  int k;
  weftComm_t comm;
  float *in = numbers((float)(rank + 1)), *out = numbers(0);
  if (racing) ++races;
  ok(weftCommInitRank(&comm, kRanks, id, rank));
  for (k = 0; k < 2; ++k) {
    exchange(comm, rank, in, out);
    queue(comm, rank, in, out);
  }
  ok(weftCommDestroy(comm));
  free(in);
  free(out);
  return NULL;
}

int main(int argc, char** argv) {
  intptr_t r;
  pthread_t threads[kRanks];
  (void)argv;
  racing = argc > 1;
  ok(weftGetUniqueId(&id));
  for (r = 0; r < kRanks; ++r)
    if (pthread_create(&threads[r], NULL, play, (void*)r) != 0) return 1;
  for (r = 0; r < kRanks; ++r) pthread_join(threads[r], NULL);
  puts("done");
  return 0;
}
