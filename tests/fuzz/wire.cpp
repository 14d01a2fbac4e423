// SPDX-License-Identifier: Apache-2.0
// A wire that brings any immediate data, in any order, over records that hold anything.
#include <algorithm>

#include "fuzz.h"
#include "transports/wire/wire_transport.h"

namespace weft::fuzz {
namespace {

constexpr std::uint32_t kRanks = 3;

transport::WindowLayout layout() {
  transport::WindowLayout made;
  made.ranks = kRanks;
  made.arrivalSlots = 5;
  made.pairArrivalSlots = 6;
  return made;
}

class AnyWire final : public wire::Wire {
 public:
  const char* name() const override { return "any"; }
  wire::WireCaps caps() const override { return {.maxWrite = 4096}; }
  std::uint32_t rails(std::uint32_t) const override { return 1; }
  std::string describe(std::uint32_t) const override { return {}; }
  bool sendsFrom(const std::byte*, std::size_t, std::uint32_t) const override { return true; }
  wire::WireResult write(const wire::WireWrite&) override { return wire::WireResult::Accepted; }
  int poll(wire::WireEvent* out, int max) override {
    const int count = std::min(max, static_cast<int>(events.size()));
    std::copy_n(events.begin(), count, out);
    events.erase(events.begin(), events.begin() + count);
    return count;
  }
  void sever(std::uint32_t) override {}
  const Status& lastError() const override { return none_; }

  std::vector<wire::WireEvent> events;

 private:
  const Status none_ = Status::error(Code::RemoteError, "the wire is cut");
};

wire::WireTransport::Parts parts(std::unique_ptr<wire::Wire> wire) {
  wire::WireTransport::Parts made;
  made.layout = layout();
  made.window = pagesOf(std::make_shared<transport::Mapping>(made.layout.size(), -1));
  made.bounceMemory =
      std::make_unique<transport::Mapping>(wire::BounceBuffer::bytes(made.layout), -1);
  made.bookMemory = std::make_shared<transport::Mapping>(wire::WireEnd::bookBytes(made.layout), -1);
  require(made.window != nullptr && made.bounceMemory->base() != nullptr &&
              made.bookMemory->base() != nullptr,
          "there is memory");
  made.peers.assign(kRanks, true);
  made.peers[0] = false;
  made.wire = std::move(wire);
  return made;
}

}  // namespace

void tryInput(Input input) {
  FuzzedDataProvider from(input.data(), input.size());
  auto made = std::make_unique<AnyWire>();
  AnyWire& wire = *made;
  auto given = parts(std::move(made));
  std::byte* const records = given.bounceMemory->base();
  wire::WireTransport transport(std::move(given));
  while (from.remaining_bytes() > 0) {
    const auto peer = from.ConsumeIntegralInRange<std::uint32_t>(1, kRanks - 1);
    const auto record = from.ConsumeIntegralInRange<std::uint32_t>(0, 29);
    const auto bytes = from.ConsumeBytes<std::byte>(sizeof(wire::BounceBuffer::Record));
    std::ranges::copy(bytes, records + wire::BounceBuffer::recordAt(record));
    const auto count = from.ConsumeIntegralInRange<std::uint32_t>(0, 15);
    const std::uint32_t value = from.ConsumeBool()
                                    ? from.ConsumeIntegralInRange<std::uint32_t>(0, 29)
                                    : from.ConsumeIntegral<std::uint32_t>();
    const wire::ImmediateData told{count, value & ((1u << wire::ImmediateData::kValueBits) - 1)};
    wire.events.push_back({wire::WireEvent::RemoteCompletion, peer, told.packed(), 0});
    transport::Event event;
    while (transport.poll(&event, 1) > 0) require(event.peer == peer, "the link is of that peer");
  }
  for (std::uint32_t peer = 1; peer < kRanks; ++peer) transport.sever(peer);  // no good-byes
}

}  // namespace weft::fuzz
