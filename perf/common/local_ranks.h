// SPDX-License-Identifier: Apache-2.0
// A launcher for the ranks of one host, for tools that offer --ranks N.
#pragma once

#include <functional>
#include <span>
#include <string>

namespace weft::tools {

struct EnvVar {
  std::string name;
  std::string value;
};

// Runs this program n times, as ranks 0..n-1 of one communicator, and waits for all.
//
// Each copy gets `argv` without --ranks (as "--ranks N" or "--ranks=N"), the environment of this
// process, `extra`, and what weftCommInitFromEnv reads: WEFT_RANK, WEFT_SIZE, WEFT_LOCAL_RANK,
// WEFT_LOCAL_SIZE, WEFT_ROOT (a free port of 127.0.0.1) and WEFT_SECRET (random, new for each run).
//
// Returns 0 if all ranks did. Otherwise the first failure is the culprit, except that exit code 75
// ("a peer was lost") gives way to any other; the rest get a few seconds to end by themselves, then
// SIGTERM, then SIGKILL. One line on stderr names the culprit, unless all ranks ended with the same
// code by themselves, and its exit code is returned (128 + signal if it was killed). SIGINT and
// SIGTERM are passed on to the ranks, which get 25 s, less than schedulers leave this process, to
// save what they have; if all then end with one code by themselves, that is returned, else 128 +
// signal. If this process dies, so do the ranks. SIGCHLD, SIGINT and SIGTERM are blocked meanwhile, so call it from the main thread, before
// other threads exist. A failure to start is reported as 71.
int runLocalRanks(int n, char** argv, std::span<const EnvVar> extra = {});

// The same, but each rank is a fork of this process that ends with what `rank`, given the arguments,
// returns: what this process has loaded is loaded once for all of them.
using RankFunction = std::function<int(int argc, char** argv)>;
int forkLocalRanks(int n, char** argv, const RankFunction& rank);

}  // namespace weft::tools
