// SPDX-License-Identifier: Apache-2.0
#include "formats/mscclpp_flow.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "formats/results.h"

namespace weft::formats {
namespace {

using Kind = MscclppOp::Kind;

// A block at work.
struct Block {
  std::uint32_t rank = 0;
  const std::vector<MscclppOp>* ops = nullptr;
  std::size_t next = 0;
  std::uint64_t meeting = 0;  // at a barrier: which arrival there lets it go on; 0: it has not come
  bool isDone() const { return next == ops->size(); }
  const MscclppOp& op() const { return (*ops)[next]; }
};

// What has been put into a peer.
struct Put {
  std::uint32_t message = 0;
  MscclppPlace target;
  std::size_t line = 0;
  bool isReceived = false;
};

class MscclppRun {
 public:
  MscclppRun(const MscclppPlan& plan, const std::string& file, const Limits& limits, Flow* flow)
      : plan_(plan), file_(file), limits_(limits), flow_(*flow), barriers_(plan.form.ranks) {
    for (std::uint32_t rank = 0; rank < plan.form.ranks; ++rank) {
      const MscclppGpu& gpu = plan.gpus[rank];
      contents_.emplace_back(*flow, rank, gpu.scratchChunks, plan.inPlace, gpu.line);
      semaphores_.push_back(gpu.semaphores);
      for (const std::vector<MscclppOp>& ops : gpu.blocks)
        blocks_.push_back({.rank = rank, .ops = &ops});
    }
  }

  Status run() {
    WEFT_TRY(checkPlaces());
    bool moved = true;
    while (moved) WEFT_TRY(runRound(&moved));
    for (const Block& block : blocks_)
      if (!block.isDone()) return stuck(block);
    for (const auto& [pair, puts] : puts_)
      for (const Put& put : puts)
        if (!put.isReceived)
          return wrong(put.line, "what it puts into gpu ", pair.second,
                       " is never waited for; fix: signal it, and wait for that");
    return setResults(plan_.form, file_, &contents_, &flow_);
  }

 private:
  using Pair = std::pair<std::uint32_t, std::uint32_t>;  // from, to

  template <class... Parts>
  Status wrong(std::size_t line, const Parts&... parts) const {
    return Status::error(Code::InvalidArgument, file_, ":", line, ": ", parts...);
  }

  Status checkPlaces() const {
    for (const Block& block : blocks_)
      for (const MscclppOp& op : *block.ops)
        for (const auto* places : {&op.sources, &op.targets})
          for (const MscclppPlace& place : *places) {
            const std::uint32_t size = contents_[place.rank].size(place.buffer);
            if (place.first > size || place.count > size - place.first)
              return wrong(op.line, "chunks ", place.first, " to ", place.first + place.count - 1,
                           " of '", Contents::nameOf(place.buffer), "' of gpu ", place.rank,
                           ", which has ", size, "; fix: stay inside");
          }
    return {};
  }

  // ---- running

  bool sends(const Block& block) const {
    return !block.isDone() && (block.op().kind == Kind::Move || block.op().kind == Kind::Signal);
  }

  // What others wait for goes first.
  Status runRound(bool* moved) {
    std::vector<std::size_t> first, second;
    for (std::size_t b = 0; b < blocks_.size(); ++b)
      if (mayRun(&blocks_[b])) (sends(blocks_[b]) ? first : second).push_back(b);
    *moved = false;
    for (const auto* list : {&first, &second})
      for (const std::size_t b : *list) {
        if (!mayRun(&blocks_[b])) continue;  // another has taken its semaphore
        *moved = true;
        WEFT_TRY(runOp(blocks_[b].rank, blocks_[b].op()));
        blocks_[b].meeting = 0;
        ++blocks_[b].next;
      }
    return {};
  }

  bool mayRun(Block* block) {
    if (block->isDone()) return false;
    const MscclppOp& op = block->op();
    switch (op.kind) {
      case Kind::Wait:
        return std::ranges::all_of(op.channels, [&](MscclppChannel channel) {
          return !signalsTo(block->rank, channel).empty();
        });
      case Kind::Barrier:
        return hasMet(block, op);
      case Kind::Acquire:
        return std::ranges::all_of(op.semaphores, [&](std::uint32_t number) {
          return semaphores_[block->rank][number] > 0;
        });
      default:
        return std::ranges::all_of(op.sources,
                                   [&](const MscclppPlace& place) { return isThere(place); });
    }
  }

  // Packets are waited for by who reads them.
  bool isThere(const MscclppPlace& place) {
    for (std::uint32_t k = 0; place.isPacket && k < place.count; ++k)
      if (!packets_.contains(keyOf(place, k)) && !chunk(place, k).isThere()) return false;
    return true;
  }

  bool hasMet(Block* block, const MscclppOp& op) {
    std::uint64_t& arrived = barriers_[block->rank][op.barrier];
    if (block->meeting == 0) {
      ++arrived;
      block->meeting = (arrived + op.blocks - 1) / op.blocks * op.blocks;
    }
    return arrived >= block->meeting;
  }

  Status runOp(std::uint32_t rank, const MscclppOp& op) {
    switch (op.kind) {
      case Kind::Signal:
        signal(rank, op);
        return {};
      case Kind::Wait:
        return wait(rank, op);
      case Kind::Acquire:
        for (const std::uint32_t number : op.semaphores) --semaphores_[rank][number];
        return {};
      case Kind::Release:
        for (const std::uint32_t number : op.semaphores) ++semaphores_[rank][number];
        return {};
      case Kind::Move:
        WEFT_TRY(move(rank, op));
        if (op.signals) signal(rank, op);
        return {};
      case Kind::Sum:
        return add(rank, op);
      default:
        return {};
    }
  }

  // ---- signals

  // What they cover: so many puts between these ranks.
  std::deque<std::size_t>& signalsTo(std::uint32_t rank, MscclppChannel channel) {
    return signals_[{channel.peer, rank, channel.number}];
  }

  void signal(std::uint32_t rank, const MscclppOp& op) {
    for (const MscclppChannel channel : op.channels)
      signals_[{rank, channel.peer, channel.number}].push_back(puts_[{rank, channel.peer}].size());
  }

  Status wait(std::uint32_t rank, const MscclppOp& op) {
    for (const MscclppChannel channel : op.channels) {
      std::deque<std::size_t>& signals = signalsTo(rank, channel);
      if (signals.empty())
        return wrong(op.line, "it waits for two signals of one channel at once; fix: name it once");
      const Pair pair{channel.peer, rank};
      const std::size_t covered = signals.front();
      signals.pop_front();
      for (std::size_t& next = received_[pair]; next < covered; ++next)
        if (!puts_[pair][next].target.isPacket) receive(&puts_[pair][next]);
    }
    return {};
  }

  void receive(Put* put) {
    if (std::exchange(put->isReceived, true)) return;
    const Flow::Values values = flow_.receive(put->message);
    store(put->target, values, put->line);
  }

  // ---- data

  Status move(std::uint32_t rank, const MscclppOp& op) {
    for (std::size_t k = 0; k < op.sources.size(); ++k) {
      Flow::Values values;
      WEFT_TRY(read(rank, op, op.sources[k], &values));
      write(rank, op, op.targets[k], values);
    }
    return {};
  }

  Status add(std::uint32_t rank, const MscclppOp& op) {
    Flow::Values sum;
    WEFT_TRY(read(rank, op, op.sources[0], &sum));
    for (std::size_t k = 1; k < op.sources.size(); ++k) {
      Flow::Values addend, partial = std::move(sum);
      WEFT_TRY(read(rank, op, op.sources[k], &addend));
      if (!flow_.add(rank, partial, addend, &sum))
        return wrong(op.line,
                     "it adds chunks that do not belong together, or to a sum of all "
                     "ranks; fix: name the chunks that are meant");
    }
    for (const MscclppPlace& target : op.targets) write(rank, op, target, sum);
    return {};
  }

  Contents::Chunk& chunk(const MscclppPlace& place, std::uint32_t k) {
    return contents_[place.rank].at(place.buffer, place.first + k);
  }
  static std::tuple<std::uint32_t, Contents::Buffer, std::uint32_t> keyOf(const MscclppPlace& place,
                                                                          std::uint32_t k) {
    return {place.rank, place.buffer, place.first + k};
  }

  Status read(std::uint32_t rank, const MscclppOp& op, const MscclppPlace& place,
              Flow::Values* values) {
    values->clear();
    if (flow_.values() + 2 * std::uint64_t{place.count} > limits_.values)
      return wrong(op.line, "the plan moves more than ", limits_.values,
                   " chunks; fix: cut the message into fewer");
    for (std::uint32_t k = 0; k < place.count; ++k) {
      if (place.isPacket) takePacket(place, k);
      const Contents::Chunk& from = chunk(place, k);
      if (!from.isThere())
        return wrong(op.line, "it reads chunk ", place.first + k, " of '",
                     Contents::nameOf(place.buffer), "' of gpu ", place.rank,
                     ", where nothing has been stored; fix: store it before");
      values->push_back(from.value);
    }
    if (place.rank != rank) *values = flow_.receive(flow_.sendAtOnce(place.rank, rank, *values));
    return {};
  }

  void takePacket(const MscclppPlace& place, std::uint32_t k) {
    const auto found = packets_.find(keyOf(place, k));
    if (found == packets_.end()) return;
    const auto [pair, number] = found->second;
    Put& put = puts_[pair][number];
    for (std::uint32_t j = 0; j < put.target.count; ++j) packets_.erase(keyOf(put.target, j));
    receive(&put);
  }

  void write(std::uint32_t rank, const MscclppOp& op, const MscclppPlace& target,
             const Flow::Values& values) {
    if (target.rank == rank) {
      store(target, values, op.line);
      return;
    }
    const Pair pair{rank, target.rank};
    std::vector<Put>& puts = puts_[pair];
    for (std::uint32_t k = 0; target.isPacket && k < target.count; ++k)
      packets_[keyOf(target, k)] = {pair, puts.size()};
    puts.push_back({flow_.send(rank, target.rank, values), target, op.line});
  }

  void store(const MscclppPlace& target, const Flow::Values& values, std::size_t line) {
    for (std::uint32_t k = 0; k < target.count; ++k) chunk(target, k) = {values[k], line};
  }

  Status stuck(const Block& block) const {
    const MscclppOp& op = block.op();
    const char* const why = op.kind == Kind::Wait      ? "a signal that nobody gives"
                            : op.kind == Kind::Barrier ? "blocks that do not come to its barrier"
                            : op.kind == Kind::Acquire ? "a semaphore that nobody releases"
                                                       : "packets that nobody puts";
    return wrong(op.line, "gpu ", block.rank, " waits for ever: for ", why,
                 "; fix: let no blocks wait for each other");
  }

  const MscclppPlan& plan_;
  const std::string& file_;
  const Limits& limits_;
  Flow& flow_;
  std::vector<Contents> contents_;
  std::vector<Block> blocks_;
  std::vector<std::vector<std::uint32_t>> semaphores_;            // by rank
  std::vector<std::map<std::uint32_t, std::uint64_t>> barriers_;  // by rank: who came, by barrier
  std::map<Pair, std::vector<Put>> puts_;
  std::map<Pair, std::size_t> received_;  // how many of the puts are through, or are packets
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::deque<std::size_t>>
      signals_;  // by from, to and channel
  std::map<std::tuple<std::uint32_t, Contents::Buffer, std::uint32_t>, std::pair<Pair, std::size_t>>
      packets_;  // that nobody has read
};

}  // namespace

Status runMscclpp(const MscclppPlan& plan, const std::string& file, const Limits& limits,
                  Flow* flow) {
  return MscclppRun(plan, file, limits, flow).run();
}

}  // namespace weft::formats
