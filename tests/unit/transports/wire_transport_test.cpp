// SPDX-License-Identifier: Apache-2.0
// Whoever is told of a put hears it only from the rank whose arrival slot it names.
#include "transports/wire/wire_transport.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>

namespace weft::wire {
namespace {

constexpr WindowLayout kLayout{
    .ranks = 3, .arrivalSlots = 6, .pairArrivalSlots = 3, .apart = 1, .arenaBytes = 192};

// Brings what it is given.
class GivenWire final : public Wire {
 public:
  explicit GivenWire(std::vector<WireEvent>* events) : events_(events) {}
  const char* name() const override { return "given"; }
  WireCaps caps() const override { return {.maxWrite = 4096}; }
  std::uint32_t rails(std::uint32_t) const override { return 1; }
  std::string describe(std::uint32_t) const override { return name(); }
  bool sendsFrom(const std::byte*, std::size_t) const override { return true; }
  WireResult write(const WireWrite&) override { return WireResult::Again; }
  int poll(WireEvent* out, int) override {
    if (events_->empty()) return 0;
    *out = events_->back();
    events_->pop_back();
    return 1;
  }
  void sever(std::uint32_t) override {}
  const Status& lastError() const override { return none_; }

 private:
  std::vector<WireEvent>* events_;
  const Status none_;
};

class Told : public testing::Test {
 protected:
  Told() {
    WireTransport::Parts parts;
    parts.layout = kLayout;
    parts.windowMemory = std::make_shared<Mapping>(kLayout.size(), -1);
    parts.window = parts.windowMemory->base();
    parts.bounceMemory = std::make_shared<Mapping>(BounceBuffer::bytes(kLayout), -1);
    parts.bookMemory = std::make_shared<Mapping>(WireTransport::bookBytes(kLayout), -1);
    parts.peers = {false, true, true};
    books_ = parts.bookMemory->base();
    parts.wire = std::make_unique<GivenWire>(&events_);
    records_ = parts.bounceMemory->base();
    transport_ = std::make_unique<WireTransport>(std::move(parts));
  }
  // Of one write, with its record. Has the slot been raised?
  bool tell(std::uint32_t peer, std::uint32_t arrival) {
    BounceBuffer::Record record{.flag = arrivalFlag(1, 0)};
    std::memcpy(records_ + BounceBuffer::recordAt(arrival), &record, sizeof(record));
    events_ = {{WireEvent::RemoteCompletion, peer, ImmediateData{1, arrival}.packed(), 0}};
    Event event;
    transport_->poll(&event, 1);
    return transport_->own().arrivals()[arrival].flag.load() != 0;
  }

  std::vector<WireEvent> events_;
  std::byte* books_ = nullptr;
  std::byte* records_ = nullptr;
  std::unique_ptr<WireTransport> transport_;
};

constexpr std::uint32_t kPairs = kMaxLanes * kLayout.arrivalSlots;

TEST_F(Told, OfPutsToTheirSendersSlots) {
  for (const auto& [peer, arrival] : {std::pair{1u, 2u}, {1u, 6u + 3u}, {2u, 4u}, {2u, kPairs + 2}})
    EXPECT_TRUE(tell(peer, arrival)) << arrival;
  EXPECT_FALSE(transport_->isDown(1) || transport_->isDown(2));
}

TEST_F(Told, OfLittleMirrorsHaveAPage) {
  const auto resident = [&] { return residentBytes(books_, WireTransport::bookBytes(kLayout)); };
  for (const std::uint32_t peer : {1u, 2u})
    EXPECT_EQ(transport_->control(peer)->rank, static_cast<int>(peer));
  events_ = {{WireEvent::RemoteCompletion, 2, ImmediateData::completed(3).packed(), 0}};
  Event event;
  const std::size_t before = resident();
  transport_->poll(&event, 1);
  EXPECT_EQ(transport_->control(2)->completed.load(), 3u);
  EXPECT_LE(resident(), before);
  EXPECT_LE(before, 2 * kPage);
}

TEST_F(Told, ARankThatNamesAnothersSlotLosesItsLink) {
  EXPECT_FALSE(tell(1, 4));
  EXPECT_TRUE(transport_->isDown(1));
  EXPECT_NE(transport_->lastError().text().find("rank 1 "), std::string::npos)
      << transport_->lastError().text();
  EXPECT_FALSE(tell(2, kPairs + 1));
  EXPECT_TRUE(transport_->isDown(2));
}

}  // namespace
}  // namespace weft::wire
