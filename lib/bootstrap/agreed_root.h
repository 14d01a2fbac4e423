// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/status.h"
#include "bootstrap/root_service.h"
#include "bootstrap/unique_id.h"

namespace weft {

// The root of an id that is an agreed address, in the process of rank 0. It listens at those of the
// id's addresses that this host has. If it has none (a name that means 127.0.1.1 here and something
// else elsewhere, an address behind a translation), it listens where createUniqueId would.
class AgreedRoot {
 public:
  AgreedRoot(const IdContent& id, const RootOptions& options) : id_(id), options_(options) {}

  // Starts it unless it is running, and adds where it listens to *addresses.
  //
  // OK also while somebody else listens there: if that is another rank 0 of this very communicator,
  // its root will tell everybody that there are two; a meeting that is just ending will make room
  // for the next call; and a stranger shows when we try to join.
  Status start(std::vector<Address>* addresses);

 private:
  IdContent id_;
  RootOptions options_;
  bool done_ = false;
  bool saidBusy_ = false;
};

}  // namespace weft
