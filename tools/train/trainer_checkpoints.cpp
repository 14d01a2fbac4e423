// SPDX-License-Identifier: Apache-2.0
// What a trainer leaves in files, and where it goes on.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "perf/common/report_file.h"
#include "tools/train/agreement.h"
#include "tools/train/checkpoint_folder.h"
#include "tools/train/part_checkpoints.h"
#include "tools/train/position.h"
#include "tools/train/trainer.h"
#include "tools/train/weights/export.h"

namespace weft::train {
namespace {

// The same on all ranks.
struct DamagedCheckpoint : SharedFailure {
  explicit DamagedCheckpoint(const std::string& why) : SharedFailure(Exit::kData, why) {}
};

// A file, if it has a name, that goes at the end of a scope.
struct Removed {
  std::string file;
  ~Removed() { std::remove(file.c_str()); }
};

// What the library wrote, or could not: to all ranks of a part alike.
void checkWritten(weftResult_t result) {
  try {
    check(result);
  } catch (const Error& error) {
    if (result != weftSystemError) throw;
    throw SharedFailure(Exit::kCannotWrite, error.what());
  }
}

void tellWhatServes(const DamagedCheckpoint& damaged, const std::string& before, bool isSetAside) {
  fmt::print(stderr, "weft-train: {}; going on from the one before, {}{}\n", damaged.what(), before,
             isSetAside ? "; the damaged one is kept with the ending .damaged" : "");
}

constexpr int32_t kDamaged = -1;  // beside exit codes

}  // namespace

// Work with the files of this part, whose failure is that of all parts.
void Trainer::inAllParts(const std::function<void()>& work) {
  if (groups_.part().count() == 1) return work();
  int32_t code = 0;
  std::array<char, 1024> why{};
  try {
    work();
  } catch (const SharedFailure& failure) {
    code = dynamic_cast<const DamagedCheckpoint*>(&failure) ? kDamaged : failure.code();
    std::string(failure.what()).copy(why.data(), why.size() - 1);
  }
  std::vector<int32_t> codes(static_cast<size_t>(all_.size()));
  all_.allGather(&code, codes.data(), 1);
  const auto first = std::ranges::find_if(codes, [](int32_t each) { return each != 0; });
  if (first == codes.end()) return;
  all_.broadcast(why.data(), why.data(), why.size(), static_cast<int>(first - codes.begin()));
  if (*first == kDamaged) throw DamagedCheckpoint(why.data());
  throw SharedFailure(static_cast<Exit>(*first), why.data());
}

// Parts are saved side by side: none begins before all have finished the save before, so that there
// is always one that all have.
void Trainer::save(const std::string& folder, bool wait) {
  const bool isThere = std::exchange(saved_, ended_) == ended_;
  if (isThere && wait) inAllParts([&] { checkWritten(weftShardSaveWait(shard_)); });
  if (isThere) return;
  const std::string own = folderOfPart(folder, groups_.part()), meta = metaOfSave();
  inAllParts([&] { checkWritten(weftShardSave(shard_, own.c_str(), meta.c_str(), wait ? 0 : 1)); });
}

// What a checkpoint says of itself; of one of several parts, also which save it is.
std::string Trainer::metaOfSave() {
  if (groups_.part().count() == 1) return textOf(position());
  inAllParts([&] { checkWritten(weftShardSaveWait(shard_)); });
  auto now = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  all_.allReduce(&now, 1, weftMax);
  auto meta = nlohmann::json::parse(textOf(position()));
  meta["save"] = now;
  if (const PipelineStage& stage = groups_.part().stage; stage.count > 1)
    meta["blocks"] = blocksOfRuns(options_.shape, stage);
  return meta.dump();
}

// The last save before `end` that all parts have, which is the last one of all from here on; 0 = none.
uint64_t Trainer::takeSave(const std::string& folder, uint64_t end) {
  uint64_t save = 0;
  onRankZero(all_, [&] {
    save = lastSaveOfAll(folder, groups_.part(), end).value_or(0);
    if (save > 0) goBackTo(folder, groups_.part(), save);
  });
  all_.broadcast(&save, &save, 1);
  return save;
}

std::string Trainer::load(const std::string& checkpoint, bool state) {
  std::array<char, 4096> meta{};
  try {
    const auto load = state ? weftShardLoad : weftShardLoadWeights;
    check(load(shard_, checkpoint.c_str(), meta.data(), meta.size()));
  } catch (const Error& error) {
    if (error.result() == weftSystemError) throw DamagedCheckpoint(error.what());
    if (error.result() != weftInvalidArgument) throw;
    throw SharedFailure(Exit::kData, error.what());
  }
  return meta.data();
}

// The last one, or if that is damaged the one before: some steps are made again, to the same end.
std::string Trainer::loadLastGood(const std::string& folder, bool state) {
  if (groups_.part().count() > 1) return loadLastGoodParts(folder, state);
  try {
    return load(folder, state);
  } catch (const DamagedCheckpoint& damaged) {
    std::array<char, 4096> before{};
    if (all_.rank() == 0) checkpointBeforeLast(folder).copy(before.data(), before.size() - 1);
    all_.broadcast(before.data(), before.data(), before.size());
    if (before[0] == 0) throw;
    const std::string meta = load(before.data(), state);
    onRankZero(all_, [&] {
      tellWhatServes(damaged, before.data(),
                     isSameFolder(folder, options_.save) && setLastAside(folder));
    });
    return meta;
  }
}

std::string Trainer::loadLastGoodParts(const std::string& folder, bool state) {
  const ModelPart own = groups_.part();
  std::string path, meta;
  const auto loadAll = [&](uint64_t save) {
    inAllParts([&] { meta = load(path = pathOfSave(folder, own, save), state); });
  };
  const uint64_t last = takeSave(folder, std::numeric_limits<uint64_t>::max());
  try {
    loadAll(last);
  } catch (const DamagedCheckpoint& damaged) {
    const uint64_t before = takeSave(folder, last);
    if (before == 0) throw;
    loadAll(before);
    onRankZero(all_, [&] {
      tellWhatServes(damaged, path,
                     isSameFolder(folder, options_.save) && setAside(folder, own, last));
    });
  }
  return meta;
}

Position Trainer::position() const {
  Position here{ended_, ended_ + dataAhead_, globalBatch(), fmt::format("{:016x}", data_), order_};
  if (lossScale_) here.lossScale = lossScale_->state();
  return here;
}

void Trainer::resume(const std::string& folder) {
  goOn(folder, {.state = true, .schedule = true, .data = true});
  if (isSameFolder(folder, options_.save)) saved_ = ended_;
}

void Trainer::goOn(const std::string& folder, const Kept& kept) {
  const Position stored = positionOf(loadLastGood(folder, kept.state), folder);
  if (kept.data) checkPosition(stored, position(), folder);
  ended_ = kept.schedule ? stored.step : 0;
  if (kept.state && stored.lossScale && lossScale_) lossScale_->resume(*stored.lossScale);
  dataAhead_ = (kept.data ? stored.position : 0) - ended_;
  ahead_.startAt(static_cast<uint64_t>((ended_ + dataAhead_) * options_.accumulate));
}

// Rank 0 writes it, of what the first rank with each part has written aside under the names that the
// shard knows.
void Trainer::exportTo(const std::string& file) {
  const bool writes = groups_.data().rank() == 0;
  const std::string target = writes ? tools::ReportFile(file).target() : file;
  const auto asideOf = [&](int64_t part) { return fmt::format("{}.weft{}", target, part); };
  const ModelPart own = groups_.part();
  const std::string aside = asideOf(own.index());
  const Removed afterwards{writes ? aside : ""};
  inAllParts([&] { checkWritten(weftShardExport(shard_, aside.c_str(), 1)); });
  onRankZero(all_, [&] {
    std::vector<std::string> parts;
    for (int64_t part = 0; part < own.count(); ++part) parts.push_back(asideOf(part));
    exportWeights(parts, static_cast<size_t>(own.tensor.count), target, options_.shape);
  });
}

}  // namespace weft::train
