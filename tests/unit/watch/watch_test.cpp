// SPDX-License-Identifier: Apache-2.0
#include "watch/watch.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/still_transport.h"

namespace weft::watch {
namespace {

// One page for all ranks: nothing but its first error matters here.
class OnePage final : public test::StillTransport {
 public:
  explicit OnePage(std::uint32_t ranks) : StillTransport(ranks) {}
  transport::WindowView own() const override {
    return {reinterpret_cast<std::byte*>(&page_), layout_};
  }
  transport::ControlPage* control(std::uint32_t) const override { return &page_; }

 private:
  mutable transport::ControlPage page_;
};

// A control link on which tests look in while a cause is on its way.
class Proposals final : public RemoteRanks {
 public:
  std::function<void()> meanwhile;

  transport::FirstError& firstError() override { return first_; }
  void propose(const Status&) override { meanwhile(); }
  void refresh(std::chrono::milliseconds) override {}
  Status ended(std::uint32_t) const override { return {}; }
  std::chrono::milliseconds silence(std::uint32_t) const override { return {}; }
  Status gather(std::span<const std::byte>, std::vector<std::vector<std::byte>>*,
                Deadline) override {
    return {};
  }
  Status overruled() const override { return {}; }
  void leave() override {}

 private:
  transport::FirstError first_;
};

const std::vector<PeerName> kNames{{0, "a", 100}, {1, "b", 101}};

// A call that stopped for an error that nobody could name yet told "OK" to all others.
TEST(Watch, IsNotBrokenBeforeItCanSayWhy) {
  OnePage transport(2);
  Proposals remote;
  Watch watch(transport, 0, kNames, "w", &remote);
  int asked = 0;
  remote.meanwhile = [&] {
    ++asked;
    EXPECT_EQ(watch.isBroken(), !watch.firstError().ok());
  };
  EXPECT_EQ(watch.abort().code(), Code::Aborted);
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(watch.isBroken());
  EXPECT_EQ(watch.firstError().code(), Code::Aborted);
}

TEST(Watch, KeepsItsErrorWhereARankDiedWhileItWroteTheFirst) {
  OnePage transport(2);
  transport::FirstError& first = transport.control(0)->firstError;
  first.state = transport::FirstError::Writing;
  Watch watch(transport, 0, kNames, "w");
  EXPECT_TRUE(watch.firstError().ok());
  const Status told = watch.declare(Status::error(Code::RemoteError, "rank 1 has ended"));
  EXPECT_EQ(told.text(), "rank 1 has ended");
  EXPECT_TRUE(watch.isBroken());
  EXPECT_EQ(watch.firstError().text(), told.text());
  EXPECT_EQ(watch.abort().text(), told.text());
  first.state = transport::FirstError::None;  // it only was slow, and somebody else comes first
  ASSERT_TRUE(publishFirstError(Status::error(Code::Timeout, "late"), &first));
  EXPECT_EQ(watch.firstError().text(), told.text()) << "what was said holds";
}

}  // namespace
}  // namespace weft::watch
