// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/efadv.h>
#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

// A fake EFA device: stand-ins for what the efa provider of libfabric calls in libibverbs and
// libefa. The wire is one datagram socket per queue pair; what has arrived is handed out in random
// order, as the real one does it.
namespace fake {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMtu = 8760;
constexpr std::uint32_t kSendSlots = 4096;
constexpr std::uint32_t kReceiveSlots = 8192;

// FAKE_EFA_*, read once.
struct Knobs {
  std::uint64_t seed = 1;
  std::uint64_t devices = 4;
  bool shuffle = true;            // SHUFFLE: 0 keeps the order of the sockets
  std::uint64_t delayUs = 0;      // DELAY_US: each arrival and completion waits up to that long
  std::uint64_t notReady = 0;     // NOT_READY: percent of sends that find no receive posted
  bool reads = true;              // READS: 0 = a device without RDMA read
  std::uint64_t dieAfter = 0;     // DIE_AFTER: so many sends, then the queue pair is in error
  std::uint64_t muteAfter = 0;    // MUTE_AFTER: so many sends, then the device does not answer
  std::uint64_t timeoutMs = 500;  // TIMEOUT_MS: until the sender to a mute device is told
  std::string
      tally;  // TALLY: file to which each queue pair adds what it delivered, and out of order
  std::uint64_t memoryKb = 0;  // MEMORY_KB: how much can be registered; 0 = all
  std::string wire = "/tmp";   // WIRE: folder of the sockets, which hosts of one machine share
};
const Knobs& knobs();

// What the device returns as vendor error (libfabric's efa_errno.h).
enum Fate : std::uint32_t {
  kWell = 0,
  kFlushed = 1,
  kBadKey = 5,
  kBadAddress = 7,
  kNoSuchQueue = 9,
  kNotReady = 10,
  kUnresponsive = 13,
};

std::recursive_mutex& lock();  // the provider posts sends between start_poll and end_poll
std::uint64_t draw(std::uint64_t below);
bool chance(std::uint64_t percent);
Clock::time_point soon();  // now, plus a draw of the delay

// Where a queue pair lives.
struct Place {
  ibv_gid gid = {};
  std::uint32_t queue = 0;
};

struct Completion {
  Fate fate = kWell;
  std::uint64_t work = 0;
  ibv_wc_opcode opcode = IBV_WC_SEND;
  std::uint32_t bytes = 0;
  Place source;
  Clock::time_point ready;
};

struct Datagram {
  Place source;
  std::vector<std::byte> bytes;
  Clock::time_point ready;
};

struct Send {
  std::uint64_t work = 0;
  Place to;
  std::vector<std::byte> bytes;
};

struct Read {
  std::uint64_t work = 0;
  Place from;
  std::uint64_t address = 0;
  std::vector<ibv_sge> into;
};

struct Receive {
  std::uint64_t work = 0;
  std::vector<ibv_sge> into;
};

struct Queue;

struct CompletionQueue {
  ibv_cq_ex base = {};  // first: what the provider holds
  efadv_cq efa = {};
  std::vector<Queue*> queues;
  std::vector<Completion> done;
  Completion current;
};

struct Queue {
  ibv_qp_ex base = {};  // first
  CompletionQueue* completions = nullptr;
  Place place;
  int socket = -1;
  std::uint64_t sent = 0;
  bool dead = false;
  bool mute = false;
  std::vector<Send> backlog;  // the socket there is full
  std::deque<Receive> receives;
  std::vector<Datagram> stash;  // arrived, not handed out
  std::uint64_t delivered = 0;
  std::uint64_t overtook = 0;  // of those, handed out before an earlier one
  Read read;                   // being built
};

// device.cpp
bool registered(const ibv_sge&);
ibv_gid gidOf(const ibv_ah*);
int ahNumberOf(const ibv_gid&);  // -1: no address handle leads there

// wire.cpp
int openSocket(const Place&);  // -1: errno
void closeSocket(Queue&);
void fail(Queue&, Fate, std::uint64_t work, ibv_wc_opcode, Clock::time_point);
// Sends now, or later if the way is full, or fails.
void launch(Queue&, Send&&);
void pump(Queue&);
void readRemote(Queue&, const Read&);

}  // namespace fake
