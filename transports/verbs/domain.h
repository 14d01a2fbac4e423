// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "transports/verbs/port.h"
#include "transports/wire/wire.h"

namespace weft::verbs {

// Something of libibverbs and the function that destroys it.
template <class Thing>
using Owned = std::unique_ptr<Thing, int (*)(Thing*)>;

// What all connections of a rank on one device share: protection domain, registered memory,
// completion queues.
class Domain {
 public:
  // `devices` registers the same memory, for the error that says how much may be locked.
  static Status open(std::shared_ptr<Device> device, std::span<std::byte> segment,
                     std::span<std::byte> mailbox, std::size_t devices,
                     std::unique_ptr<Domain>* out);

  Device& device() const { return *device_; }
  const Library& verbs() const { return device_->verbs(); }
  ibv_pd* protection() const { return protection_.get(); }
  std::uint32_t remoteKey(WireRegion region) const { return regionOf(region)->rkey; }
  // The key for sending from there.
  std::uint32_t localKey(const std::byte* memory) const {
    return isIn(segment_, memory) ? segmentRegion_->lkey : mailboxRegion_->lkey;
  }
  // Connections to come need that many completions more, in all.
  void plan(std::uint32_t completions) { planned_ += completions; }
  // A queue with room for so many of these.
  Status reserve(std::uint32_t completions, ibv_cq** out);
  const std::vector<Owned<ibv_cq>>& queues() const { return queues_; }

 private:
  explicit Domain(std::shared_ptr<Device> device);
  Status registerMemory(std::span<std::byte> memory, const char* what, std::size_t total,
                        Owned<ibv_mr>* out);
  static bool isIn(std::span<std::byte> region, const std::byte* memory) {
    return memory >= region.data() && memory < region.data() + region.size();
  }
  const Owned<ibv_mr>& regionOf(WireRegion region) const {
    return region == WireRegion::Segment ? segmentRegion_ : mailboxRegion_;
  }

  std::shared_ptr<Device> device_;
  Owned<ibv_pd> protection_;
  std::span<std::byte> segment_;
  Owned<ibv_mr> segmentRegion_;
  Owned<ibv_mr> mailboxRegion_;
  std::vector<Owned<ibv_cq>> queues_;
  std::uint32_t planned_ = 0;  // not reserved yet
  std::uint32_t left_ = 0;     // room in the last queue
};

}  // namespace weft::verbs
