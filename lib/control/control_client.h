// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "control/bodies.h"
#include "control/control_state.h"
#include "net/service_threads.h"
#include "net/stream.h"
#include "transports/transport.h"
#include "watch/remote_ranks.h"

namespace weft::control {

// One rank's end of the control link: the connection to the server or to a relay (control_relay.h),
// the thread that serves it, and what that thread has heard. The thread may live longer than the
// communicator; detach() takes the pages away from it.
class ControlClient final : public watch::RemoteRanks {
 public:
  // Connects to the server.
  using Reach = std::function<Status(std::unique_ptr<net::Stream>*)>;
  static constexpr std::int64_t kReachMs = 10'000;  // how long it may take

  // `reach`: the stream is to the relay in the process of `leader`, and how to get past it. Is called
  // by the client's thread.
  ControlClient(const transport::TransportSetup& setup, transport::Transport& transport,
                std::unique_ptr<net::Stream> stream, std::uint32_t leader = 0, Reach reach = {});

  transport::FirstError& firstError() override { return firstError_; }
  void propose(const Status& cause) override;
  void refresh(std::chrono::milliseconds patience) override;
  Status ended(std::uint32_t rank) const override;
  std::chrono::milliseconds silence(std::uint32_t rank) const override;
  Status gather(std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all,
                Deadline deadline) override;
  Status overruled() const override;
  std::uint64_t parting() const override;
  bool knowsAgreement() const override;
  void leave() override;

  void detach();
  // The thread's life.
  void run(const net::StopSignal& stop);

 private:
  using Clock = std::chrono::steady_clock;

  void wake();
  void wait(const net::StopSignal& stop);
  void takeWishes(bool processEnds);
  void receive();
  void handle(const net::Message& message);
  void takeNews(const News& news);
  void lose();
  void noteLossOfServer(const Loss& loss);
  void noteOrphaned(std::uint32_t by);
  Status passRelay();
  bool passLostRelay();
  void passStuckRelay();
  bool isRecovering() const;
  void takePart(Part part);
  void takeFirstError(const Status& cause);
  Status whyIncomplete() const;
  std::vector<std::uint32_t> missing() const;
  PageReport ownPage(bool withCalls) const;
  PageReport reportOf(const News::Group& group) const;

  const std::uint32_t rank_, leader_;  // leader_: 0 without a relay
  const std::vector<PeerName> names_;
  transport::FirstError firstError_;
  net::Socket bell_;  // an eventfd: wishes_ has something

  // The thread's own.
  std::unique_ptr<net::Stream> stream_;
  Reach reach_;                       // past the relay; empty once this is the server's stream
  std::optional<Deadline> relayDue_;  // when to pass a relay that has shown no life until then
  std::optional<Deadline> goodbye_;   // Bye is said: until when the server may take to close

  mutable std::mutex mutex_;  // all that follows
  std::condition_variable changed_;
  transport::ControlPage* own_;                   // null once detached
  std::vector<transport::ControlPage*> mirrors_;  // by rank; null where the page is mapped
  PageReport last_;                               // of one's own page, when it was detached
  struct {
    bool query = false;
    bool leave = false;
    std::optional<Status> cause;
    std::vector<net::Bytes> parts;
  } wishes_;
  std::optional<Status> proposed_;                  // and no first error heard since
  bool gone_ = false;                               // nobody is there to ask any more
  std::optional<Clock::time_point> orphanedSince_;  // the server died; or the relay, from when on
                                                    // that counts if the server is not found
  std::uint32_t orphanedBy_ = 0;                    // whose connection was the last
  std::optional<Clock::time_point> relaySince_;     // a sign of life of the relay is due
  std::chrono::milliseconds relayPatience_{0};      // for so long
  std::optional<Clock::time_point> askedSince_;     // an answer of the server is due
  std::uint64_t answers_ = 0;
  std::vector<std::chrono::milliseconds> silence_;  // as the server told
  std::uint64_t parting_ = 0;                       // the first call that not all have made alike
  bool knowsAgreement_ = true;
  std::vector<Status> ended_;
  Status overruled_;
  std::vector<std::deque<net::Bytes>> parts_;  // by rank: given and not yet gathered
  std::vector<bool> leftEarly_;                // by rank: gives no more
};

}  // namespace weft::control
