// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "bootstrap/root_service.h"
#include "bootstrap/unique_id.h"

namespace weft {

// Starts the root of an id that is an agreed address, in rank 0. It listens at those of the id's
// addresses that this host has. If it has none (a name that means 127.0.1.1 here and something else
// elsewhere, an address behind a translation), it listens where createUniqueId would. *listening is one
// of the addresses.
//
// OK also if somebody listens there already: if it is another rank 0 of this very communicator, its
// root will tell everybody that there are two; if not, joining fails and says who answered.
Status startAgreedRoot(const IdContent& id, const RootOptions& options, Address* listening);

}  // namespace weft
