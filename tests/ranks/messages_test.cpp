// SPDX-License-Identifier: Apache-2.0
// Random batches of sends and receives, and those that go wrong, by every way that bytes can take.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../has_libfabric.h"
#include "messages.h"
#include "steps.h"
#include "world.h"

namespace weft::testing {
namespace {

// A world, and the variables that decide how bytes go in it.
struct Way {
  const char* name;
  World world;
  std::vector<std::pair<const char*, const char*>> variables = {};
};

class Messages : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (GetParam().world.transport == std::string("ofi") && !test::hasLibfabric())
      GTEST_SKIP() << "no libfabric for this build";
    for (const auto& [name, value] : GetParam().variables) ::setenv(name, value, 1);
  }
  void TearDown() override {
    for (const auto& variable : GetParam().variables) ::unsetenv(variable.first);
  }
  void onEveryRank(const Body& body) { EXPECT_EQ(failures(GetParam().world, body), ""); }
};

// Memory of weftMemAlloc, or any other; odd addresses, too.
class Buffer {
 public:
  Buffer(std::size_t bytes, bool shared, std::size_t skip) : bytes_(bytes), skip_(skip) {
    if (!shared || weftMemAlloc(&shared_, bytes + skip + 1) != weftSuccess)
      own_.resize(bytes + skip + 1);
  }
  ~Buffer() {
    if (shared_ != nullptr) weftMemFree(shared_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::uint8_t* data() {
    return (shared_ != nullptr ? static_cast<std::uint8_t*>(shared_) : own_.data()) + skip_;
  }
  bool holds(const Bytes& wanted) {
    return wanted.size() == bytes_ && std::equal(wanted.begin(), wanted.end(), data());
  }

 private:
  std::size_t bytes_, skip_;
  void* shared_ = nullptr;
  Bytes own_;
};

struct Message {
  int from, to;
  std::size_t k;  // of that pair
  std::size_t bytes;
};

// The same on every rank.
std::vector<Message> randomMessages(std::mt19937& random, int ranks) {
  const std::size_t sizes[] = {0, 1, 47, 48, 49, 800, 5000, 16384, 16385, 65536, 65537, 300000};
  std::vector<Message> messages(1 + random() % 60);
  std::map<std::pair<int, int>, std::size_t> count;
  for (Message& m : messages) {
    m.from = static_cast<int>(random() % static_cast<unsigned>(ranks));
    m.to = static_cast<int>(random() % static_cast<unsigned>(ranks));
    m.k = count[{m.from, m.to}]++;
    m.bytes = random() % 16 == 0 ? random() % (3 << 20) : sizes[random() % std::size(sizes)];
  }
  return messages;
}

struct Half {
  Message message;
  bool isSend;
  std::unique_ptr<Buffer> buffer;
};

// What one rank has to do with them: in any order, but for those of one pair and direction.
std::vector<Half> halvesOf(const Rank& r, const std::vector<Message>& messages,
                           std::mt19937& random) {
  std::map<std::pair<bool, int>, std::vector<Message>> rows;
  for (const Message& m : messages) {
    if (m.from == r.rank) rows[{true, m.to}].push_back(m);
    if (m.to == r.rank) rows[{false, m.from}].push_back(m);
  }
  std::vector<Half> halves;
  while (!rows.empty()) {
    const auto row = std::next(rows.begin(), static_cast<std::ptrdiff_t>(random() % rows.size()));
    const Message m = row->second.front();
    halves.push_back(
        {m, row->first.first, std::make_unique<Buffer>(m.bytes, random() % 2, random() % 3)});
    row->second.erase(row->second.begin());
    if (row->second.empty()) rows.erase(row);
  }
  return halves;
}

void runBatch(const Rank& r, std::vector<Half>& halves, Steps& steps) {
  weftGroupStart();
  for (Half& half : halves) {
    const Message& m = half.message;
    if (half.isSend) {
      fill(m.from, m.to, m.k, half.buffer->data(), m.bytes);
      steps.ok(weftSend(half.buffer->data(), m.bytes, weftUint8, m.to, r.comm, nullptr, nullptr),
               "send");
    } else {
      steps.ok(weftRecv(half.buffer->data(), m.bytes, weftUint8, m.from, r.comm, nullptr, nullptr),
               "receive");
    }
  }
  steps.ok(weftGroupEnd(), "end");
}

TEST_P(Messages, RandomBatches) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    std::mt19937 common(7), own(static_cast<unsigned>(r.rank));
    for (int batch = 0; batch < (kSanitized ? 10 : 30); ++batch) {
      const std::vector<Message> messages = randomMessages(common, r.ranks);
      std::vector<Half> halves = halvesOf(r, messages, own);
      runBatch(r, halves, steps);
      for (Half& half : halves) {
        const Message& m = half.message;
        steps.expect(half.buffer->holds(message(m.from, m.to, m.k, m.bytes)),
                     "batch " + std::to_string(batch) + ": wrong message " + std::to_string(m.k) +
                         " of " + std::to_string(m.bytes) + " from " + std::to_string(m.from));
      }
    }
    return steps.failed();
  });
}

// What a receiver reads from its sender's memory, it has read when the send returns.
TEST_P(Messages, SourcesMayChangeAtOnce) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    for (const std::size_t bytes : {std::size_t{49}, std::size_t{20000}, std::size_t{2} << 20}) {
      for (std::size_t k = 0; k < 20; ++k) {
        Buffer data(bytes, k % 2 == 0, 0);
        if (r.rank == 0) {
          fill(0, 1, k, data.data(), bytes);
          steps.ok(weftSend(data.data(), bytes, weftUint8, 1, r.comm, nullptr, nullptr), "send");
          std::fill_n(data.data(), bytes, std::uint8_t{0xee});
        } else if (r.rank == 1) {
          steps.ok(weftRecv(data.data(), bytes, weftUint8, 0, r.comm, nullptr, nullptr), "receive");
          steps.expect(data.holds(message(0, 1, k, bytes)), "wrong " + std::to_string(bytes));
        }
      }
    }
    return steps.failed();
  });
}

// Everybody to everybody, as many as there are, the last ones first.
TEST_P(Messages, ManyPeersAtOnce) {
  onEveryRank([](const Rank& r) {
    constexpr std::size_t kBytes = 20000;
    Steps steps;
    std::vector<Half> halves;
    for (int peer = r.ranks; peer-- > 0;) {
      for (std::size_t k = 0; k < 3; ++k) {
        halves.push_back(
            {{r.rank, peer, k, kBytes}, true, std::make_unique<Buffer>(kBytes, false, 0)});
        halves.push_back(
            {{peer, r.rank, k, kBytes}, false, std::make_unique<Buffer>(kBytes, false, 0)});
      }
    }
    runBatch(r, halves, steps);
    for (Half& half : halves) {
      const Message& m = half.message;
      steps.expect(half.buffer->holds(message(m.from, m.to, m.k, kBytes)), "wrong message");
    }
    return steps.failed();
  });
}

// The second of three messages does not fit: both sides are named, whatever its length.
TEST_P(Messages, MismatchInTheMiddle) {
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{3000}, std::size_t{1} << 20}) {
    const World world{GetParam().world.kind, 2, GetParam().world.transport};
    const auto texts = run(world, [&](const Rank& r) -> std::string {
      std::vector<Bytes> data(3, Bytes(bytes + 1));
      weftGroupStart();
      for (std::size_t k = 0; k < data.size(); ++k) {
        if (r.rank == 0)
          weftSend(data[k].data(), bytes, weftUint8, 1, r.comm, nullptr, nullptr);
        else
          weftRecv(data[k].data(), bytes + (k == 1), weftUint8, 0, r.comm, nullptr, nullptr);
      }
      const weftResult_t result = weftGroupEnd();
      if (result != weftSuccess) return outcome(result, r.comm);
      return outcome(weftBarrier(r.comm, nullptr, nullptr), r.comm);
    });
    const std::string wanted = "send(count=" + std::to_string(bytes) + ", uint8)";
    const std::string other = "recv(count=" + std::to_string(bytes + 1) + ", uint8)";
    for (const std::string& text : texts) {
      EXPECT_NE(text.find(wanted), std::string::npos) << text;
      EXPECT_NE(text.find(other), std::string::npos) << text;
    }
  }
}

// A sender that has given up may free its buffer: whoever comes later does not read it.
TEST_P(Messages, NobodyReadsWhatASenderHasTakenBack) {
  const World world{GetParam().world.kind, 2, GetParam().world.transport, 300};
  const auto texts = run(world, [](const Rank& r) -> std::string {
    constexpr std::size_t kBytes = 4 << 20;
    Bytes data(kBytes, r.rank == 0 ? 1 : 0);
    if (r.rank == 0)
      return outcome(weftSend(data.data(), kBytes, weftUint8, 1, r.comm, nullptr, nullptr), r.comm);
    sleepMs(1500);
    const weftResult_t result =
        weftRecv(data.data(), kBytes, weftUint8, 0, r.comm, nullptr, nullptr);
    const bool untouched = std::ranges::all_of(data, [](std::uint8_t x) { return x == 0; });
    return untouched ? outcome(result, r.comm) : "read";
  });
  for (const std::string& text : texts)
    EXPECT_EQ(text.rfind("timeout: point-to-point call", 0), 0u) << text;
}

INSTANTIATE_TEST_SUITE_P(
    Ways, Messages,
    ::testing::Values(
        Way{"Threads2", {Kind::Threads, 2}}, Way{"Threads13", {Kind::Threads, 13}},
        Way{"Processes2", {Kind::Processes, 2}}, Way{"Processes5", {Kind::Processes, 5}},
        Way{"ProcessesStaged", {Kind::Processes, 3}, {{"WEFT_CMA", "off"}}},
        Way{"ThreadsFaulty", {Kind::Threads, 3, "faulty:5"}},
        Way{"ProcessesFaulty", {Kind::Processes, 3, "faulty:5"}},
        Way{"Wire", {Kind::Processes, 3, "ofi"}, {{"WEFT_OFI_PROVIDER", "tcp;ofi_rxm"}}}),
    [](const auto& way) { return std::string(way.param.name); });

}  // namespace
}  // namespace weft::testing
