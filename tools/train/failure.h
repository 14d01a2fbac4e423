// SPDX-License-Identifier: Apache-2.0
// How weft-train fails: one sentence, and an exit code that tells a job queue whether to try again.
#pragma once

#include <stdexcept>
#include <string>

namespace weft::train {

enum class Exit : int {
  kUsage = 64,           // the command line is wrong
  kData = 65,            // the text, the numbers or the ranks' agreement on them are wrong
  kInternal = 70,        // a bug in weft
  kCannotWrite = 73,     // a result could not be written
  kPeerLost = 75,        // a peer, the network or a host was lost: worth a retry
  kAuthentication = 77,  // a rank did not know the job's secret
  kConfiguration = 78,   // this machine or its settings are not fit
};

class Failure : public std::runtime_error {
 public:
  Failure(Exit code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  int code() const { return static_cast<int>(code_); }

 private:
  Exit code_;
};

}  // namespace weft::train
