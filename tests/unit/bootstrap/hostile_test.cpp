// SPDX-License-Identifier: Apache-2.0
// What foreign connections, impostors and half-dead peers do to a bootstrap root, and to a rank.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <random>

#include "base/log.h"
#include "bootstrap/admission.h"
#include "bootstrap/handshake.h"
#include "bootstrap/joiner.h"
#include "helpers.h"

namespace weft::bootstrap {
namespace {

using namespace weft::test;

net::Socket connectRaw(const UniqueId& id) {
  net::Socket socket;
  int error = 0;
  const Status status =
      net::connectTo(contentOf(id).addresses.front(), Deadline::in(5000), &socket, &error);
  EXPECT_TRUE(status.ok()) << status.text();
  return socket;
}

void sendRaw(const net::Socket& socket, net::ByteView bytes) {
  (void)send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

constexpr std::int64_t kSoonMs = std::chrono::milliseconds(kSoon).count();

// The other side ends the connection within `ms`, whatever it says before.
bool closedWithin(const net::Socket& socket, std::int64_t ms) {
  std::byte buffer[1024];
  const Deadline deadline = Deadline::in(ms);
  while (net::waitReadable(socket, deadline)) {
    const ssize_t got = recv(socket.fd(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return true;
  }
  return false;
}

net::Bytes randomNoise(std::mt19937* random, std::size_t size) {
  net::Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((*random)());
  return bytes;
}

// The n-th of a mixed crowd: a browser, noise, a half-open handshake, a silent one, a huge claim.
net::Socket stranger(const UniqueId& id, std::size_t n, std::mt19937* random) {
  net::Socket socket = connectRaw(id);
  const net::Bytes hugeFrame = net::ByteWriter()
                                   .raw(net::bytesOf("WEFT"))
                                   .number<std::uint32_t>(0x00000101)
                                   .number<std::uint32_t>(0xffffffff)
                                   .take();
  switch (n % 5) {
    case 0:
      sendRaw(socket, net::bytesOf("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
      break;
    case 1:
      sendRaw(socket, randomNoise(random, 200));
      break;
    case 2:
      sendRaw(socket, net::bytesOf("WEFT\x01\x01"));
      break;
    case 3:
      break;
    default:
      sendRaw(socket, hugeFrame);
  }
  return socket;
}

// With more patience than ranks have: they do not come in because strangers had to go.
RootOptions patientRoot() {
  RootOptions options = quickRoot();
  options.handshakeMs = 2 * kDeadlineMs;
  return options;
}

TEST(Hostile, AFloodDuringInitHarmsNobody) {
  const UniqueId id = newId(patientRoot());
  std::vector<Part> parts = healthyParts(8);
  parts[3].delayMs = 150;
  std::vector<Joined> results;
  const auto start = Deadline::Clock::now();
  std::thread ranks([&] { results = joinAll(id, parts); });
  std::mt19937 random(5);
  std::vector<net::Socket> crowd;
  for (std::size_t n = 0; n < 100; ++n) crowd.push_back(stranger(id, n, &random));
  ranks.join();
  expectAllJoined(results);
  EXPECT_LT(Deadline::Clock::now() - start, kSoon);
}

TEST(Hostile, SilentConnectionsDoNotKeepRanksOut) {
  const UniqueId id = newId(patientRoot());
  std::vector<net::Socket> silent;
  for (int n = 0; n < 200; ++n) silent.push_back(connectRaw(id));
  const auto start = Deadline::Clock::now();
  expectAllJoined(joinAll(id, healthyParts(4)));
  EXPECT_LT(Deadline::Clock::now() - start, kSoon);
}

TEST(Hostile, AStrangerIsClosedAtOnceAndASilentOneAfterTheHandshakesTime) {
  const UniqueId id = newId(patientRoot());
  const net::Socket browser = connectRaw(id), oversize = connectRaw(id);
  sendRaw(browser, net::bytesOf("GET / HTTP/1.1\r\n"));
  sendRaw(oversize, net::ByteWriter()
                        .raw(net::bytesOf("WEFT"))
                        .number<std::uint32_t>(0x00000101)
                        .number<std::uint32_t>(4097)
                        .take());
  EXPECT_TRUE(closedWithin(browser, kSoonMs));
  EXPECT_TRUE(closedWithin(oversize, kSoonMs));
  expectAllJoined(joinAll(id, healthyParts(1)));
  const UniqueId other = newId();
  EXPECT_TRUE(closedWithin(connectRaw(other), kSoonMs));
  expectAllJoined(joinAll(other, healthyParts(1)));
}

TEST(Hostile, WhoDoesNotBeginWithAHelloIsNobody) {
  Admission admission(contentOf(newId()).secret);
  net::Channel channel;
  std::optional<Member> admitted;
  for (const net::MessageType type : {net::MessageType::Info, net::MessageType::Hello}) {
    const Status refused = admission.handle({type, net::Bytes(7)}, &channel, &admitted);
    EXPECT_EQ(refused.code(), Code::RemoteError);
    expectHas(refused.text(), "no valid hello");
  }
  EXPECT_FALSE(admitted.has_value());
  EXPECT_TRUE(channel.pending().empty()) << "it was answered";
}

// A rank that speaks the protocol by hand and keeps what it sent.
class HandMadeRank {
 public:
  HandMadeRank(const UniqueId& id, int rank, int size)
      : secret_(contentOf(id).secret), stream_(connectRaw(id)) {
    hello_.rank = rank;
    hello_.size = size;
    hello_.version = libraryVersion();
    hello_.tag = idTag(secret_);
    (void)net::randomBytes(hello_.nonce);
  }

  // Sends Hello and reads the Challenge.
  bool greet() {
    helloBytes_ = encode(hello_);
    send(net::MessageType::Hello, helloBytes_);
    net::Message message{};
    if (!stream_.awaitMessage(Deadline::in(kSoonMs), &message).ok()) return false;
    challenge_ = message.body;
    return message.type == net::MessageType::Challenge;
  }
  void prove(bool truthfully = true) {
    net::Digest proof = rankProof(secret_, helloBytes_, challenge_);
    if (!truthfully) proof[31] ^= std::byte{1};
    send(net::MessageType::Proof, net::Bytes(proof.begin(), proof.end()));
    const SessionKeys keys = sessionKeys(secret_, helloBytes_, challenge_);
    stream_.channel().secure(keys.toRoot, keys.toRank, 1 << 20);
  }
  void introduce() {
    send(net::MessageType::Info, encode(InfoMessage{nameOfThisProcess(0), "", 10000}));
  }
  bool awaits(net::MessageType type) {
    net::Message message{};
    return stream_.awaitMessage(Deadline::in(kSoonMs), &message).ok() && message.type == type;
  }

  const net::Socket& socket() const { return stream_.socket(); }
  const net::Bytes& everythingSent() const { return sent_; }

 private:
  void send(net::MessageType type, net::Bytes body) {
    stream_.channel().send(type, std::move(body));
    const net::ByteView pending = stream_.channel().pending();
    sent_.insert(sent_.end(), pending.begin(), pending.end());
    EXPECT_TRUE(stream_.awaitFlushed(Deadline::in(kSoonMs)).ok());
  }
  net::Key secret_;
  net::Stream stream_;
  Hello hello_;
  net::Bytes helloBytes_, challenge_, sent_;
};

TEST(Hostile, AReplayedHandshakeIsRefused) {
  const UniqueId id = newId();
  HandMadeRank rank(id, 0, 2);
  ASSERT_TRUE(rank.greet());
  rank.prove();
  rank.introduce();
  EXPECT_TRUE(rank.awaits(net::MessageType::Welcome));
  // The root's nonce is another one now, so the recorded proof is worth nothing.
  const net::Socket replay = connectRaw(id);
  sendRaw(replay, rank.everythingSent());
  EXPECT_TRUE(closedWithin(replay, kSoonMs));
  const Joined second = join(id, {.rank = 1, .size = 2});
  EXPECT_TRUE(second.status.ok()) << second.status.text();
  EXPECT_TRUE(rank.awaits(net::MessageType::Roster));
}

TEST(Hostile, AWrongProofIsRefused) {
  const UniqueId id = newId();
  HandMadeRank impostor(id, 0, 2);
  ASSERT_TRUE(impostor.greet());
  impostor.prove(false);
  EXPECT_TRUE(impostor.awaits(net::MessageType::Refusal));
  EXPECT_TRUE(closedWithin(impostor.socket(), kSoonMs));
  expectAllJoined(joinAll(id, healthyParts(2)));
}

TEST(Hostile, ARankThatStopsBeforeItsInfoIsNobody) {
  const UniqueId id = newId();
  HandMadeRank half(id, 0, 2);
  ASSERT_TRUE(half.greet());
  half.prove();
  EXPECT_TRUE(half.awaits(net::MessageType::Welcome));
  expectAllJoined(joinAll(id, healthyParts(2)));
}

TEST(Hostile, ARankThatIsLostBeforeItsInfoIsNamedAtOnce) {
  const UniqueId id = newId();
  Joined other;
  std::thread first([&] { other = join(id, {.rank = 0, .size = 2}); });
  {
    HandMadeRank half(id, 1, 2);
    ASSERT_TRUE(half.greet());
    half.prove();
    EXPECT_TRUE(half.awaits(net::MessageType::Welcome));
  }
  const auto lost = Deadline::Clock::now();
  first.join();
  EXPECT_LT(Deadline::Clock::now() - lost, kSoon);
  EXPECT_EQ(other.status.code(), Code::RemoteError);
  EXPECT_NE(other.status.text().find("rank 1 died or closed"), std::string::npos)
      << other.status.text();
}

// ---- impostors on the other side ----

class FakeRoot {
 public:
  explicit FakeRoot(std::function<void(net::Stream*)> answer) : answer_(std::move(answer)) {
    net::Address loopback;
    loopback.ip = {127, 0, 0, 1};
    int error = 0;
    EXPECT_TRUE(net::listenAt(loopback, &listener_, &address_, &error).ok());
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeRoot() {
    stop_ = true;
    thread_.join();
  }
  UniqueId id() const {
    IdContent content;
    content.addresses = {address_};
    content.secret.fill(std::byte{7});
    return encodeId(content);
  }

 private:
  void serve() {
    std::vector<std::unique_ptr<net::Stream>> kept;
    while (!stop_) {
      if (!net::waitReadable(listener_, Deadline::in(10))) continue;
      net::Address peer;
      bool exhausted;
      net::Socket socket = net::acceptFrom(listener_, &peer, &exhausted);
      if (!socket) continue;
      kept.push_back(std::make_unique<net::Stream>(std::move(socket)));
      answer_(kept.back().get());
    }
  }
  std::function<void(net::Stream*)> answer_;
  net::Socket listener_;
  net::Address address_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST(Impostor, ARootWithoutTheSecretIsFound) {
  FakeRoot root([](net::Stream* stream) {
    Challenge challenge;
    challenge.host = "evil";
    stream->channel().send(net::MessageType::Challenge, encode(challenge));
    (void)stream->flush();
  });
  const Joined result = join(root.id(), {.rank = 0, .size = 1});
  EXPECT_EQ(result.status.code(), Code::Authentication);
  expectHas(result.status.text(), "could not prove that it holds our secret");
}

// Answers a rank's Hello as a root that holds the id's secret, and its Proof with these bytes.
void serveUpToTheProof(net::Stream* stream, net::ByteView answer) {
  net::Key secret;
  secret.fill(std::byte{7});
  net::Message hello{}, proof{};
  Challenge challenge;
  if (!stream->awaitMessage(Deadline::in(kSoonMs), &hello).ok()) return;
  challenge.proof = rootProof(secret, hello.body, challenge);
  stream->channel().send(net::MessageType::Challenge, encode(challenge));
  (void)stream->flush();
  if (stream->awaitMessage(Deadline::in(kSoonMs), &proof).ok()) sendRaw(stream->socket(), answer);
}

TEST(Impostor, ARefusedProofIsSaidAtOnce) {
  net::Channel refusing;
  refusing.send(net::MessageType::Refusal, net::Bytes());
  const net::Bytes refusal(refusing.pending().begin(), refusing.pending().end());
  FakeRoot root([&](net::Stream* stream) { serveUpToTheProof(stream, refusal); });
  const auto start = Deadline::Clock::now();
  const Joined result = join(root.id(), {.rank = 3, .size = 4});
  EXPECT_EQ(result.status.code(), Code::Authentication);
  expectHas(result.status.text(), "rank 3 on host " + hostName());
  expectHas(result.status.text(), "refused our proof of the secret");
  EXPECT_LT(Deadline::Clock::now() - start, kSoon);
}

TEST(Impostor, AWelcomeWithoutTheSecretIsNone) {
  net::Channel forging;
  forging.send(net::MessageType::Welcome, net::Bytes());
  net::Bytes welcome(forging.pending().begin(), forging.pending().end());
  welcome.resize(welcome.size() + 16);  // room of a MAC
  FakeRoot root([&](net::Stream* stream) { serveUpToTheProof(stream, welcome); });
  const Joined result = join(root.id(), {.rank = 0, .size = 1, .timeoutMs = 300});
  EXPECT_EQ(result.status.code(), Code::Timeout);
}

// Takes the rank in as a true root does, and says nothing more.
void welcome(net::Stream* stream) {
  net::Key secret;
  secret.fill(std::byte{7});
  Admission admission(secret);
  std::optional<Member> admitted;
  for (int i = 0; i < 2; ++i) {
    net::Message message{};
    if (!stream->awaitMessage(Deadline::in(kSoonMs), &message).ok()) return;
    EXPECT_TRUE(admission.handle(message, &stream->channel(), &admitted).ok());
    EXPECT_TRUE(stream->awaitFlushed(Deadline::in(kSoonMs)).ok());
  }
}

TEST(Impostor, ARootThatFallsSilentIsNamed) {
  FakeRoot root(welcome);
  const Joined result = join(root.id(), {.rank = 1, .size = 2, .timeoutMs = 2000});
  EXPECT_EQ(result.status.code(), Code::Timeout);
  expectHas(result.status.text(), text("rank 1 heard nothing from the bootstrap root (host ",
                                       hostName(), ", pid ", getpid(), ") by its deadline. fix"));
}

TEST(Impostor, AnotherAnswerThanAChallengeIsNoRoots) {
  FakeRoot root([](net::Stream* stream) {
    stream->channel().send(net::MessageType::Welcome, net::Bytes());
    (void)stream->flush();
  });
  const Joined result = join(root.id(), {.rank = 0, .size = 1, .timeoutMs = 2000});
  EXPECT_EQ(result.status.code(), Code::Timeout);
  expectHas(result.status.text(), "it does not answer like a bootstrap root of weft");
}

TEST(Impostor, GarbageFromTheRootIsATimeoutThatSaysSo) {
  FakeRoot root(
      [](net::Stream* stream) { sendRaw(stream->socket(), net::bytesOf("220 smtp ready\r\n")); });
  const Joined result = join(root.id(), {.rank = 0, .size = 1, .timeoutMs = 1000});
  EXPECT_EQ(result.status.code(), Code::Timeout);
  expectHas(result.status.text(), "not weft's");
}

TEST(Impostor, ASilentRootIsATimeoutThatSaysSo) {
  FakeRoot root([](net::Stream*) {});
  const Joined result = join(root.id(), {.rank = 0, .size = 1, .timeoutMs = 200});
  EXPECT_EQ(result.status.code(), Code::Timeout);
  expectHas(result.status.text(), "does not answer");
}

// ---- signals ----

TEST(Signals, AStormOfAlarmsChangesNothing) {
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {};  // without SA_RESTART: every system call may end with EINTR
  sigaction(SIGALRM, &action, &before);
  itimerval every{{0, 500}, {0, 500}}, never{};
  setitimer(ITIMER_REAL, &every, nullptr);
  for (int round = 0; round < 5; ++round) {
    std::vector<Part> parts = healthyParts(4);
    parts[1].delayMs = 20;
    std::vector<Joined> results = joinAll(newId(), parts);
    expectAllJoined(results);
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
}

}  // namespace
}  // namespace weft::bootstrap
