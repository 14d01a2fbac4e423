// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>
#include <weft/weft.hpp>

#include "base.h"

namespace weft::pytorch {

// A timeout as weft takes it.
int inWeft(Milliseconds timeout);

// Who a process group is: what torch gives to whoever makes one.
struct Identity {
  c10::intrusive_ptr<c10d::Store> store;  // of this group alone, by its prefix
  int rank = 0;
  int size = 1;
  Milliseconds timeout{};
  std::string name;  // in messages
  int timeoutMs() const { return inWeft(timeout); }
};

// Ranks meet by a unique id of weft that the first of them leaves in the store under `key`, and takes away when all have
// joined, so that a later group of the same name finds its own.
Communicator meetAsFirst(const Identity& who, int ranks, const std::string& key,
                         const std::string& name);
// Waits for the id, so long or until `stop`. While it waits, it asks the store now and then instead of in
// one long question, which would keep the store from all other threads of this process.
Communicator meetAsOther(const Identity& who, int ranks, int rank, const std::string& key,
                         const std::string& name, Milliseconds patience,
                         const std::atomic<bool>& stop);

// Joins all ranks of the group.
Communicator joinGroup(const Identity& who);

// std::runtime_error, which Python sees as RuntimeError: what torch's store says, and what to do.
[[noreturn]] void blameStore(const Identity& who, const std::string& doing,
                             const std::exception& error);

}  // namespace weft::pytorch
