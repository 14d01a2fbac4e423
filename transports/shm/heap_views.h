// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "transports/mapped/mapped_transport.h"
#include "transports/setup.h"

// The heaps of other processes. Addresses for all of them are taken at once, so that nobody comes
// to lack them later; each is mapped there when somebody first needs it, once for all communicators
// with its process.
namespace weft::shm {

using namespace transport;

struct OthersHeap {
  Token process = {};
  Fd memory;
  std::size_t bytes = 0;
};

// A view of each.
Status viewHeaps(std::vector<OthersHeap> heaps,
                 std::vector<std::shared_ptr<mapped::PeerHeap>>* views);

}  // namespace weft::shm
