// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/deadline.h"
#include "base/status.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/joiner.h"
#include "bootstrap/line.h"

namespace weft::bootstrap {

// How a rank gets a line to its root: in a large world through the hub of its host, which the first
// rank there makes.
class Approach {
 public:
  Approach(const IdContent& id, const Hello& hello, PeerName self, Deadline deadline,
           const JoinOptions& options);

  // Through the hub if there is one in time, else without.
  Status find(Line* line);
  // Without it: it is lost.
  Status findAgain(Line* line) const;

 private:
  bool wantsHub() const;
  Status throughHub(Line* line);
  Status makeHub(net::Socket listener, bool* made);
  static Status direct(Joiner joiner, int rank, std::size_t maxMessage, Line* line);
  Joiner joiner(Deadline deadline) const;

  const IdContent& id_;
  const Hello& hello_;
  const PeerName self_;
  const Deadline deadline_;
  const JoinOptions& options_;
  const std::size_t maxMessage_;
  // A hub that did not answer in time, and may have seen our proof.
  std::unique_ptr<net::Stream> silent_;
};

}  // namespace weft::bootstrap
