// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/deadline.h"
#include "transports/ofi/area.h"
#include "transports/ofi/choice.h"
#include "transports/ofi/rail.h"
#include "transports/wire/wire.h"

namespace weft::ofi {

// rdma: fi_writedata, whose data is the immediate data. msg: a message {Header, payload} into
// receives that the target has posted, and that it copies into place.
enum class Mode : std::uint8_t { Rdma, Msg };

// What a rank tells its peers once its rails are open. Plain bytes, of one size on all ranks.
struct Offer {
  std::uint32_t rails = 0;
  std::uint32_t native = 0;  // remote writes are native
  std::uint64_t dataBytes = 0;
  std::uint64_t messageBytes = 0;  // of a message that it takes
  std::uint64_t regionBytes[kWireRegions] = {};
  Contact rail[kMaxRails] = {};
};

struct PeerRail {
  fi_addr_t address = FI_ADDR_UNSPEC;
  Place nowhere;
  std::uint64_t secret = 0;
  bool met = false;        // something has gone or come on it, so it is connected
  std::uint32_t kept = 0;  // writes that wait until it is
  Deadline::Clock::time_point keptSince;
};

struct Peer {
  std::uint32_t rails = 0;  // 0: not a peer of this wire
  std::array<PeerRail, kMaxRails> rail;
  Status fate;        // why it is down
  std::string where;  // "tcp;ofi_rxm rdma, lo 127.0.0.1:4711 -> 127.0.0.1:4712"
};

class OfiWire final : public Wire {
 public:
  OfiWire(const Library* library, const WireSetup& setup);
  ~OfiWire() override;

  // The steps of set-up, in this order; the maker has the ranks agree after each.
  Status open(const std::vector<Candidate>& devices);
  Offer offer() const;
  Status join(const std::vector<Offer>& offers, Mode mode);

  const char* name() const override { return "ofi"; }
  WireCaps caps() const override;
  std::uint32_t rails(std::uint32_t peer) const override { return peers_[peer].rails; }
  bool isConnected(std::uint32_t peer) const override;
  std::string describe(std::uint32_t peer) const override { return peers_[peer].where; }
  std::size_t contactBytes() const override { return sizeof(AreaContact); }
  Status openArea(std::uint32_t number, const WireArea& area,
                  std::span<std::byte> contact) override;
  Status joinArea(std::uint32_t number,
                  std::span<const std::span<const std::byte>> contacts) override;
  void closeArea(std::uint32_t number) override;
  bool sendsFrom(const std::byte* memory, std::size_t bytes, std::uint32_t area) const override;
  WireResult write(const WireWrite&) override;
  int poll(WireEvent* out, int max) override;
  bool arm(std::vector<pollfd>* descriptors, bool waits) override;
  bool isUnsettled() const override { return !kept_.empty(); }
  void sever(std::uint32_t peer) override;
  const Status& lastError() const override { return lastError_; }

 private:
  // What is wrong with it; null: nothing.
  const char* faultOf(const WireWrite&) const;
  WireResult fail(const Status& why);
  // To the provider; 0, or the negative result of libfabric.
  ssize_t post(const WireWrite&);
  // connecting.cpp
  WireResult keep(const WireWrite&);
  void offerKept();
  void forgetKept(std::size_t index);
  void unreached(const WireWrite&);
  ssize_t postRdma(const Rail&, const PeerRail&, const WireWrite&, Slot*) const;
  ssize_t postMsg(const Rail&, const PeerRail&, const WireWrite&, Slot*) const;
  // area.cpp
  AreaContact contactOf(std::uint32_t number) const;
  const Memory& memoryOf(const Area& area, std::uint32_t rail) const {
    return area.memory.empty() ? rails_[rail]->memory() : area.memory[rail];
  }
  void* sourceOf(const WireWrite& write) const {
    return memoryOf(*areas_[write.area], write.rail).descriptor(write.src, write.bytes);
  }
  bool hasArea(std::uint32_t number) const { return number < areas_.size() && areas_[number]; }

  int pollRail(std::uint32_t rail, WireEvent* out, int max);
  // What has completed; true if it is an event for the caller.
  bool complete(std::uint32_t rail, const fi_cq_data_entry&, fi_addr_t from, WireEvent* out);
  bool answered(std::uint32_t rail, Slot*, WireEvent* out);
  bool writtenTo(std::uint32_t rail, std::uint64_t data, fi_addr_t from, WireEvent* out);
  bool received(std::uint32_t rail, Slot*, std::size_t bytes, WireEvent* out);
  bool place(std::uint32_t rail, const Header&, std::span<const std::byte> message);
  bool completed(std::uint32_t rail, std::uint32_t peer, std::uint32_t immediate, WireEvent* out);
  // A message of somebody who is no rank.
  void drop(std::uint32_t rail, std::size_t bytes);
  void failed(std::uint32_t rail);
  void linkDown(std::uint32_t peer, std::uint32_t rail, const std::string& why,
                const char* fix = "");
  void allDown(std::uint32_t rail, const std::string& why, const char* fix = "");

  Status meet(std::uint32_t rank, const Offer& theirs);

  const Library* const library_;  // null: reaches nobody
  const std::uint32_t rank_;
  const std::vector<PeerName> names_;
  const std::vector<bool> wanted_;
  const std::size_t remoteCompletions_;
  const int timeoutMs_;
  Mode mode_ = Mode::Rdma;
  std::size_t maxWrite_ = 0;
  std::vector<std::unique_ptr<Rail>> rails_;
  std::vector<std::unique_ptr<Area>> areas_;  // by number; null: closed
  std::vector<Peer> peers_;
  std::vector<WireWrite> kept_;  // to peers that are not connected yet
  std::size_t nextKept_ = 0;
  // A write's data has room for the immediate data alone: its sender is known by its address.
  bool narrow_ = false;
  std::array<std::unordered_map<fi_addr_t, std::uint32_t>, kMaxRails> senders_;
  std::uint32_t firstRail_ = 0;  // of the next poll()
  std::uint32_t idlePolls_ = 0;
  bool dropped_ = false;          // told once
  std::vector<WireEvent> downs_;  // not yet polled
  Status lastError_;
};

}  // namespace weft::ofi
