// SPDX-License-Identifier: Apache-2.0
// What the root decides, fed with any events that ranks with the secret can cause.
#include "bootstrap/rendezvous.h"

#include "fuzz.h"

namespace weft::fuzz {
namespace {

using bootstrap::Rendezvous;

bootstrap::Member memberFrom(FuzzedDataProvider& from) {
  bootstrap::Member member;
  const bool sane = from.ConsumeIntegralInRange(0, 7) != 0;
  member.hello.size = sane ? from.ConsumeIntegralInRange(1, 3) : from.ConsumeIntegral<int>();
  member.hello.rank = sane ? from.ConsumeIntegralInRange(0, 3) : from.ConsumeIntegral<int>();
  if (!sane) member.hello.version = from.ConsumeRandomLengthString(8);
  member.info.who.rank = member.hello.rank;
  member.info.who.pid = sane ? 7 : from.ConsumeIntegral<int>();
  if (!sane) member.info.configText = from.ConsumeRandomLengthString(32);
  return member;
}

class Root {
 public:
  explicit Root(FuzzedDataProvider& from) : from_(from) {}

  void next() {
    const int event = from_.ConsumeIntegralInRange(0, 6);
    if (event == 0 && !rendezvous_.complete()) return join();
    if (event == 1) return rendezvous_.tick();
    if (seats_.empty()) return;
    const std::size_t which = from_.ConsumeIntegralInRange<std::size_t>(0, seats_.size() - 1);
    if (event == 2) return rendezvous_.leave(seats_[which]);
    if (event == 3) return rendezvous_.fail(seats_[which], Status::error(Code::SystemError, "x"));
    if (event != 4) return rendezvous_.gather(seats_[which], part());
    rendezvous_.lose(seats_[which]);
    seats_.erase(seats_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void hearAll() {
    (void)rendezvous_.nextTick();
    while (const auto broadcast = rendezvous_.takeBroadcast()) {
      Status error;
      if (broadcast->type == net::MessageType::Error)
        require(bootstrap::decode(*broadcast->body, &error) && !error.ok(), "an error is one");
      require(!failed_, "nothing follows an error");
      failed_ = broadcast->type == net::MessageType::Error;
    }
    require(failed_ == !rendezvous_.failure().ok(), "a failure is told to all");
  }

 private:
  void join() {
    bootstrap::Member member = memberFrom(from_);
    member.info.patienceMs = from_.ConsumeIntegral<std::int64_t>();
    seats_.push_back(rendezvous_.join(std::move(member)));
  }
  bootstrap::GatherMessage part() {
    const auto round = from_.ConsumeIntegralInRange<std::uint32_t>(0, 3);
    return {round, from_.ConsumeIntegral<std::int64_t>(), {}};
  }

  FuzzedDataProvider& from_;
  Rendezvous rendezvous_{{.firstWarnMs = 0, .settleMs = 0}};
  std::vector<Rendezvous::Seat> seats_;  // whose connections are open
  bool failed_ = false;
};

}  // namespace

void tryInput(Input input) {
  FuzzedDataProvider from(input.data(), input.size());
  Root root(from);
  for (int events = 0; events < 64 && from.remaining_bytes() > 0; ++events) {
    root.next();
    root.hearAll();
  }
}

}  // namespace weft::fuzz
