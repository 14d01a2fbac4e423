// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "watch/watch.h"

namespace weft::simulation {

// The end of a call, as comm/communicator.cpp makes it.
inline Status settle(watch::Watch& watch, const Status& status) {
  if (status.ok()) {
    watch.leave();
    return status;
  }
  const Status firstError =
      status.code() == Code::RemoteError ? watch.lost(status) : watch.declare(status);
  watch.leave();
  watch.awaitOthers();
  return firstError;
}

}  // namespace weft::simulation
