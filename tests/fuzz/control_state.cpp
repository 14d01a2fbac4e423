// SPDX-License-Identifier: Apache-2.0
// What the server of the control link decides, fed with any messages and ends of connections.
#include "control/control_state.h"

#include <set>

#include "control/bodies.h"
#include "fuzz.h"

namespace weft::fuzz {
namespace {

using control::ControlState;
using std::chrono::milliseconds;

constexpr std::uint32_t kRanks = 4;

std::vector<PeerName> names() { return {{0, "a", 10}, {1, "a", 11}, {2, "b", 12}, {3, "c", 13}}; }

class Server {
 public:
  explicit Server(FuzzedDataProvider& from) : from_(from) {}

  void next() {
    now_ += milliseconds(from_.ConsumeIntegralInRange(0, 20));
    const auto rank = from_.ConsumeIntegralInRange<std::uint32_t>(0, kRanks - 1);
    const int event = from_.ConsumeIntegralInRange(0, 9);
    if (event == 0) return state_.tick(now_);
    if (!connected_.contains(rank)) return seat(rank);
    if (event < 7) return hear(rank, event);
    if (event == 8) return state_.orphan(rank, now_);
    if (event == 9) return state_.comeBack(rank);
    const auto kind = from_.ConsumeBool() ? ControlState::Loss::Cut : ControlState::Loss::Closed;
    state_.lose(rank, {kind, milliseconds(from_.ConsumeIntegral<std::uint16_t>())}, now_);
    connected_.erase(rank);
  }

  void deliver() {
    (void)state_.nextTick();
    require(state_.everybodyCame() == (came_.size() == kRanks), "all came when all have");
    while (const auto out = state_.take()) {
      require(out->rank < kRanks, "messages go to ranks");
      read(*out);
    }
  }

 private:
  void seat(std::uint32_t rank) {
    state_.seat(rank, rank == 1 ? std::optional<std::uint32_t>(0) : std::nullopt);
    if (came_.insert(rank).second) connected_.insert(rank);
  }
  void hear(std::uint32_t rank, int event) {
    control::PageReport page;
    page.callSeq = from_.ConsumeIntegralInRange<std::uint64_t>(0, 3);
    page.left = from_.ConsumeBool();
    page.fingerprint = from_.ConsumeIntegralInRange<std::uint64_t>(0, 2);
    for (std::uint64_t seq = 1; seq <= page.callSeq && from_.ConsumeBool(); ++seq)
      page.calls.push_back({seq, from_.ConsumeIntegralInRange<std::uint64_t>(0, 2), seq, seq});
    if (event == 1) return state_.query(rank, page, now_);
    if (event == 2) return state_.report(rank, page);
    if (event == 3) return state_.gather(rank, net::Bytes(rank));
    if (event == 4) return state_.propose(Status::error(Code::LinkLost, "a link"));
    if (event == 5) return state_.propose(Status::error(Code::RemoteError, "another"));
    state_.bye(rank, now_);
    connected_.erase(rank);
  }
  void read(const ControlState::Outgoing& out) {
    control::News news;
    control::Ending ending;
    control::Part part;
    Status error;
    using net::MessageType;
    if (out.type == MessageType::Report)
      require(control::decode(*out.body, kRanks, &news), "news can be read");
    if (out.type == MessageType::Ended)
      require(control::decode(*out.body, kRanks, &ending) && !ending.ranks.empty(),
              "an end is somebody's");
    if (out.type == MessageType::Gathered)
      require(control::decode(*out.body, kRanks, &part), "parts can be read");
    if (out.type == MessageType::Error)
      require(bootstrap::decode(*out.body, &error) && !error.ok(), "an error is one");
  }

  FuzzedDataProvider& from_;
  ControlState state_{names()};
  ControlState::Clock::time_point now_ = ControlState::Clock::time_point() + std::chrono::hours(1);
  std::set<std::uint32_t> connected_, came_;
};

}  // namespace

void tryInput(Input input) {
  FuzzedDataProvider from(input.data(), input.size());
  Server server(from);
  for (int events = 0; events < 64 && from.remaining_bytes() > 0; ++events) {
    server.next();
    server.deliver();
  }
}

}  // namespace weft::fuzz
