// SPDX-License-Identifier: Apache-2.0
#include "trials.h"

namespace weft::testing {
namespace {

constexpr int kTimeoutMs = 40000 * kSlowdown;

}  // namespace

weftResult_t create(Actor& a) { return create(a, a.ids[0], &a.r.comm); }

weftResult_t create(Actor& a, const weftUniqueId& id, weftComm_t* comm) {
  weftConfig_t config = configOf({Kind::Processes, a.r.ranks, a.transport, kTimeoutMs});
  if (a.initTimeoutMs != 0) config.initTimeoutMs = a.initTimeoutMs;
  return weftCommInitRankConfig(comm, a.r.ranks, id, a.r.rank, &config);
}

void allReduce(Actor& a, weftComm_t comm, weftStream_t stream) {
  Numbers& n = a.numbers;
  a.does(weftAllReduce(n.in.data(), n.out.data(), kNumbers, weftFloat32, weftSum, comm, stream,
                       nullptr));
  if (stream != nullptr) a.does(weftStreamSynchronize(stream));
  if (a.act == weftSuccess) a.steps.expect(n.are(3), "a wrong sum");
}

weftResult_t makeShard(Actor& a, weftShard_t* shard) {
  const weftShardConfig_t config = shardConfig(weftFloat32);
  return weftShardCreate(shard, a.r.comm, a.model.data(), a.model.size(), &config);
}

void trainOnce(Actor& a, weftShard_t shard) {
  const weftStepArgs_t args = stepArgs();
  if (!a.does(weftShardStart(shard, 0)) || !a.does(weftStepBegin(shard, &args))) return;
  for (std::size_t p = a.model.size(); p-- > 0;)
    if (isTrained(a.model[p]) && !a.does(weftGradReady(shard, p))) return;
  if (a.does(weftGradDone(shard))) a.does(weftStepWait(shard, nullptr));
}

void playSplit(Actor& a, const Armed& armed) {
  weftComm_t half = nullptr;
  armed();
  if (a.does(weftCommSplit(a.r.comm, 0, a.r.rank, &half, nullptr))) allReduce(a, half);
  weftCommDestroy(half);
}

void playSplitById(Actor& a, const Armed& armed) {
  weftConfig_t config = WEFT_CONFIG_INITIALIZER;
  config.transport = "shm";
  weftComm_t half = nullptr;
  armed();
  if (a.does(weftCommSplit(a.r.comm, 0, a.r.rank, &half, &config))) allReduce(a, half);
  weftCommDestroy(half);
}

bool Meeting::meet(int round) {
  arrived.fetch_add(1);
  for (const double start = nowMs(); arrived.load() < kActors * round;) {
    if (nowMs() - start > 60000) return false;
    sleepMs(0.05);
  }
  return true;
}

std::string Trial::run(int victim) {
  for (std::int64_t n = victim == rank_ ? fault_.first : 0; !meeting_.over;) {
    const std::string failed = round(n);
    if (!failed.empty()) return "number " + std::to_string(n) + ": " + failed;
    last_ = n;
    if (n != 0 && (n = fault_.next(n, meeting_.injected)) == 0) meeting_.over = true;
    if (!meet()) return "the other rank did not end";
  }
  return "";
}

std::string Trial::round(std::int64_t n) {
  Actor a{.r = {rank_, kActors, nullptr},
          .ids = meeting_.ids,
          .transport = scene_.transport,
          .initTimeoutMs = scene_.initTimeoutMs};
  if (rank_ == 0) {
    for (std::size_t i = 0; i < scene_.ids; ++i)
      a.steps.ok(weftGetUniqueId(&meeting_.ids[i]), "make an id");
    meeting_.injected = false;
  }
  if (!meet()) return "the other rank did not come";
  if (!scene_.creates) a.steps.ok(create(a), "create");
  double start = 0;
  scene_.play(a, [&] {
    meet();
    start = nowMs();
    fault_.begin(n);
  });
  if (n > 0 && fault_.end()) meeting_.injected = true;
  const double took = nowMs() - start;
  meeting_.failed[rank_] = a.act != weftSuccess;
  if (a.act != weftSuccess) a.said = outcome(a.act, a.r.comm);
  if (!meet()) return "the other rank did not come back";
  if (!meeting_.injected) a.steps.ok(a.act, "none failed: " + a.said);
  if (scene_.endsAlike && meeting_.failed[0] != meeting_.failed[1])
    a.steps.expect(false, "failed on one rank alone: " + a.said);
  if (const std::string also = check_ ? check_(a) : ""; !also.empty()) a.steps.expect(false, also);
  a.steps.expect(took < scene_.initTimeoutMs + kPromptMs, "took " + std::to_string(took) + " ms");
  weftCommDestroy(a.r.comm);
  if (!meet()) return "the other rank did not end";
  return a.steps.failed();
}

}  // namespace weft::testing
