// SPDX-License-Identifier: Apache-2.0
// A hub or a root by itself, with ranks that come in an order of the test's.
#include <gtest/gtest.h>

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>

#include "bootstrap/handshake.h"
#include "bootstrap/host_hub.h"
#include "bootstrap/joiner.h"
#include "bootstrap/this_process.h"
#include "helpers.h"
#include "net/local_socket.h"

namespace weft::bootstrap {
namespace {

using namespace weft::test;

// Of a hub's connection to its root the two ends.
std::pair<net::Socket, net::Socket> connected() {
  net::Socket listener, near, far;
  net::Address address;
  int error = 0;
  bool exhausted = false;
  EXPECT_TRUE(net::listenAt(loopbackV4(), &listener, &address, &error).ok());
  EXPECT_TRUE(net::connectTo(address, Deadline::in(kDeadlineMs), &near, &error).ok());
  EXPECT_TRUE(net::waitReadable(listener, Deadline::in(kDeadlineMs)));
  far = net::acceptFrom(listener, &address, &exhausted);
  return {std::move(near), std::move(far)};
}

Hello helloOf(const IdContent& id, int rank, int size) {
  Hello hello;
  hello.rank = rank;
  hello.size = size;
  hello.version = libraryVersion();
  hello.tag = idTag(id.secret);
  return hello;
}

std::unique_ptr<net::Stream> comeToHub(const IdContent& id, const std::string& name, int rank,
                                       int size) {
  const Hello hello = helloOf(id, rank, size);
  net::Socket socket;
  EXPECT_EQ(net::connectToName(name, &socket), 0);
  std::unique_ptr<net::Stream> stream;
  Joiner joiner(id, hello, Deadline::in(kDeadlineMs));
  EXPECT_EQ(joiner.tryHub(std::move(socket), 1 << 20, Deadline::in(kDeadlineMs), &stream),
            Joiner::Result::Joined);
  if (!stream) return nullptr;
  net::Message itsName{};
  EXPECT_TRUE(stream
                  ->ask(net::MessageType::Info,
                        encode(InfoMessage{nameOfThisProcess(rank), "", kDeadlineMs}),
                        Deadline::in(kDeadlineMs), &itsName)
                  .ok());
  return stream;
}

std::unique_ptr<net::Stream> comeToRoot(const IdContent& id, const PeerName& who, int size) {
  std::unique_ptr<net::Stream> stream;
  std::string rootName;
  Joiner joiner(id, helloOf(id, who.rank, size), Deadline::in(kDeadlineMs));
  const Status joined = joiner.run(1 << 20, &stream, &rootName);
  EXPECT_TRUE(joined.ok()) << joined.text();
  if (!stream) return nullptr;
  stream->tell(net::MessageType::Info, encode(InfoMessage{who, "", kDeadlineMs}),
               Deadline::in(kDeadlineMs));
  return stream;
}

bool hasNews(const net::Stream& stream, int waitMs = 0) {
  pollfd entry{stream.socket().fd(), POLLIN, 0};
  return ::poll(&entry, 1, waitMs) == 1;
}

// This thread and the service's share a core, on which the service's gives way: nothing happens between a message and who waits for it.
class OneCore {
 public:
  OneCore() {
    ::sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
    ::sched_setaffinity(0, sizeof(one), &one);
  }
  ~OneCore() { ::sched_setaffinity(0, sizeof(before_), &before_); }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

  // `start` on a thread that gives way, as do those that it makes.
  template <class Start>
  auto givingWay(Start start) const {
    decltype(start()) started;
    std::thread([&] {
      ::setpriority(PRIO_PROCESS, 0, 19);
      started = start();
    }).join();
    return started;
  }

 private:
  cpu_set_t before_;
};

// The rank in whose process it is may end when it hears of the end of the root: the others would take that for the reason.
TEST(HubAlone, TellsTheRankOfItsProcessLastWheneverThatCame) {
  constexpr int kRanks = 6;
  const OneCore core;
  for (int leader = 0; leader < kRanks; ++leader) {
    IdContent id;
    ASSERT_TRUE(net::randomBytes(id.secret).ok());
    Hello hello;
    hello.version = libraryVersion();
    const std::string name = hubName(id.secret, hello, "of this test");
    auto [toRoot, root] = connected();
    HubSpec spec{.leader = nameOfThisProcess(leader),
                 .listener = {},
                 .secret = id.secret,
                 .root = std::make_unique<net::Stream>(std::move(toRoot)),
                 .rootName = "the root"};
    ASSERT_EQ(net::listenAtName(name, &spec.listener), 0);
    ASSERT_TRUE(core.givingWay([&] { return startHub(std::move(spec)); }).ok());
    std::vector<std::unique_ptr<net::Stream>> ranks;
    for (int rank = 0; rank < kRanks; ++rank)
      ASSERT_TRUE(ranks.emplace_back(comeToHub(id, name, rank, kRanks)));
    root = {};
    EXPECT_TRUE(hasNews(*ranks[static_cast<std::size_t>(leader)], kDeadlineMs));
    for (const auto& rank : ranks) EXPECT_TRUE(hasNews(*rank)) << "when rank " << leader << " knew";
  }
}

// When all have met it may end at once, as a process that leaves by _exit does.
TEST(RootAlone, TellsTheRankOfItsProcessLastWheneverThatCame) {
  constexpr int kRanks = 4;
  const OneCore core;
  for (int own = 0; own < kRanks; ++own) {
    const IdContent id = contentOf(core.givingWay([] { return newId(); }));
    std::vector<std::unique_ptr<net::Stream>> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
      PeerName who = nameOfThisProcess(rank);
      if (rank != own) who.pid += 1 + rank;
      ASSERT_TRUE(ranks.emplace_back(comeToRoot(id, who, kRanks)));
    }
    EXPECT_TRUE(hasNews(*ranks[static_cast<std::size_t>(own)], kDeadlineMs));
    for (const auto& rank : ranks) EXPECT_TRUE(hasNews(*rank)) << "when rank " << own << " knew";
  }
}

}  // namespace
}  // namespace weft::bootstrap
