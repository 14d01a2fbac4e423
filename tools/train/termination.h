// SPDX-License-Identifier: Apache-2.0
// SIGTERM is how schedulers announce that they will soon end a job.
#pragma once

namespace weft::train {

// From here on SIGTERM ends this process at once with Exit::kPeerLost, by which a scheduler tries
// again what it has ended; but see below.
void endWithRetryOnSigterm();

// From here on SIGTERM waits, also for a program that this process becomes by exec: until the call above.
void holdSigterm();

// While one lives SIGTERM is only noted: there is work to save first.
class DeferSigterm {
 public:
  DeferSigterm();
  DeferSigterm(const DeferSigterm&) = delete;
  DeferSigterm& operator=(const DeferSigterm&) = delete;
  ~DeferSigterm();

  static bool hasCome();
};

}  // namespace weft::train
