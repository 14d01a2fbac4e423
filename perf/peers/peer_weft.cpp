// SPDX-License-Identifier: Apache-2.0
// weft, through its public header like any application. Words after the group: "own" takes buffers
// from weftMemAlloc, "registered" registers malloc'ed ones, "threads" makes the ranks threads of one
// process. Calls on fresh data have a communicator of their own, as they have in an application:
// what calls try holds for a communicator, and no application makes one kind of call both ways.
#include <fmt/format.h>
#include <weft/weft.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "rank.h"

namespace weft::peers {
namespace {

void check(weftResult_t result, weftComm_t comm = nullptr) {
  if (result != weftSuccess) throw std::runtime_error(weftGetLastError(comm));
}

enum class Buffers { Plain, Own, Registered };

class Weft : public Library {
 public:
  // Takes the communicator over.
  Weft(weftComm_t comm, const Seat& seat, Buffers buffers) : comm_(comm), buffers_(buffers) {
    int rank = -1;
    int ranks = -1;
    check(weftCommUserRank(comm_, &rank), comm_);
    check(weftCommCount(comm_, &ranks), comm_);
    if (rank != seat.rank || ranks != seat.ranks) throw std::runtime_error("wrong weft world");
  }
  ~Weft() override {
    weftCommDestroy(fresh_);
    weftCommDestroy(comm_);
  }

  void enter(Mode mode) override {
    if (mode == Mode::Fresh && fresh_ == nullptr)
      check(weftCommSplit(comm_, 0, 0, &fresh_, nullptr), comm_);
    used_ = mode == Mode::Fresh ? fresh_ : comm_;
  }

  Memory allocate(std::size_t bytes) override {
    if (buffers_ == Buffers::Plain) return Library::allocate(bytes);
    if (buffers_ == Buffers::Registered) return allocateRegistered(bytes);
    void* memory = nullptr;
    check(weftMemAlloc(&memory, bytes));
    return {memory, weftMemFree};
  }

  void run(const Call& call) override { check(runWeft(call), used_); }

 private:
  weftResult_t runWeft(const Call& call) const {
    switch (call.collective) {
      case Collective::AllReduce:
        return weftAllReduce(call.in, call.out, call.total, weftFloat32, weftSum, used_, nullptr,
                             nullptr);
      case Collective::AllGather:
        return weftAllGather(call.in, call.out, call.block, weftFloat32, used_, nullptr, nullptr);
      case Collective::ReduceScatter:
        return weftReduceScatter(call.in, call.out, call.block, weftFloat32, weftSum, used_,
                                 nullptr, nullptr);
      case Collective::Broadcast:
        return weftBroadcast(call.out, call.out, call.total, weftFloat32, kRoot, used_, nullptr,
                             nullptr);
      case Collective::Reduce:
        return weftReduce(call.in, call.out, call.total, weftFloat32, weftSum, kRoot, used_,
                          nullptr, nullptr);
      case Collective::Gather:
        return weftGather(call.in, call.out, call.block, weftFloat32, kRoot, used_, nullptr,
                          nullptr);
      case Collective::Scatter:
        return weftScatter(call.in, call.out, call.block, weftFloat32, kRoot, used_, nullptr,
                           nullptr);
      case Collective::AllToAll:
        return weftAlltoAll(call.in, call.out, call.block, weftFloat32, used_, nullptr, nullptr);
    }
    return weftInvalidArgument;
  }

  // As an application has it: malloc's 16 bytes past a page.
  Memory allocateRegistered(std::size_t bytes) const {
    const Memory memory(std::malloc(bytes), std::free);
    void* handle = nullptr;
    check(weftCommRegister(used_, memory.get(), bytes, &handle), used_);
    return {memory.get(), [memory, handle, comm = used_](void*) {
              static_cast<void>(weftCommDeregister(comm, handle));
            }};
  }

  const weftComm_t comm_;
  weftComm_t fresh_ = nullptr;
  weftComm_t used_ = comm_;  // one of them
  const Buffers buffers_;
};

int serveAsProcess(int argc, char** argv, Buffers buffers) {
  return serveProcess(argc, argv, [buffers](const Seat& seat) {
    weftComm_t comm = nullptr;
    check(weftCommInitFromEnv(&comm, nullptr));
    return std::make_unique<Weft>(comm, seat, buffers);
  });
}

int serveAsThreads(int argc, char** argv, Buffers buffers) {
  std::vector<weftComm_t> comms(static_cast<std::size_t>(takeSeat(argc, argv, 0).ranks));
  check(weftCommInitAll(comms.data(), static_cast<int>(comms.size()), nullptr));
  return serveThreads(argc, argv, [&comms, buffers](const Seat& seat) {
    return std::make_unique<Weft>(comms[static_cast<std::size_t>(seat.rank)], seat, buffers);
  });
}

}  // namespace
}  // namespace weft::peers

int main(int argc, char** argv) {
  using namespace weft::peers;
  const auto isAsked = [&](std::string_view word) {
    return std::find(argv + 1, argv + argc, word) != argv + argc;
  };
  try {
    Buffers buffers = Buffers::Plain;
    if (isAsked("own")) buffers = Buffers::Own;
    if (isAsked("registered")) buffers = Buffers::Registered;
    return isAsked("threads") ? serveAsThreads(argc, argv, buffers)
                              : serveAsProcess(argc, argv, buffers);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return EXIT_FAILURE;
  }
}
