// SPDX-License-Identifier: Apache-2.0
#include "tools/train/run_rank.h"

#include <fmt/format.h>

#include <new>

#include "perf/common/report_file.h"
#include "tools/train/agreement.h"
#include "tools/train/launched_scaling.h"
#include "tools/train/models/libtorch_error.h"
#include "tools/train/parts_of_model.h"
#include "tools/train/train.h"

namespace weft::train {
namespace {

Exit exitCodeOf(weftResult_t result) {
  switch (result) {
    case weftRemoteError:
    case weftTimeout:
    case weftAborted:
      return Exit::kPeerLost;
    case weftMismatch:
      return Exit::kData;
    case weftInternalError:
      return Exit::kInternal;
    case weftAuthentication:
      return Exit::kAuthentication;
    default:
      return Exit::kConfiguration;
  }
}

// The first of a team speaks for all of it. A launcher that sees a rank end with an error ends the
// others: not before that one has spoken.
int tell(const SharedFailure& failure, Communicator& world, Communicator& team) {
  const bool alone = team.size() < world.size();
  const std::string who = alone ? fmt::format("rank {} alone: ", world.rank()) : "";
  if (team.rank() == 0) fmt::print(stderr, "weft-train: {}{}\n", who, failure.what());
  try {
    team.barrier();
  } catch (const Error&) {  // a rank died after all; everything has been said
  }
  return failure.code();
}

// A training, or a table of several, as the only work of this process.
int run(const Options& options, Communicator& world) {
  try {
    if (!options.scaling.empty()) {
      scaleOnLaunchedRanks(options, world);
      return 0;
    }
    onRankZero(world, [&] { static_cast<void>(forRanks(options, world.size())); });
  } catch (const SharedFailure& failure) {
    return tell(failure, world, world);
  }
  Summary summary;
  return trainOn(forRanks(options, world.size()), world, &summary);
}

}  // namespace

int trainOn(const Options& options, Communicator& ranks, Summary* summary) {
  const int copy = ranks.rank() / static_cast<int>(anyPartOf(options).count());  // of the model
  Communicator alone = options.independent ? ranks.split(copy, ranks.rank()) : Communicator();
  Communicator& team = options.independent ? alone : ranks;
  try {
    const int code = train(options, ranks, team, summary);
    ranks.finalize();
    return code;
  } catch (const SharedFailure& failure) {
    return tell(failure, ranks, team);
  }
}

int runRank(const Options& options) {
  int rank = 0;
  const auto fail = [&](Exit code, const std::string& sentence) {
    fmt::print(stderr, "weft-train: rank {}: {}\n", rank, sentence);
    return static_cast<int>(code);
  };
  try {
    Communicator world = Communicator::fromEnvironment();
    rank = world.rank();
    return run(options, world);
  } catch (const Failure& failure) {
    return fail(static_cast<Exit>(failure.code()), failure.what());
  } catch (const tools::CannotWrite& error) {
    return fail(Exit::kCannotWrite, error.what());
  } catch (const Error& error) {
    return fail(exitCodeOf(error.result()), error.what());
  } catch (const c10::Error& error) {
    const Failure failure = failureOf(error);
    return fail(static_cast<Exit>(failure.code()), failure.what());
  } catch (const std::bad_alloc&) {
    return fail(Exit::kConfiguration, "there is no memory left; lower --seq, --batch or the model");
  } catch (const std::exception& error) {
    return fail(Exit::kInternal, error.what());
  }
}

}  // namespace weft::train
