// SPDX-License-Identifier: Apache-2.0
// torch.distributed's Gloo over TCP on the loopback interface, through libtorch's C++ interface.
// argv[3] is the file where the ranks meet. It has no all-reduce and no reduce out of place, so the
// input is copied to the output first; and no reduce-scatter, which is an all-reduce of which each rank
// keeps its block.
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <vector>

#include "rank.h"

namespace weft::peers {
namespace {

using Backend = c10d::ProcessGroupGloo;

class TorchGloo : public Library {
 public:
  TorchGloo(const Seat& seat, const std::string& file) : ranks_(seat.ranks) {
    at::set_num_threads(1);  // the rank has one core
    auto options = Backend::Options::create();
    options->devices = {Backend::createDeviceForHostname("127.0.0.1")};
    auto store = c10::make_intrusive<c10d::FileStore>(file, seat.ranks);
    backend_ = c10::make_intrusive<Backend>(store, seat.rank, seat.ranks, options);
  }

  void prepare(const Call& call) override {
    const bool whole = call.collective == Collective::ReduceScatter ||
                       (call.collective == Collective::Reduce && !call.isRoot());
    sum_ = std::vector<float>(whole ? call.total : 0);
  }

  void run(const Call& call) override {
    switch (call.collective) {
      case Collective::AllReduce:
        return allReduce(call, call.out);
      case Collective::AllGather:
        return allGather(call);
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
        return allToAll(call);
    }
  }

 private:
  static at::Tensor tensor(float* data, std::size_t count) {
    return torch::from_blob(data, {static_cast<std::int64_t>(count)});
  }

  void allReduce(const Call& call, float* out) {
    std::copy_n(call.in, call.total, out);
    std::vector<at::Tensor> tensors = {tensor(out, call.total)};
    backend_->allreduce(tensors)->wait();
  }

  void reduceScatter(const Call& call) {
    allReduce(call, sum_.data());
    const std::size_t mine = static_cast<std::size_t>(call.rank) * call.block;
    std::copy_n(sum_.data() + mine, call.block, call.out);
  }

  void allGather(const Call& call) {
    std::vector<at::Tensor> input = {tensor(call.in, call.block)};
    std::vector<std::vector<at::Tensor>> output = {blocksOf(call.out, call)};
    backend_->allgather(output, input)->wait();
  }

  void broadcast(const Call& call) {
    std::vector<at::Tensor> tensors = {tensor(call.out, call.total)};
    backend_->broadcast(tensors)->wait();
  }

  void reduce(const Call& call) {
    float* const out = call.isRoot() ? call.out : sum_.data();
    std::copy_n(call.in, call.total, out);
    std::vector<at::Tensor> tensors = {tensor(out, call.total)};
    backend_->reduce(tensors)->wait();
  }

  std::vector<at::Tensor> blocksOf(float* data, const Call& call) const {
    std::vector<at::Tensor> blocks;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks_); ++rank)
      blocks.push_back(tensor(data + rank * call.block, call.block));
    return blocks;
  }

  void gather(const Call& call) {
    std::vector<at::Tensor> input = {tensor(call.in, call.block)};
    std::vector<std::vector<at::Tensor>> output;
    if (call.isRoot()) output.push_back(blocksOf(call.out, call));
    backend_->gather(output, input)->wait();
  }

  void scatter(const Call& call) {
    std::vector<at::Tensor> output = {tensor(call.out, call.block)};
    std::vector<std::vector<at::Tensor>> input;
    if (call.isRoot()) input.push_back(blocksOf(call.in, call));
    backend_->scatter(output, input)->wait();
  }

  void allToAll(const Call& call) {
    at::Tensor output = tensor(call.out, call.total);
    at::Tensor input = tensor(call.in, call.total);
    std::vector<std::int64_t> even;  // equal parts
    backend_->alltoall_base(output, input, even, even)->wait();
  }

  const int ranks_;
  c10::intrusive_ptr<Backend> backend_;
  std::vector<float>
      sum_;  // of a reduce-scatter: the blocks of all ranks; of a reduce: who is not the root
};

}  // namespace
}  // namespace weft::peers

int main(int argc, char** argv) {
  using namespace weft::peers;
  return serveProcess(argc, argv, [&](const Seat& seat) {
    if (argc != 4) throw std::runtime_error("usage: started by weft-peers only");
    return std::make_unique<TorchGloo>(seat, argv[3]);
  });
}
