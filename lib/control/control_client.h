// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "control/bodies.h"
#include "control/control_state.h"
#include "control/link_end.h"
#include "control/link_family.h"
#include "net/channel.h"
#include "transports/transport.h"
#include "watch/remote_ranks.h"

namespace weft::control {

// One communicator on a rank's end of a control link, and what has been heard of it. The link may live
// longer; detach() takes the pages away from it.
class ControlClient final : public watch::RemoteRanks {
 public:
  // `transport`: has the pages; null: no communicator is behind it, it keeps this rank on the link.
  // `leader`: the rank in whose process the relay is that the link goes through.
  ControlClient(const transport::TransportSetup& setup, transport::Transport* transport,
                std::shared_ptr<LinkEnd> link, std::uint32_t leader = 0, std::uint32_t group = 0);

  const std::shared_ptr<LinkEnd>& link() const { return link_; }
  std::uint32_t group() const { return group_; }

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

  // Of its creator, until detach().
  void settle(FamilyPlace place) { place_ = std::move(place); }
  const FamilyPlace& place() const { return place_; }
  void detach();

 private:
  friend class LinkEnd;
  using Clock = LinkEnd::Clock;

  // Of the link's thread, under its mutex.
  // What there is to say. True: a word in answer is due.
  bool speak(net::Channel* channel);
  void introduce() { wishes_.introduction = true; }
  bool wantsToLeave() const { return wishes_.leave; }
  void leaveGroup(net::Channel* channel);
  void tellLast(net::Channel* channel) const;
  void sayAgain();
  void handle(const net::Message& message, net::Channel* channel);
  bool isRecovering() const;
  void noteOrphaned();
  void noteCutOff(const Loss& loss);
  void noteFailure(const Status& why, net::Channel* channel);

  void send(net::Channel* channel, net::MessageType type, net::Bytes body) const;
  void takeNews(const News& news);
  void takePart(Part part);
  void takeFirstError(const Status& cause);
  Status whyIncomplete() const;
  std::vector<std::uint32_t> missing() const;
  PageReport ownPage(bool withCalls) const;
  PageReport reportOf(const News::Group& group) const;

  std::uint32_t orphanedBy() const;

  const std::uint32_t rank_, group_, leader_;  // leader_: 0 without a relay
  const std::vector<PeerName> names_;
  const std::shared_ptr<LinkEnd> link_;
  LinkEnd::Shared& shared_;
  transport::FirstError firstError_;
  FamilyPlace place_;

  // Under the link's mutex, all that follows.
  transport::ControlPage* own_;                   // null once detached
  std::vector<transport::ControlPage*> mirrors_;  // by rank; null where the page is mapped
  PageReport last_;                               // of one's own page, when it was detached
  struct {
    bool introduction = false;
    bool query = false;
    bool leave = false;
    std::optional<Status> cause;
    std::vector<net::Bytes> parts;
  } wishes_;
  std::optional<Status> proposed_;  // and no first error heard since
  bool saidGoodbye_ = false;
  std::optional<Clock::time_point> askedSince_;  // an answer of the server is due
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
