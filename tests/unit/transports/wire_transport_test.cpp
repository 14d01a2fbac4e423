// SPDX-License-Identifier: Apache-2.0
// Whoever is told of a put hears it only from the rank whose arrival slot it names.
#include "transports/wire/wire_transport.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
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
  bool sendsFrom(const std::byte*, std::size_t, std::uint32_t) const override { return true; }
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

WireEnd::Parts partsOf(const WindowLayout& layout) {
  WireEnd::Parts parts;
  parts.layout = layout;
  parts.window = pagesOf(std::make_shared<Mapping>(layout.size(), -1));
  parts.bounceMemory = std::make_shared<Mapping>(BounceBuffer::bytes(layout), -1);
  parts.bookMemory = std::make_shared<Mapping>(WireEnd::bookBytes(layout), -1);
  parts.peers = {false, true, true};
  return parts;
}

class Told : public testing::Test {
 protected:
  Told() {
    WireTransport::Parts parts{partsOf(kLayout), nullptr};
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

TEST_F(Told, MirrorsHaveMemoryOnceSomethingIsHeard) {
  const auto resident = [&] { return residentBytes(books_, WireEnd::bookBytes(kLayout)); };
  events_ = {{WireEvent::RemoteCompletion, 2, WireEnd::valuesOf(kLayout).completed(3).packed(), 0}};
  Event event;
  EXPECT_EQ(resident(), 0u);
  transport_->poll(&event, 1);
  EXPECT_EQ(transport_->control(2)->completed.load(), 3u);
  EXPECT_EQ(resident(), kPage);
}

TEST_F(Told, ARankThatNamesAnothersSlotLosesItsLink) {
  EXPECT_FALSE(tell(1, 4));
  EXPECT_TRUE(transport_->isDown(1));
  EXPECT_NE(transport_->lastError().text().find("rank 1 "), std::string::npos)
      << transport_->lastError().text();
  EXPECT_FALSE(tell(2, kPairs + 1));
  EXPECT_TRUE(transport_->isDown(2));
}

// Each has a run of values of its own; none gets the one that was last given back.
TEST(SharedWire, HasValuesForSomeThousandCommunicators) {
  std::vector<WireEvent> none;
  SharedWire shared(std::make_unique<GivenWire>(&none));
  shared.add(std::make_shared<WireEnd>(partsOf(kLayout),
                                       AreaWire(shared.wire(), WireEnd::valuesOf(kLayout))));
  const ImmediateValues few(100, 3), many(100000, 3);
  std::set<std::uint32_t> firsts;
  std::uint32_t number = 0, first = 0, last = 0;
  ASSERT_TRUE(shared.reserve(many, &last, &first));
  EXPECT_EQ(first % many.count(), 0u);
  EXPECT_NE(first, 0u) << "of the wire's maker";
  for (std::uint32_t i = 0; i < 4096 - 1 - 2; ++i) {
    ASSERT_TRUE(shared.reserve(few, &number, &first)) << i;
    EXPECT_TRUE(firsts.insert(first).second);
  }
  EXPECT_FALSE(shared.reserve(few, &number, &first));
  shared.release(last);
  std::uint32_t again = 0;
  ASSERT_TRUE(shared.reserve(few, &number, &first));
  EXPECT_EQ(number, last);
  ASSERT_TRUE(shared.reserve(few, &again, &first));
  EXPECT_FALSE(shared.reserve(few, &number, &first));
  shared.release(again);
  shared.release(last);
  ASSERT_TRUE(shared.reserve(many, &number, &first)) << "side by side";
}

}  // namespace
}  // namespace weft::wire
