// SPDX-License-Identifier: Apache-2.0
// weft, through its public header like any application.
#include <weft/weft.h>

#include <stdexcept>

#include "rank.h"

namespace weft::peers {
namespace {

class Weft : public Library {
 public:
  explicit Weft(const Seat& seat) {
    check(weftCommInitFromEnv(&comm_, nullptr));
    int rank = -1;
    int ranks = -1;
    check(weftCommUserRank(comm_, &rank));
    check(weftCommCount(comm_, &ranks));
    if (rank != seat.rank || ranks != seat.ranks) throw std::runtime_error("wrong weft world");
  }
  ~Weft() override { weftCommDestroy(comm_); }

  void run(const Call& call) override { check(runWeft(call)); }

 private:
  void check(weftResult_t result) const {
    if (result != weftSuccess) throw std::runtime_error(weftGetLastError(comm_));
  }

  weftResult_t runWeft(const Call& call) const {
    switch (call.collective) {
      case Collective::AllReduce:
        return weftAllReduce(call.in, call.out, call.total, weftFloat32, weftSum, comm_, nullptr,
                             nullptr);
      case Collective::AllGather:
        return weftAllGather(call.in, call.out, call.block, weftFloat32, comm_, nullptr, nullptr);
      case Collective::ReduceScatter:
        return weftReduceScatter(call.in, call.out, call.block, weftFloat32, weftSum, comm_,
                                 nullptr, nullptr);
      case Collective::Broadcast:
        return weftBroadcast(call.out, call.out, call.total, weftFloat32, 0, comm_, nullptr,
                             nullptr);
      case Collective::AllToAll:
        return weftAlltoAll(call.in, call.out, call.block, weftFloat32, comm_, nullptr, nullptr);
    }
    return weftInvalidArgument;
  }

  weftComm_t comm_ = nullptr;
};

}  // namespace
}  // namespace weft::peers

int main(int argc, char** argv) {
  using namespace weft::peers;
  return serveProcess(argc, argv, [](const Seat& seat) { return std::make_unique<Weft>(seat); });
}
