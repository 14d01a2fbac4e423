// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <weft/weft.hpp>

#include "mail.h"
#include "monitored_barrier.h"
#include "queue.h"
#include "reduction.h"
#include "rendezvous.h"

namespace weft::pytorch {

// Memory in which tensors lie side by side for one call; kept for the next, and shared with the ranks of this host.
class Scratch {
 public:
  ~Scratch() { static_cast<void>(weftMemFree(memory_)); }
  char* atLeast(std::size_t bytes);

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

// torch.distributed's back end: each collective is one call of weft.h on the tensor's own memory, in the order of
// issue, on a queue. Arguments are checked before a call is queued: those that are refused have had no effect.
//   std::invalid_argument (ValueError) tells of arguments, weft::Error (RuntimeError) with weft's line of all else.
class ProcessGroupWeft final : public Base {
 public:
  // Returns when all ranks have joined.
  explicit ProcessGroupWeft(const Identity& who);
  ~ProcessGroupWeft() override;

  const std::string getBackendName() const override { return "weft"; }

  Work broadcast(Tensors&, const c10d::BroadcastOptions&) override;
  Work allreduce(Tensors&, const c10d::AllreduceOptions&) override;
  Work allreduce_coalesced(Tensors&, const c10d::AllreduceCoalescedOptions&) override;
  Work reduce(Tensors&, const c10d::ReduceOptions&) override;
  Work allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::AllgatherOptions&) override;
  Work _allgather_base(at::Tensor& output, at::Tensor& input,
                       const c10d::AllgatherOptions&) override;
  Work allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                           const c10d::AllgatherOptions&) override;
  Work gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions&) override;
  Work scatter(Tensors& outputs, std::vector<Tensors>& inputs,
               const c10d::ScatterOptions&) override;
  Work reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                      const c10d::ReduceScatterOptions&) override;
  Work _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                            const c10d::ReduceScatterOptions&) override;
  Work alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& outputSplits,
                     std::vector<std::int64_t>& inputSplits, const c10d::AllToAllOptions&) override;
  Work alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions&) override;
  Work barrier(const c10d::BarrierOptions&) override;

  Work send(Tensors&, int to, int tag) override;
  Work recv(Tensors&, int from, int tag) override;
  Work recvAnysource(Tensors&, int tag) override;

  void monitoredBarrier(const c10d::BarrierOptions&, bool waitAllRanks) override;
  void setSequenceNumberForGroup() override;
  std::uint64_t getSequenceNumberForGroup() override;

  // ---- What only PyTorch 2 knows, some of it only later releases; where they do, these override.

  // The forms that functional collectives use.
  virtual Work allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                               const c10d::AllgatherOptions&);
  virtual Work reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                               const c10d::ReduceScatterOptions&);
  // Of calls and messages from now on that have none of their own.
  virtual void setTimeout(Milliseconds timeout);
  // The group of these of this one's ranks, which all of them make; nothing on the others. They meet through `store`.
  virtual bool supportsSplitting() const { return true; }
  virtual c10::intrusive_ptr<Base> split(const c10::intrusive_ptr<c10d::Store>& store,
                                         const std::vector<int>& ranks,
                                         const c10::intrusive_ptr<Options>& options);
  virtual c10::intrusive_ptr<Options> getBackendOptions();
  // What destroy_process_group() calls: the group ends, whoever still holds it. abort() does not wait for calls in flight.
  virtual void shutdown();
  virtual void abort();

 private:
  // What a call of weft needs beside its tensors.
  struct Way {
    weftComm_t comm;
    const weftOpts_t* options;
    Scratch& scratch;
  };
  struct Shared;  // what outlives this object while a call still runs

  Work submit(const Title& title, const Tensors& inputs, Tensors outputs, Milliseconds timeout,
              std::size_t bytes, std::function<void(const Way&)> call);
  void refuseInChild(const char* call) const;
  int peer(const char* call, int rank) const;
  void close(Milliseconds patience);

  const Identity who_;
  std::shared_ptr<Shared> shared_;
  std::atomic<int> timeoutMs_;
  std::atomic<std::uint64_t> sequence_ = 0;
};

}  // namespace weft::pytorch
