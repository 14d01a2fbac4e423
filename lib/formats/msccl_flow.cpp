// SPDX-License-Identifier: Apache-2.0
#include "formats/msccl_flow.h"

#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "formats/results.h"

namespace weft::formats {
namespace {

// A block at work.
struct Worker {
  std::uint32_t rank = 0, number = 0;
  const MscclBlock* block = nullptr;
  std::size_t next = 0;
  std::uint32_t sends = 0, receives = 0;  // its channels
  bool isDone() const { return next == block->steps.size(); }
  const MscclStep& step() const { return block->steps[next]; }
};

// What is on its way from one GPU to another on one channel.
struct Channel {
  struct Sent {
    std::uint32_t message;
    std::uint32_t count;
    std::size_t line;
  };
  std::deque<Sent> sent;
  std::size_t sender = 0, receiver = 0;  // lines of the blocks; 0: none
  std::size_t senderWorker = 0;
};

class MscclRun {
 public:
  MscclRun(const MscclAlgorithm& algorithm, const std::string& file, const Limits& limits,
           Flow* flow)
      : algorithm_(algorithm), file_(file), limits_(limits), flow_(*flow) {
    for (std::uint32_t rank = 0; rank < algorithm.form.ranks; ++rank)
      contents_.emplace_back(*flow, rank, algorithm.gpus[rank].scratchChunks, algorithm.inPlace,
                             algorithm.gpus[rank].line);
  }

  Status run() {
    for (std::uint32_t rank = 0; rank < algorithm_.form.ranks; ++rank) WEFT_TRY(addWorkers(rank));
    for (std::uint32_t rank = 0; rank < algorithm_.form.ranks; ++rank)
      for (const MscclGpu::Copied& copied : algorithm_.gpus[rank].copied)
        contents_[rank].at(Contents::Buffer::Output, copied.output) = {
            contents_[rank].at(Contents::Buffer::Input, copied.input).value, copied.line};
    bool moved = true;
    while (moved) WEFT_TRY(runRound(&moved));
    for (const Worker& worker : workers_)
      if (!worker.isDone()) return stuck(worker);
    WEFT_TRY(checkReceived());
    return setResults(algorithm_.form, file_, &contents_, &flow_);
  }

 private:
  template <class... Parts>
  Status wrong(std::size_t line, const Parts&... parts) const {
    return Status::error(Code::InvalidArgument, file_, ":", line, ": ", parts...);
  }

  Status addWorkers(std::uint32_t rank) {
    const MscclGpu& gpu = algorithm_.gpus[rank];
    firstWorker_.push_back(workers_.size());
    for (std::uint32_t number = 0; number < gpu.blocks.size(); ++number) {
      const MscclBlock& block = gpu.blocks[number];
      Worker worker{.rank = rank, .number = number, .block = &block};
      if (block.sendPeer != MscclBlock::kNobody)
        WEFT_TRY(join(rank, block.sendPeer, block, &Channel::sender, &worker.sends));
      if (block.sendPeer != MscclBlock::kNobody)
        channels_[worker.sends].senderWorker = workers_.size();
      if (block.receivePeer != MscclBlock::kNobody)
        WEFT_TRY(join(block.receivePeer, rank, block, &Channel::receiver, &worker.receives));
      WEFT_TRY(checkDependencies(gpu, block));
      workers_.push_back(worker);
    }
    return {};
  }

  // One block sends on a channel to a peer, and one receives.
  Status join(std::uint32_t from, std::uint32_t to, const MscclBlock& block,
              std::size_t Channel::*end, std::uint32_t* number) {
    const auto key = std::tuple(from, to, block.channel);
    const auto [found, isNew] =
        numberOf_.try_emplace(key, static_cast<std::uint32_t>(channels_.size()));
    if (isNew) channels_.emplace_back();
    *number = found->second;
    std::size_t& line = channels_[*number].*end;
    if (line != 0)
      return wrong(block.line, "gpu ", from, " sends to gpu ", to, " on channel ", block.channel,
                   " by a second block at one end, the first is in line ", line,
                   "; fix: give each its own channel");
    line = block.line;
    return {};
  }

  Status checkDependencies(const MscclGpu& gpu, const MscclBlock& block) const {
    for (const MscclStep& step : block.steps) {
      if (step.afterBlock == MscclStep::kNone) continue;
      if (step.afterBlock >= gpu.blocks.size() ||
          step.afterStep >= gpu.blocks[step.afterBlock].steps.size())
        return wrong(step.line, "it runs after step ", step.afterStep, " of tb ", step.afterBlock,
                     ", which this gpu has not; fix: name one that it has");
      const MscclStep& before = gpu.blocks[step.afterBlock].steps[step.afterStep];
      if (!before.isAwaited)
        return wrong(before.line, "hasdep is not 1, but the step in line ", step.line,
                     " runs after this one; fix: say hasdep=\"1\"");
    }
    return {};
  }

  // ---- running

  bool mayRun(const Worker& worker) const {
    if (worker.isDone()) return false;
    const MscclStep& step = worker.step();
    if (step.afterBlock != MscclStep::kNone &&
        workers_[firstWorker_[worker.rank] + step.afterBlock].next <= step.afterStep)
      return false;
    return !step.receives() || !channels_[worker.receives].sent.empty();
  }

  // What sends alone goes first, as others wait for it.
  Status runRound(bool* moved) {
    std::vector<std::size_t> sending, other;
    for (std::size_t w = 0; w < workers_.size(); ++w)
      if (mayRun(workers_[w])) (workers_[w].step().receives() ? other : sending).push_back(w);
    *moved = !sending.empty() || !other.empty();
    for (const auto* list : {&sending, &other})
      for (const std::size_t w : *list) {
        WEFT_TRY(runStep(workers_[w]));
        ++workers_[w].next;
      }
    return {};
  }

  Status runStep(const Worker& worker) {
    const MscclStep& step = worker.step();
    if (step.kind == MscclKind::Nop) return {};
    if (flow_.values() + 2 * std::uint64_t{step.count} > limits_.values)
      return wrong(step.line, "the schedule moves more than ", limits_.values,
                   " chunks; fix: cut the message into fewer");
    Flow::Values values;
    if (step.receives()) WEFT_TRY(receive(worker, step, &values));
    if (step.readsSource()) WEFT_TRY(readSource(worker, step, &values));
    if (step.sends()) {
      const std::uint32_t message = flow_.send(worker.rank, worker.block->sendPeer, values);
      channels_[worker.sends].sent.push_back({message, step.count, step.line});
    }
    if (step.stores())
      for (std::uint32_t k = 0; k < step.count; ++k)
        chunk(worker.rank, step.dst, k) = {values[k], step.line};
    return {};
  }

  Contents::Chunk& chunk(std::uint32_t rank, MscclSlot slot, std::uint32_t k) {
    return contents_[rank].at(slot.buffer, slot.offset + k);
  }

  Status receive(const Worker& worker, const MscclStep& step, Flow::Values* values) {
    Channel& channel = channels_[worker.receives];
    const Channel::Sent sent = channel.sent.front();
    channel.sent.pop_front();
    if (sent.count != step.count)
      return wrong(step.line, "it receives ", step.count, " chunks, but line ", sent.line,
                   " sends ", sent.count, "; fix: let both say the same cnt");
    *values = flow_.receive(sent.message);
    return {};
  }

  // Of a copy and a send; with what has arrived, or what lies at the target, of a sum.
  Status readSource(const Worker& worker, const MscclStep& step, Flow::Values* values) {
    Flow::Values read;
    WEFT_TRY(readChunks(worker, step, step.src, &read));
    if (step.kind == MscclKind::Reduce)
      WEFT_TRY(readChunks(worker, step, step.dst, values));
    else if (!step.reducesArrived()) {
      *values = std::move(read);
      return {};
    }
    const Flow::Values addend = *values;
    if (flow_.add(worker.rank, read, addend, values)) return {};
    return wrong(step.line,
                 "it adds chunks that do not belong together, or to a sum of all ranks; "
                 "fix: name the chunks that are meant");
  }

  Status readChunks(const Worker& worker, const MscclStep& step, MscclSlot slot,
                    Flow::Values* values) {
    values->clear();
    for (std::uint32_t k = 0; k < step.count; ++k) {
      const Contents::Chunk& from = chunk(worker.rank, slot, k);
      if (!from.isThere())
        return wrong(step.line, "it reads chunk ", slot.offset + k, " of '",
                     Contents::nameOf(slot.buffer), "' on gpu ", worker.rank,
                     ", where nothing has been stored; fix: store it before");
      values->push_back(from.value);
    }
    return {};
  }

  // ---- the end

  // Whom a block waits for, that has not come so far: of its GPU, or who sends to it; null if nobody
  // can end it.
  const Worker* blockerOf(const Worker& worker) const {
    const MscclStep& step = worker.step();
    if (step.afterBlock != MscclStep::kNone) {
      const Worker& other = workers_[firstWorker_[worker.rank] + step.afterBlock];
      if (other.next <= step.afterStep) return &other;
    }
    const Channel& channel = channels_[worker.receives];
    if (channel.sender == 0) return nullptr;
    const Worker& sender = workers_[channel.senderWorker];
    return sender.isDone() ? nullptr : &sender;
  }

  // Where following those who wait for each other ends, in a circle or at one for whom there is nobody.
  Status stuck(const Worker& first) const {
    const Worker* worker = &first;
    std::set<const Worker*> seen;
    while (seen.insert(worker).second)
      if (const Worker* const blocker = blockerOf(*worker)) worker = blocker;
    const MscclStep& step = worker->step();
    if (const Worker* const blocker = blockerOf(*worker))
      return wrong(
          step.line, "it waits for ever: for line ", blocker->step().line,
          " or what follows it there, which waits for this one; fix: let no steps wait for "
          "each other");
    return wrong(step.line, "it waits for ever: for a message from gpu ",
                 worker->block->receivePeer, " on channel ", worker->block->channel,
                 channels_[worker->receives].sender == 0 ? ", to which no block sends"
                                                         : ", which sends fewer",
                 "; fix: let each message be sent and received once");
  }

  Status checkReceived() const {
    for (const auto& [key, number] : numberOf_)
      if (const Channel& channel = channels_[number]; !channel.sent.empty())
        return wrong(channel.sent.front().line, "what it sends to gpu ", std::get<1>(key),
                     " is never received; fix: let each message be sent and received once");
    return {};
  }

  const MscclAlgorithm& algorithm_;
  const std::string& file_;
  const Limits& limits_;
  Flow& flow_;
  std::vector<Contents> contents_;
  std::vector<Worker> workers_;
  std::vector<std::size_t> firstWorker_;  // by rank
  std::vector<Channel> channels_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> numberOf_;
};

}  // namespace

Status runMsccl(const MscclAlgorithm& algorithm, const std::string& file, const Limits& limits,
                Flow* flow) {
  return MscclRun(algorithm, file, limits, flow).run();
}

}  // namespace weft::formats
