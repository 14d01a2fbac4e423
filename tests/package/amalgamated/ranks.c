/* SPDX-License-Identifier: Apache-2.0 */
/* Four ranks as processes of this program, with the library by its header WEFT_HEADER.
 *   ranks        prints fingerprints of what collectives give, for every type and operation: libweft and
 *                weft_amalgamated.cpp must print the same; then what ranks that call different things are told
 *   ranks with OTHER   the same, where ranks 1 and 3 are of the program OTHER
 *   ranks time   prints the time of an all-reduce between two, in us */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include WEFT_HEADER

enum { kRanks = 4, kMost = 20011, kSizeOfMost = 8 };

static weftComm_t comm;
static int rank;
static unsigned char in[kMost * kSizeOfMost], out[kRanks * kMost * kSizeOfMost];

static void ok(weftResult_t result) {
  if (result == weftSuccess) return;
  fprintf(stderr, "rank %d: %s\n", rank, weftGetLastError(comm));
  exit(1);
}

/* Any bits, among floats all kinds of numbers; the same from run to run. */
static void fill(uint64_t seed) {
  uint64_t state = 88172645463325252u + 0x9E3779B97F4A7C15u * (seed + 1);
  size_t i;
  for (i = 0; i < sizeof in; ++i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    in[i] = (unsigned char)(state >> 32);
  }
}

static uint64_t fingerprint(size_t bytes) {
  uint64_t hash = 14695981039346656037u;
  size_t i;
  for (i = 0; i < bytes; ++i) hash = (hash ^ out[i]) * 1099511628211u;
  return hash;
}

/* Says what this rank has; all must have the same. */
static void say(const char* what, int type, int op, size_t count, size_t bytes) {
  uint64_t mine = fingerprint(bytes), all[kRanks];
  int r;
  ok(weftAllGather(&mine, all, 1, weftUint64, comm, NULL, NULL));
  for (r = 0; r < kRanks; ++r)
    if (all[r] != mine) fprintf(stderr, "rank %d and %d differ: %s\n", rank, r, what), exit(1);
  if (rank == 0)
    printf("%s type %d op %d count %zu: %016llx\n", what, type, op, count,
           (unsigned long long)mine);
}

static void collectives(weftDataType_t type, size_t size, size_t count) {
  static const unsigned char twos[10][8] = {
      {2},      {2}, {2}, {2}, {2}, {2}, {0, 0x40}, {0, 0, 0, 0x40}, {0, 0, 0, 0, 0, 0, 0, 0x40},
      {0, 0x40}};
  const int isFloat = type >= weftFloat16;
  weftRedOp_t twice;
  int op;
  for (op = weftSum; op <= (isFloat ? weftAvg : weftBxor); ++op) {
    ok(weftAllReduce(in, out, count, type, (weftRedOp_t)op, comm, NULL, NULL));
    say("all-reduce", type, op, count, count * size);
  }
  ok(weftRedOpCreatePreMulSum(&twice, twos[type], type, comm));
  ok(weftAllReduce(in, out, count, type, twice, comm, NULL, NULL));
  ok(weftRedOpDestroy(twice, comm));
  say("all-reduce", type, weftNumOps, count, count * size);
  ok(weftAllGather(in, out, count, type, comm, NULL, NULL));
  say("all-gather", type, 0, count, kRanks * count * size);
  ok(weftBroadcast(in, out, count, type, 2, comm, NULL, NULL));
  say("broadcast", type, 0, count, count * size);
}

static void check(void) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2}, counts[] = {1, 13, 1000, kMost};
  size_t type, c;
  for (c = 0; c < sizeof counts / sizeof *counts; ++c)
    for (type = 0; type < weftNumTypes; ++type) {
      fill((uint64_t)rank + kRanks * (type + weftNumTypes * c));
      collectives((weftDataType_t)type, sizes[type], counts[c]);
    }
}

static void mismatch(void) {
  weftResult_t result = rank == 1
                            ? weftBroadcast(in, out, 3, weftFloat32, 0, comm, NULL, NULL)
                            : weftAllReduce(in, out, 3, weftFloat32, weftSum, comm, NULL, NULL);
  const char* said = weftGetLastError(comm);
  if (result != weftMismatch || !strstr(said, "all_reduce") || !strstr(said, "broadcast"))
    fprintf(stderr, "rank %d: %s: %s\n", rank, weftGetErrorString(result), said), exit(1);
  if (rank == 0) printf("%s\n", weftGetErrorString(result));
}

static double nowUs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* The median of rounds of calls. */
static void measure(size_t bytes, int calls) {
  enum { kRounds = 21 };
  double rounds[kRounds], begin;
  float *from = calloc(1, bytes), *to = calloc(1, bytes);
  int i, k;
  if (!from || !to) exit(1);
  for (i = -2; i < kRounds; ++i) {
    ok(weftBarrier(comm, NULL, NULL));
    begin = nowUs();
    for (k = 0; k < calls; ++k)
      ok(weftAllReduce(from, to, bytes / 4, weftFloat32, weftSum, comm, NULL, NULL));
    if (i >= 0) rounds[i] = (nowUs() - begin) / calls;
  }
  qsort(rounds, kRounds, sizeof *rounds, compare);
  if (rank == 0) printf("%zu %.2f\n", bytes, rounds[kRounds / 2]);
  free(from);
  free(to);
}

/* With the id from rank 0, which writes it to the pipe for the others. */
static void runRank(int ranks, const int* toAll) {
  weftConfig_t config = WEFT_CONFIG_INITIALIZER;
  weftUniqueId id;
  int r;
  config.initTimeoutMs = config.timeoutMs = 60000;
  config.reproducible = ranks == kRanks;
  if (rank == 0) {
    ok(weftGetUniqueId(&id));
    for (r = 1; r < ranks; ++r)
      if (write(toAll[1], &id, sizeof id) != sizeof id) exit(1);
  } else if (read(toAll[0], &id, sizeof id) != sizeof id) {
    exit(1);
  }
  ok(weftCommInitRankConfig(&comm, ranks, id, rank, &config));
  if (ranks == kRanks) {
    check();
    mismatch();
  } else {
    measure(8, 2000);
    measure(64 << 10, 200);
    measure(4 << 20, 10);
  }
  weftCommDestroy(comm);
  exit(fflush(stdout) == 0 ? 0 : 1);
}

/* ranks join RANK: the id comes from the standard input. */
static void join(const char* asRank) {
  const int fromInput[2] = {0, -1};
  rank = atoi(asRank);
  runRank(kRanks, fromInput);
}

static void start(int ranks, const int* toAll, char* other) {
  char digit[] = {(char)('0' + rank), 0};
  char* const arguments[] = {other, "join", digit, NULL};
  if (other == NULL || rank % 2 == 0) runRank(ranks, toAll);
  if (dup2(toAll[0], 0) == 0) execv(other, arguments);
  exit(1);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const int ranks = strcmp(what, "time") == 0 ? 2 : kRanks;
  int toAll[2], failed = 0, status, r;
  if (strcmp(what, "join") == 0 && argc == 3) join(argv[2]);
  if (pipe(toAll) != 0) return 1;
  for (rank = 0; rank < ranks; ++rank)
    if (fork() == 0) start(ranks, toAll, argc > 2 ? argv[2] : NULL);
  for (r = 0; r < ranks; ++r) failed |= wait(&status) < 0 || status != 0;
  return failed;
}
