// SPDX-License-Identifier: Apache-2.0
// Gloo over TCP on the loopback interface, or on that of PEER_ADDRESS. argv[3] is the folder where
// the ranks meet, argv[4] the all-reduce algorithm (ring, bcube). Reduce-scatter is an all-reduce
// of which each rank keeps its block: Gloo's own ReduceScatterHalvingDoubling returned wrong sums
// in back-to-back calls of 64 MiB.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "rank.h"

namespace weft::peers {
namespace {

using Algorithm = gloo::AllreduceOptions::Algorithm;

class Gloo : public Library {
 public:
  Gloo(const Seat& seat, const std::string& folder, Algorithm algorithm)
      : algorithm_(algorithm),
        context_(std::make_shared<gloo::rendezvous::Context>(seat.rank, seat.ranks)) {
    std::filesystem::create_directories(folder);
    gloo::rendezvous::FileStore store(folder);
    const char* const address = std::getenv("PEER_ADDRESS");
    auto device = gloo::transport::tcp::CreateDevice(address != nullptr ? address : "127.0.0.1");
    context_->connectFullMesh(store, device);
  }

  void prepare(const Call& call) override {
    const bool needs = call.collective == Collective::ReduceScatter ||
                       (call.collective == Collective::Reduce && !call.isRoot());
    if (needs) sum_.resize(call.total);
  }

  void run(const Call& call) override {
    switch (call.collective) {
      case Collective::AllReduce:
        return allReduce(call, call.out);
      case Collective::AllGather:
        return exchange<gloo::AllgatherOptions>(call, gloo::allgather);
      case Collective::ReduceScatter:
        return reduceScatter(call);
      case Collective::Broadcast:
        return broadcast(call);
      case Collective::Reduce:
        return reduce(call);
      case Collective::Gather:
        return gather(call);
      case Collective::Scatter:
        return scatter(call);
      case Collective::AllToAll:
        return exchange<gloo::AlltoallOptions>(call, gloo::alltoall);
    }
  }

 private:
  using Sum = void (*)(void*, const void*, const void*, std::size_t);

  void allReduce(const Call& call, float* out) {
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(algorithm_);
    options.setInput(call.in, call.total);
    options.setOutput(out, call.total);
    options.setReduceFunction(static_cast<Sum>(&gloo::sum<float>));
    gloo::allreduce(options);
  }

  void reduceScatter(const Call& call) {
    allReduce(call, sum_.data());
    const std::size_t mine = static_cast<std::size_t>(call.rank) * call.block;
    std::copy_n(sum_.data() + mine, call.block, call.out);
  }

  void broadcast(const Call& call) {
    gloo::BroadcastOptions options(context_);
    options.setRoot(kRoot);
    options.setOutput(call.out, call.total);
    gloo::broadcast(options);
  }

  // Every rank adds in its output.
  void reduce(const Call& call) {
    gloo::ReduceOptions options(context_);
    options.setRoot(kRoot);
    options.setInput(call.in, call.total);
    options.setOutput(call.isRoot() ? call.out : sum_.data(), call.total);
    options.setReduceFunction(static_cast<Sum>(&gloo::sum<float>));
    gloo::reduce(options);
  }

  void gather(const Call& call) {
    gloo::GatherOptions options(context_);
    options.setRoot(kRoot);
    options.setInput(call.in, call.block);
    if (call.isRoot()) options.setOutput(call.out, call.total);
    gloo::gather(options);
  }

  void scatter(const Call& call) {
    gloo::ScatterOptions options(context_);
    options.setRoot(kRoot);
    std::vector<float*> blocks;
    for (int to = 0; call.isRoot() && to < call.ranks; ++to)
      blocks.push_back(call.in + static_cast<std::size_t>(to) * call.block);
    if (call.isRoot()) options.setInputs(blocks, call.block);
    options.setOutput(call.out, call.block);
    gloo::scatter(options);
  }

  template <typename Options>
  void exchange(const Call& call, void (*collective)(Options&)) {
    Options options(context_);
    options.setInput(call.in, call.inCount());
    options.setOutput(call.out, call.outCount());
    collective(options);
  }

  const Algorithm algorithm_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::vector<float>
      sum_;  // of a reduce-scatter: the blocks of all ranks; of a reduce: who is not the root
};

}  // namespace
}  // namespace weft::peers

int main(int argc, char** argv) {
  using namespace weft::peers;
  return serveProcess(argc, argv, [&](const Seat& seat) {
    if (argc != 5) throw std::runtime_error("usage: started by weft-peers only");
    const bool ring = std::string(argv[4]) == "ring";
    return std::make_unique<Gloo>(seat, argv[3], ring ? Algorithm::RING : Algorithm::BCUBE);
  });
}
