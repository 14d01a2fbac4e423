// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "bootstrap/service_threads.h"
#include "bootstrap/stream.h"
#include "control/bodies.h"
#include "control/control_link.h"
#include "control/switchboard.h"

namespace weft {

// One rank's end of the control link: the connection to the hub, the thread that serves it, and
// what that thread has heard. The thread may live longer than the communicator; detach() takes the
// pages away from it.
class Spoke final : public FarRanks {
 public:
  Spoke(const ControlLinkSetup& setup, std::unique_ptr<Stream> stream);

  Verdict& verdict() override { return verdict_; }
  void propose(const Status& cause) override;
  void refresh(std::chrono::milliseconds patience) override;
  Status ended(std::uint32_t rank) const override;
  bool isFar(std::uint32_t rank) const override { return far_[rank]; }
  std::chrono::milliseconds silence(std::uint32_t rank) const override;
  Status gather(std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all,
                Deadline deadline) override;
  Status overruled() const override;
  void leave() override;

  void detach();
  // The thread's life.
  void run(const StopSignal& stop);

 private:
  using Clock = std::chrono::steady_clock;

  void wake();
  void wait(const StopSignal& stop);
  void takeWishes(bool processEnds);
  bool flush();
  void receive();
  void handle(const Message& message);
  void takeNews(const News& news);
  void lose(int error);
  void noteLossOfHub(const Switchboard::Loss& loss);
  void takePart(Part part);
  void takeVerdict(const Status& cause);
  Status whyIncomplete() const;
  std::vector<std::uint32_t> missing() const;
  PageReport ownPage() const;

  const std::uint32_t rank_;
  const std::vector<PeerName> names_;
  const std::vector<bool> far_;  // has a mirror
  Verdict verdict_;
  Socket bell_;  // an eventfd: wishes_ has something

  // The thread's own.
  std::unique_ptr<Stream> stream_;
  std::optional<Deadline> goodbye_;  // Bye is said: until when the hub may take to close

  mutable std::mutex mutex_;  // all that follows
  std::condition_variable changed_;
  ControlPage* own_;  // null once detached
  std::vector<ControlPage*> mirrors_;
  PageReport last_;  // of one's own page, when it was detached
  struct {
    bool query = false;
    bool leave = false;
    std::optional<Status> cause;
    std::vector<Bytes> parts;
  } wishes_;
  bool gone_ = false;                            // nobody is there to ask any more
  std::optional<Clock::time_point> askedSince_;  // an answer of the hub is due
  std::uint64_t answers_ = 0;
  std::vector<std::chrono::milliseconds> silence_;  // as the hub told
  std::vector<Status> ended_;
  Status overruled_;
  std::vector<std::deque<Bytes>> parts_;  // by rank: given and not yet gathered
  std::vector<bool> leftEarly_;           // by rank: gives no more
};

}  // namespace weft
