// SPDX-License-Identifier: Apache-2.0
// Measures one pair of ranks: the time there and back of 8 bytes, then data in one direction and in
// the other, every word of which is checked.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/health/crew.h"
#include "tools/health/matrix.h"
#include "tools/health/pattern.h"

namespace weft::health {

class PairProbe {
 public:
  // `seconds`: how long data should flow in each direction, if the link was as fast as it last was.
  PairProbe(Crew& crew, std::uint64_t seed, double seconds);

  // What this rank sees of the link to the peer, which must call the same at about the same time:
  // the latency, the rate at which it sends, and what it received wrong, which is to be counted for
  // the link from the peer.
  struct View {
    double microseconds = 0;
    double gigabytes = 0;
    double wrong = 0;
  };
  View measure(int peer);

 private:
  double pingPong(int peer, bool first, double* wrong);
  std::uint64_t piecesFor(int peer, double rate) const;
  double sendData(int peer);
  double receiveData(int peer);

  Crew& crew_;
  double seconds_;
  std::uint64_t seed_;
  std::vector<std::uint64_t> out_;
  std::vector<std::uint64_t> in_;
  std::vector<double> rates_;  // to each peer, bytes per second, as last seen; 0: not yet
};

}  // namespace weft::health
