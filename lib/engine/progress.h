// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <thread>

#include "base/deadline.h"
#include "base/status.h"
#include "engine/waiter.h"
#include "transports/doorbell.h"
#include "transports/transport.h"
#include "watch/watch.h"

namespace weft::engine {

// How a call goes on, whatever it does: it polls the transport, and waits while nothing moves. The
// watch is asked about once a millisecond then.
//
// `Work` is what waits. Its members, which are asked while nothing moves:
//   bool awaitsHere(const Seat&) const    does it wait for a rank on this core?
//   bool ready()                          could it do something now?
//   std::uint32_t waitingFor() const      a rank that it waits for
//   Watch::Needs needs() const            see Watch::trouble
class Progress {
 public:
  // All outlive it.
  Progress(transport::Transport& transport, watch::Watch& watch, const WaitTuning& tuning)
      : transport_(transport),
        watch_(watch),
        polls_(transport.caps().polls),
        control_(transport.own().control()),
        waiter_(tuning, control_, !polls_ || transport.caps().sleeps) {}

  bool polls() const { return polls_; }
  // A call begins.
  void begin() {
    waiter_.progressed();
    moves_ = 0;
  }
  // Something did. A call that always has something to do ends by an abort or an error, too, but
  // not one that is as good as done.
  Status moved() {
    waiter_.progressed();
    return ++moves_ % kUninterrupted == 0 ? interruption() : Status();
  }
  Status interruption() {
    return watch_.isBroken() ? watch_.declare(watch_.firstError()) : Status();
  }

  // Only if it polls(). `done(cookie)`: the source of that put is free again.
  template <class Done>
  Status poll(Done&& done) {
    std::array<transport::Event, 16> events;
    const int count = transport_.poll(events.data(), static_cast<int>(events.size()));
    for (int i = 0; i < count; ++i) {
      const transport::Event& event = events[static_cast<std::size_t>(i)];
      if (event.kind != transport::Event::PutDone) return transport_.lastError();
      done(event.cookie);
    }
    return {};
  }

  template <class Work>
  Status idle(Work& work) {
    const Waiter::Advice advice =
        waiter_.pause([&](const Seat& seat) { return work.awaitsHere(seat); });
    if (advice == Waiter::Advice::Poll) return {};
    WEFT_TRY(watch_.trouble(work.waitingFor(), work.needs()));
    if (advice == Waiter::Advice::Sleep) sleep(work);
    return {};
  }

  // The sources belong to the caller again once no put reads them; and nobody polls between calls,
  // so what the peers still wait for leaves now.
  template <class Work, class Done>
  Status drain(Work& work, Done&& done) {
    while (transport_.outstanding() != 0) {
      WEFT_TRY(poll(done));
      WEFT_TRY(idle(work));
    }
    return {};
  }

  // After a failure, whose `status` it gives back: the sources belong to the caller again. A put
  // that does not end soon never will: its link is cut.
  Status abandon(Status status) {
    const Deadline limit = Deadline::in(kAbandonMs);
    for (std::uint32_t r = 0; r < transport_.layout().ranks; ++r) {
      for (; transport_.isPending(r) && !limit.expired(); std::this_thread::yield())
        (void)poll([](std::uint64_t) {});
      if (transport_.isPending(r)) transport_.sever(r);
    }
    return status;
  }

 private:
  static constexpr std::int64_t kAbandonMs = 10;

  // Where the transport polls, somebody else does so meanwhile. What is ready although nothing moved
  // is a put that the transport refuses: it is possible again after news.
  template <class Work>
  void sleep(Work& work) {
    const bool refused = polls_ && work.ready();
    if (polls_ && !transport_.handOver()) return;
    transport::doorbellWait(control_, waiter_.sleepTime(), [&] {
      return (polls_ && transport_.hasNews()) || (!refused && work.ready());
    });
    if (polls_) transport_.acquireProgress();
  }

  transport::Transport& transport_;
  watch::Watch& watch_;
  const bool polls_;
  transport::ControlPage& control_;
  Waiter waiter_;
  static constexpr std::uint32_t kUninterrupted = 16;
  std::uint32_t moves_ = 0;
};

}  // namespace weft::engine
