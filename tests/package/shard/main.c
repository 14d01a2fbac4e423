/* SPDX-License-Identifier: Apache-2.0 */
/* The sharded optimizer from C99: one step of SGD on one rank. And an error as data. */
#include <stdio.h>
#include <weft/shard.h>

#define CHECK(call)                                            \
  do {                                                         \
    if ((call) != weftSuccess) {                               \
      fprintf(stderr, "%s: %s\n", #call, weftGetLastError(0)); \
      return 1;                                                \
    }                                                          \
  } while (0)

int main(void) {
  const weftParam_t params[] = {{"weight", 100, 0, -1, NULL, 0},
                                {"bias", 1, WEFT_PARAM_NO_DECAY, -1, NULL, 0}};
  weftShardConfig_t config = WEFT_SHARD_CONFIG_INITIALIZER;
  weftStepArgs_t args = WEFT_STEP_ARGS_INITIALIZER;
  weftStepStats_t stats = {sizeof(stats), 0, 0, 0, 0, 0, 0, 0};
  weftErrorInfo_t error = WEFT_ERROR_INFO_INITIALIZER;
  weftComm_t comm = NULL;
  weftShard_t shard = NULL;
  void *weight = NULL, *gradient = NULL;
  config.paramType = config.gradType = config.wireType = weftFloat32;
  config.optimizer = weftOptSgd;
  args.learningRate = 0.5;
  if (weftCommCount(NULL, NULL) != weftInvalidArgument) return 1;
  CHECK(weftGetLastErrorInfo(NULL, &error));
  if (error.result != weftInvalidArgument || error.rank != -1 || error.message[0] == 0) return 1;
  CHECK(weftCommInitAll(&comm, 1, NULL));
  CHECK(weftShardCreate(&shard, comm, params, 2, &config));
  CHECK(weftShardBuffers(shard, 0, &weight, &gradient));
  ((float *)weight)[99] = 3;
  CHECK(weftShardStart(shard, 0));
  CHECK(weftStepBegin(shard, &args));
  ((float *)gradient)[99] = 2;
  CHECK(weftGradReady(shard, 1));
  CHECK(weftGradReady(shard, 0));
  CHECK(weftGradDone(shard));
  CHECK(weftStepWait(shard, &stats));
  printf("weight %g, gradient norm %g\n", ((float *)weight)[99], stats.gradientNorm);
  if (((float *)weight)[99] != 2 || stats.gradientNorm != 2) return 1;
  CHECK(weftShardDestroy(shard));
  CHECK(weftCommDestroy(comm));
  return 0;
}
