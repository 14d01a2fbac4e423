// SPDX-License-Identifier: Apache-2.0
// Shared buffers: every rank does one n-th of the work on the buffers of all, without a copy in
// between (as NVLink and multicast kernels do on GPUs, and XHC over XPMEM on hosts).
#include "schedule/generators.h"
#include "schedule/transforms.h"

namespace weft {
namespace {

Schedule opened(Schedule s, std::function<Program(uint32_t)> program) {
  s.program = std::move(program);
  return openBuffers(std::move(s));
}

// Block `block` of my In or of a peer's.
Slot inAt(uint32_t rank, uint32_t me, uint32_t block) {
  return rank == me ? in(block) : inOf(rank, block);
}

// Adds block `me` of all inputs in rank order, each where it lies.
void addMine(Program& p, uint32_t n, uint32_t me, Slot to) {
  std::vector<Slot> addends;
  for (uint32_t r = 0; r < n; ++r) addends.push_back(inAt(r, me, me));
  p.reduce(to, addends, {me});
  p.kernel(KernelId::Finish, to, to, {me});
}

// Stores my out(block) to all others but `except`, and waits for theirs, which are numbered alike.
void storeToAll(Program& p, uint32_t n, uint32_t me, uint32_t except) {
  for (uint32_t k = 1; k < n; ++k) {
    const uint32_t to = (me + k) % n;
    if (to != except) p.put(to, out(me), out(me), {me});
  }
}

void waitForAll(Program& p, uint32_t n, uint32_t me) {
  for (uint32_t k = 1; k < n; ++k) {
    const uint32_t from = (me + n - k) % n;
    p.wait(out(from), {from});
  }
}

}  // namespace

Schedule sharedAllReduce(uint32_t n) {
  return opened({.name = "all-reduce shared",
                 .collective = Collective::AllReduce,
                 .ranks = n,
                 .inChunks = n,
                 .outChunks = n,
                 .logicalChunks = n},
                [n](uint32_t me) {
                  Program p;
                  addMine(p, n, me, out(me));
                  storeToAll(p, n, me, n);
                  waitForAll(p, n, me);
                  return p;
                });
}

Schedule sharedReduceScatter(uint32_t n) {
  return opened({.name = "reduce-scatter shared",
                 .collective = Collective::ReduceScatter,
                 .ranks = n,
                 .inChunks = n,
                 .outChunks = 1,
                 .logicalChunks = n},
                [n](uint32_t me) {
                  Program p;
                  addMine(p, n, me, out(0));
                  return p;
                });
}

Schedule sharedAllGather(uint32_t n) {
  return opened({.name = "all-gather shared",
                 .collective = Collective::AllGather,
                 .ranks = n,
                 .inChunks = 1,
                 .outChunks = n,
                 .logicalChunks = n},
                [n](uint32_t me) {
                  Program p;
                  p.copy(in(0), out(me), {me});
                  storeToAll(p, n, me, n);
                  waitForAll(p, n, me);
                  return p;
                });
}

// Every rank takes its n-th of the root's vector to all others. The root itself, whose Out often is
// its In, copies that alone.
Schedule sharedBroadcast(uint32_t n, uint32_t root) {
  return opened({.name = "broadcast shared",
                 .collective = Collective::Broadcast,
                 .root = root,
                 .ranks = n,
                 .inChunks = n,
                 .outChunks = n,
                 .logicalChunks = n},
                [n, root](uint32_t me) {
                  Program p;
                  if (me == root) {
                    p.copy(in(0), out(0), {0, n});
                    storeToAll(p, n, me, n);
                    return p;
                  }
                  p.copy(inOf(root, me), out(me), {me});
                  storeToAll(p, n, me, root);
                  waitForAll(p, n, me);
                  return p;
                });
}

Schedule sharedAllToAll(uint32_t n) {
  return opened({.name = "all-to-all shared",
                 .collective = Collective::AllToAll,
                 .ranks = n,
                 .inChunks = n,
                 .outChunks = n,
                 .logicalChunks = n},
                directAllToAll(n).program);
}

}  // namespace weft
