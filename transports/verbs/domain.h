// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "transports/verbs/port.h"
#include "transports/wire/wire.h"

namespace weft::verbs {

using namespace wire;

// An object of libibverbs and the function that destroys it.
template <class Thing>
using Owned = std::unique_ptr<Thing, int (*)(Thing*)>;

// Registered memory, as a peer must know it to write there.
struct RemoteRegion {
  std::uint64_t at = 0;
  std::uint64_t bytes = 0;
  std::uint64_t key = 0;
};

// Tells by a descriptor that completions have come.
class Channel {
 public:
  explicit Channel(Device& device);
  Status open();

  ibv_comp_channel* get() const { return channel_.get(); }
  int descriptor() const { return channel_->fd; }
  // The next completion of these queues makes descriptor() readable. What is there already does not.
  bool notify(std::span<const Owned<ibv_cq>> queues);

 private:
  Device& device_;
  Owned<ibv_comp_channel> channel_;
};

using RemoteRegions = std::array<RemoteRegion, kWireRegions>;  // by WireRegion

// A communicator's memory, registered with one device.
class Memory {
 public:
  RemoteRegions regions() const;
  // The key for sending from there.
  std::uint32_t localKey(const std::byte* memory) const {
    std::size_t i = 0;
    while (i + 1 < memory_.size() && !contains(memory_[i], memory, 1)) ++i;
    return registered_[i]->lkey;
  }

 private:
  friend class Domain;
  Regions memory_;
  std::vector<Owned<ibv_mr>> registered_;  // as memory_
};

// Protection domain, registered memory and completion queues of a rank on one device.
class Domain {
 public:
  // `devices` registers the same memory, for the error that says how much may be locked.
  static Status open(std::shared_ptr<Device> device, const Regions& memory, std::size_t devices,
                     std::unique_ptr<Domain>* out);

  Device& device() const { return *device_; }
  const Library& verbs() const { return device_->verbs(); }
  ibv_pd* protection() const { return protection_.get(); }
  // That of whoever has opened it, and of others.
  const Memory& memory() const { return memory_; }
  Status add(const Regions& regions, Memory* out);
  // The error of memory that could not be registered, by errno.
  Status unregistered(std::size_t bytes) const;
  // Connections to come will reserve at most that many more, in all.
  void plan(std::uint32_t completions) { planned_ += completions; }
  // A queue with room for so many of these. Queues are made as connections come, each as large as
  // those before it together, so that there are few to poll.
  Status reserve(std::uint32_t completions, ibv_cq** out);
  const std::vector<Owned<ibv_cq>>& queues() const { return queues_; }
  // The next completion makes descriptor() readable. What is there already does not.
  bool notify() { return channel_.notify(queues_); }
  int descriptor() const { return channel_.descriptor(); }

 private:
  explicit Domain(std::shared_ptr<Device> device);

  std::shared_ptr<Device> device_;
  Owned<ibv_pd> protection_;
  Memory memory_;
  std::size_t lockedBytes_ = 0;  // by all devices of this rank
  Channel channel_;
  std::vector<Owned<ibv_cq>> queues_;
  std::uint32_t planned_ = 0;  // not reserved yet
  std::uint32_t made_ = 0;     // entries of all queues
  std::uint32_t left_ = 0;     // room in the last one
};

}  // namespace weft::verbs
