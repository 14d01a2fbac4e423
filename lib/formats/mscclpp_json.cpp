// SPDX-License-Identifier: Apache-2.0
#include "formats/mscclpp_json.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "formats/json.h"

namespace weft::formats {
namespace {

using Kind = MscclppOp::Kind;
using Objects = std::vector<JsonObject>;

constexpr std::int64_t kMostOfAList = 1 << 16;
constexpr std::int64_t kMostOfAGroup = 64;  // blocks that share an op

// What the names mean. Packets are what all sources of a Move, and all but the first of a Sum are, and
// what all targets in other ranks, and all but the first in this one.
struct Meaning {
  Kind kind;
  bool readsPackets = false, writesPackets = false, signals = false;
};
const std::map<std::string, Meaning, std::less<>> kMeanings{
    {"nop", {Kind::Nop}},
    {"flush", {Kind::Nop}},
    {"barrier", {Kind::Barrier}},
    {"signal", {Kind::Signal}},
    {"rlxsignal", {Kind::Signal}},
    {"wait", {Kind::Wait}},
    {"rlxwait", {Kind::Wait}},
    {"sem_acquire", {Kind::Acquire}},
    {"sem_release", {Kind::Release}},
    {"copy", {Kind::Move}},
    {"put", {Kind::Move}},
    {"get", {Kind::Move}},
    {"pws", {Kind::Move, false, false, true}},
    {"pwsf", {Kind::Move, false, false, true}},
    {"re", {Kind::Sum}},
    {"res", {Kind::Sum}},
    {"rre", {Kind::Sum}},
    {"rres", {Kind::Sum}},
    {"ppkt", {Kind::Move, false, true}},
    {"cpkt", {Kind::Move, false, true}},
    {"upkt", {Kind::Move, true, false}},
    {"rppkt", {Kind::Move, true, true}},
    {"repkt", {Kind::Sum, true, true}},
    {"respkt", {Kind::Sum, true, true}},
    {"recpkt", {Kind::Sum, true, true}},
    {"recspkt", {Kind::Sum, true, true}},
};
constexpr std::string_view kSwitched[] = {"glres", "gstore", "gstorepkt"};

// A list of things by kind of channel.
template <class Item>
using ByType = std::map<std::string, std::vector<Item>, std::less<>>;

struct RemoteBuffer {
  std::uint32_t rank = 0;
  Contents::Buffer buffer = Contents::Buffer::Input;
};

// What the names in a block's ops stand for.
struct Scope {
  ByType<MscclppChannel> channels;
  ByType<RemoteBuffer> remoteBuffers;
};

bool findBuffer(std::string_view name, Contents::Buffer* buffer) {
  constexpr std::string_view kNames[] = {"i", "o", "s"};
  const auto* const found = std::ranges::find(kNames, name);
  if (found == std::end(kNames)) return false;
  *buffer = static_cast<Contents::Buffer>(found - std::begin(kNames));
  return true;
}

class PlanReader {
 public:
  PlanReader(const std::string& file, const Limits& limits, MscclppPlan* out)
      : file_(file), limits_(limits), plan_(*out) {}

  Status run(std::string_view document) {
    Json json;
    WEFT_TRY(JsonObject::parse(document, file_, &json));
    const JsonObject root(json, file_);
    plan_.line = root.line();
    WEFT_TRY(root.needText("name", &plan_.name));
    WEFT_TRY(root.need("inplace"));
    WEFT_TRY(root.flag("inplace", &plan_.inPlace));
    Objects gpus;
    WEFT_TRY(root.needObjects("gpus", &gpus));
    if (gpus.size() < 2 || gpus.size() > limits_.ranks)
      return root.wrong("is for ", gpus.size(), " gpus, not 2 to ", limits_.ranks,
                        "; fix: name another plan");
    plan_.form.ranks = static_cast<std::uint32_t>(gpus.size());
    WEFT_TRY(readForm(root, gpus));
    plan_.gpus.resize(gpus.size());
    for (rank_ = 0; rank_ < gpus.size(); ++rank_) WEFT_TRY(readGpu(gpus[rank_]));
    return {};
  }

 private:
  // ---- what it is for

  Status readForm(const JsonObject& root, const Objects& gpus) {
    using enum schedule::Collective;
    std::string name;
    WEFT_TRY(root.needText("collective", &name));
    const std::map<std::string, schedule::Collective> known{{"allreduce", AllReduce},
                                                            {"allgather", AllGather},
                                                            {"reducescatter", ReduceScatter},
                                                            {"reduce_scatter", ReduceScatter},
                                                            {"alltoall", AllToAll}};
    const auto found = known.find(name);
    if (found == known.end())
      return root.wrong("collective \"", name,
                        "\" is none that can be proved; fix: use one of "
                        "allreduce, allgather, reducescatter, alltoall");
    Form& form = plan_.form;
    form.collective = found->second;
    for (const JsonObject& gpu : gpus) WEFT_TRY(findShares(gpu));
    const auto most = static_cast<std::int64_t>(limits_.chunks / form.ranks);
    std::uint32_t in = 0, out = 0;
    WEFT_TRY(gpus[0].needNumber("input_chunks", 0, most, &in));
    WEFT_TRY(gpus[0].needNumber("output_chunks", 0, most, &out));
    const bool byBlock = form.collective == AllGather && out == 0;
    form.chunks = byBlock ? in * form.ranks : std::max(in, out);
    if (form.chunks == 0)
      return gpus[0].wrong("has no chunks; fix: give input_chunks or output_chunks");
    form.chunks *= shares_;
    if (form.chunks > static_cast<std::uint64_t>(most))
      return gpus[0].wrong("has more than ", most, " chunks; fix: name a smaller plan");
    if (form.collective == AllReduce) return {};
    if (form.chunks % form.ranks != 0)
      return gpus[0].wrong(form.chunks, " chunks do not cut the blocks of ", form.ranks,
                           " gpus into equal parts; fix: give a multiple of ", form.ranks);
    form.parts = form.chunks / form.ranks;
    return {};
  }

  // Into how many pieces each chunk must be cut, so that all groups of blocks can share their ops.
  Status findShares(const JsonObject& gpu) {
    Objects blocks, ops;
    WEFT_TRY(gpu.needObjects("threadblocks", &blocks));
    for (const JsonObject& block : blocks) {
      WEFT_TRY(block.needObjects("ops", &ops));
      WEFT_TRY(findSharesOf(ops));
    }
    return {};
  }
  Status findSharesOf(const Objects& ops) {
    Objects group, inner;
    for (const JsonObject& op : ops) {
      std::uint32_t blocks = 1;
      if (op.has("tbg_info")) WEFT_TRY(groupOf(op, nullptr, &blocks));
      shares_ = std::lcm(shares_, blocks);
      if (shares_ > kMostOfAGroup)
        return op.wrong("ops are shared by groups whose sizes have no common multiple up to ",
                        kMostOfAGroup, "; fix: use equal groups");
      WEFT_TRY(op.objects("ops", &inner));
      for (const JsonObject& one : inner)
        if (one.has("ops"))
          return one.wrong("a pipeline in a pipeline is not known here; fix: take it out");
      WEFT_TRY(findSharesOf(inner));
    }
    return {};
  }

  static Status groupOf(const JsonObject& op, std::uint32_t* member, std::uint32_t* blocks) {
    JsonObject group = op;
    WEFT_TRY(op.object("tbg_info", &group));
    WEFT_TRY(group.needNumber("tbg_size", 1, kMostOfAGroup, blocks));
    if (member == nullptr) return {};
    return group.needNumber("tb_id", 0, std::int64_t{*blocks} - 1, member);
  }

  // ---- a gpu

  Status readGpu(const JsonObject& gpu) {
    std::uint32_t id = 0;
    MscclppGpu& mine = plan_.gpus[rank_];
    mine.line = gpu.line();
    WEFT_TRY(gpu.needNumber("id", 0, plan_.form.ranks - 1, &id));
    if (id != rank_)
      return gpu.wrong("gpu ", id, " stands where gpu ", rank_,
                       " is due; fix: give each gpu once, in order");
    const auto most = static_cast<std::int64_t>(limits_.chunks / plan_.form.ranks / shares_);
    WEFT_TRY(gpu.number("scratch_chunks", 0, most, &mine.scratchChunks));
    mine.scratchChunks *= shares_;
    WEFT_TRY(readScope(gpu));
    Objects semaphores, blocks;
    WEFT_TRY(gpu.objects("semaphores", &semaphores));
    for (const JsonObject& semaphore : semaphores)
      WEFT_TRY(semaphore.needNumber("init_value", 0, 1 << 20, &mine.semaphores.emplace_back()));
    WEFT_TRY(gpu.needObjects("threadblocks", &blocks));
    for (const JsonObject& block : blocks) WEFT_TRY(readBlock(block, &mine));
    return {};
  }

  Status checkPeer(const JsonObject& where, std::uint32_t peer) const {
    if (peer < plan_.form.ranks && peer != rank_) return {};
    return where.wrong("rank ", peer, " is no peer of gpu ", rank_, "; fix: name another gpu of ",
                       plan_.form.ranks);
  }

  Status readScope(const JsonObject& gpu) {
    all_ = {};
    remote_.clear();
    Objects channels, buffers;
    std::map<std::pair<std::string, std::uint32_t>, std::uint32_t> count;  // by kind and peer
    WEFT_TRY(gpu.objects("channels", &channels));
    for (const JsonObject& channel : channels) {
      std::string type;
      std::vector<std::uint32_t> peers;
      WEFT_TRY(channel.needText("channel_type", &type));
      if (type == "switch") continue;  // its ops are refused
      WEFT_TRY(channel.numbers("connected_to", kMostOfAList, &peers));
      for (const std::uint32_t peer : peers) {
        WEFT_TRY(checkPeer(channel, peer));
        const std::uint32_t number = 2 * count[{type, peer}]++ + (type == "port" ? 1 : 0);
        all_.channels[type].push_back({peer, number});
      }
    }
    WEFT_TRY(gpu.objects("remote_buffers", &buffers));
    for (const JsonObject& one : buffers) {
      std::string type;
      RemoteBuffer buffer;
      WEFT_TRY(one.needNumber("rank", 0, kMostOfAList, &buffer.rank));
      WEFT_TRY(checkPeer(one, buffer.rank));
      WEFT_TRY(one.needText("type", &type));
      if (!findBuffer(type, &buffer.buffer))
        return one.wrong("\"", type, "\" is no buffer; fix: use i, o or s");
      remote_.push_back(buffer);
    }
    return {};
  }

  // ---- a block

  Status readBlock(const JsonObject& block, MscclppGpu* gpu) {
    const auto number = static_cast<std::uint32_t>(gpu->blocks.size());
    std::uint32_t id = 0;
    WEFT_TRY(block.needNumber("id", 0, kMostOfAList, &id));
    if (id != number)
      return block.wrong("threadblock ", id, " stands where ", number,
                         " is due; fix: number them from 0 on, in order");
    Scope scope;
    WEFT_TRY(pick(block, "channels", "channel_type", "channel_ids",
                  [&](const std::string& type, std::uint32_t which, const JsonObject& where) {
                    if (type == "switch") return Status();
                    const std::vector<MscclppChannel>& known = all_.channels[type];
                    if (which >= known.size())
                      return where.wrong("gpu ", rank_, " has no channel ", which, " of kind ",
                                         type, "; fix: name one that it has");
                    scope.channels[type].push_back(known[which]);
                    return Status();
                  }));
    WEFT_TRY(pick(block, "remote_buffer_refs", "access_channel_type", "remote_buffer_ids",
                  [&](const std::string& type, std::uint32_t which, const JsonObject& where) {
                    if (which >= remote_.size())
                      return where.wrong("gpu ", rank_, " has no remote buffer ", which,
                                         "; fix: name one that it has");
                    scope.remoteBuffers[type].push_back(remote_[which]);
                    return Status();
                  }));
    Objects ops;
    WEFT_TRY(block.needObjects("ops", &ops));
    gpu->blocks.emplace_back();
    return readOps(ops, scope, &gpu->blocks.back());
  }

  // Calls take(kind of channel, number, where) for each number in a block's lists.
  template <class Take>
  static Status pick(const JsonObject& block, const char* key, const char* typeKey,
                     const char* numbersKey, Take&& take) {
    Objects lists;
    WEFT_TRY(block.objects(key, &lists));
    for (const JsonObject& list : lists) {
      std::string type;
      std::vector<std::uint32_t> numbers;
      WEFT_TRY(list.needText(typeKey, &type));
      WEFT_TRY(list.numbers(numbersKey, kMostOfAList, &numbers));
      for (const std::uint32_t number : numbers) WEFT_TRY(take(type, number, list));
    }
    return {};
  }

  Status readOps(const Objects& ops, const Scope& scope, std::vector<MscclppOp>* out) {
    for (const JsonObject& op : ops) {
      std::string name;
      WEFT_TRY(op.needText("name", &name));
      if (name == "pipeline") {
        Objects inner;
        WEFT_TRY(op.needObjects("ops", &inner));
        WEFT_TRY(readOps(inner, scope, out));
        continue;
      }
      if (std::ranges::count(kSwitched, name) > 0)
        return op.wrong("\"", name,
                        "\" goes through a switch's multicast memory, which weft has "
                        "not; fix: name a plan without it");
      const auto meaning = kMeanings.find(name);
      if (meaning == kMeanings.end())
        return op.wrong("\"", name, "\" is no operation; fix: take it out");
      WEFT_TRY(readOp(op, meaning->second, scope, &out->emplace_back()));
    }
    return {};
  }

  Status readOp(const JsonObject& op, const Meaning& meaning, const Scope& scope, MscclppOp* out) {
    out->kind = meaning.kind;
    out->signals = meaning.signals;
    out->line = op.line();
    switch (meaning.kind) {
      case Kind::Nop:
        return {};
      case Kind::Signal:
      case Kind::Wait:
        return readChannels(op, scope, out);
      case Kind::Barrier:
        WEFT_TRY(op.needNumber("barrier_id", 0, kMostOfAList, &out->barrier));
        return op.needNumber("num_threadblocks", 1, kMostOfAList, &out->blocks);
      case Kind::Acquire:
      case Kind::Release:
        return readSemaphores(op, out);
      default:
        if (meaning.signals) WEFT_TRY(readChannels(op, scope, out));
        return readPlaces(op, meaning, scope, out);
    }
  }

  static Status readChannels(const JsonObject& op, const Scope& scope, MscclppOp* out) {
    std::string type;
    std::vector<std::uint32_t> numbers;
    WEFT_TRY(op.needText("channel_type", &type));
    WEFT_TRY(op.numbers("channel_ids", kMostOfAList, &numbers));
    const auto known = scope.channels.find(type);
    for (const std::uint32_t number : numbers) {
      if (known == scope.channels.end() || number >= known->second.size())
        return op.wrong("its block has no channel ", number, " of kind ", type,
                        "; fix: name one that it has");
      out->channels.push_back(known->second[number]);
    }
    if (!out->channels.empty()) return {};
    return op.wrong("names no channel; fix: give channel_ids");
  }

  Status readSemaphores(const JsonObject& op, MscclppOp* out) const {
    WEFT_TRY(op.numbers("semaphore_ids", kMostOfAList, &out->semaphores));
    for (const std::uint32_t number : out->semaphores)
      if (number >= plan_.gpus[rank_].semaphores.size())
        return op.wrong("gpu ", rank_, " has no semaphore ", number, "; fix: name one that it has");
    return {};
  }

  // ---- what it reads and writes

  Status readPlaces(const JsonObject& op, const Meaning& meaning, const Scope& scope,
                    MscclppOp* out) {
    WEFT_TRY(readList(op, "src_buff", scope, &out->sources));
    WEFT_TRY(readList(op, "dst_buff", scope, &out->targets));
    const bool moves = meaning.kind == Kind::Move;
    for (std::size_t k = 0; k < out->sources.size(); ++k)
      out->sources[k].isPacket = meaning.readsPackets && (moves || k > 0);
    for (std::size_t k = 0; k < out->targets.size(); ++k)
      out->targets[k].isPacket =
          meaning.writesPackets && (moves || k > 0 || out->targets[k].rank != rank_);
    if (out->sources.empty() || out->targets.empty() ||
        (moves && out->sources.size() != out->targets.size()))
      return op.wrong("has ", out->sources.size(), " sources and ", out->targets.size(),
                      " targets; fix: give each target one, or all of them a sum");
    for (const auto* places : {&out->sources, &out->targets})
      for (std::size_t k = 0; k < places->size(); ++k)
        if ((*places)[k].count != (moves ? out->sources[k] : out->sources[0]).count)
          return op.wrong("its sources and targets have different sizes; fix: give one size");
    return {};
  }

  Status readList(const JsonObject& op, const char* key, const Scope& scope,
                  std::vector<MscclppPlace>* out) {
    Objects places;
    WEFT_TRY(op.needObjects(key, &places));
    for (const JsonObject& place : places)
      WEFT_TRY(readPlace(op, place, scope, &out->emplace_back()));
    return {};
  }

  Status readPlace(const JsonObject& op, const JsonObject& place, const Scope& scope,
                   MscclppPlace* out) {
    out->rank = rank_;
    if (place.has("buffer_id"))
      WEFT_TRY(findRemote(op, place, scope, out));
    else
      WEFT_TRY(findLocal(place, out));
    const auto most = static_cast<std::int64_t>(limits_.chunks);
    WEFT_TRY(place.needNumber("index", 0, most, &out->first));
    WEFT_TRY(place.needNumber("size", 1, most, &out->count));
    return takeShare(op, out);
  }

  static Status findRemote(const JsonObject& op, const JsonObject& place, const Scope& scope,
                           MscclppPlace* out) {
    std::string type;
    std::uint32_t number = 0;
    WEFT_TRY(op.needText("channel_type", &type));
    WEFT_TRY(place.needNumber("buffer_id", 0, kMostOfAList, &number));
    const auto known = scope.remoteBuffers.find(type);
    if (known == scope.remoteBuffers.end() || number >= known->second.size())
      return place.wrong("its block has no remote buffer ", number, " by channels of kind ", type,
                         "; fix: name one that it has");
    out->rank = known->second[number].rank;
    out->buffer = known->second[number].buffer;
    return {};
  }

  static Status findLocal(const JsonObject& place, MscclppPlace* out) {
    std::string type;
    WEFT_TRY(place.needText("type", &type));
    if (findBuffer(type, &out->buffer)) return {};
    return place.wrong("\"", type, "\" is no buffer; fix: use i, o or s");
  }

  // The part of it that its block takes of a group.
  Status takeShare(const JsonObject& op, MscclppPlace* out) const {
    std::uint32_t member = 0, blocks = 1;
    if (op.has("tbg_info")) WEFT_TRY(groupOf(op, &member, &blocks));
    const std::uint32_t share = out->count * (shares_ / blocks);
    out->first = out->first * shares_ + member * share;
    out->count = share;
    return {};
  }

  const std::string& file_;
  const Limits& limits_;
  MscclppPlan& plan_;
  std::uint32_t shares_ = 1;  // pieces of a chunk
  std::uint32_t rank_ = 0;    // that is read
  Scope all_;                 // its channels
  std::vector<RemoteBuffer> remote_;
};

}  // namespace

Status readMscclpp(std::string_view document, const std::string& file, const Limits& limits,
                   MscclppPlan* out) {
  *out = {};
  return PlanReader(file, limits, out).run(document);
}

}  // namespace weft::formats
