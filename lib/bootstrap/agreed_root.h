// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "bootstrap/root_service.h"
#include "bootstrap/unique_id.h"

namespace weft::bootstrap {

// The root of an id that is an agreed address, in the process of rank 0. It listens at those of the
// id's addresses that this host has. If it has none (a name that means 127.0.1.1 here and something
// else elsewhere, an address behind a translation), it listens where createUniqueId would.
class AgreedRoot {
 public:
  AgreedRoot(const IdContent& id, const RootOptions& options) : id_(id), options_(options) {}

  // Starts it unless it is running, and adds where it listens to *addresses.
  //
  // OK also while somebody else listens there: if that is another rank 0 of this very communicator,
  // its root will tell everybody that there are two; a rendezvous that is just ending will make
  // room for the next call; and a foreign server shows when we try to join.
  Status start(std::vector<net::Address>* addresses);
  // Where it cannot listen, as somebody else does; empty if there is no such place.
  const std::string& taken() const { return taken_; }

 private:
  IdContent id_;
  RootOptions options_;
  bool done_ = false;
  std::string taken_;
};

}  // namespace weft::bootstrap
