// SPDX-License-Identifier: Apache-2.0
#include "formats/msccl_xml.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "formats/xml.h"

namespace weft::formats {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::array<std::pair<std::string_view, MscclKind>, 9> kKinds{{
    {"s", MscclKind::Send},
    {"r", MscclKind::Receive},
    {"rcs", MscclKind::ReceiveCopySend},
    {"rrc", MscclKind::ReceiveReduceCopy},
    {"rrs", MscclKind::ReceiveReduceSend},
    {"rrcs", MscclKind::ReceiveReduceCopySend},
    {"cpy", MscclKind::Copy},
    {"re", MscclKind::Reduce},
    {"nop", MscclKind::Nop},
}};

// Of one element.
class Attributes {
 public:
  Attributes(const XmlElement& element, const std::string& file) : element_(element), file_(file) {}

  template <class... Parts>
  Status wrong(const Parts&... parts) const {
    return Status::error(Code::InvalidArgument, file_, ":", element_.line, ": ", parts...);
  }

  Status checkNames(Names known) const {
    for (const auto& [name, value] : element_.attributes)
      if (std::ranges::find(known, name) == known.end())
        return wrong("<", element_.name, "> has no attribute '", name, "'; fix: take it out");
    return {};
  }

  std::optional<std::string_view> find(std::string_view name) const {
    for (const auto& [known, value] : element_.attributes)
      if (known == name) return value;
    return {};
  }

  Status need(std::string_view name, std::string_view* out) const {
    const auto value = find(name);
    if (!value) return wrong("<", element_.name, "> lacks '", name, "'; fix: give it");
    *out = *value;
    return {};
  }

  // `least` to `most`, or `*out` as it is where there is none.
  Status number(std::string_view name, std::int64_t least, std::int64_t most,
                std::int64_t* out) const {
    const auto value = find(name);
    if (!value) return {};
    if (parseNumber(*value, out) && *out >= least && *out <= most) return {};
    return wrong(name, "=\"", *value, "\" is no number from ", least, " to ", most,
                 "; fix: give one");
  }
  Status number(std::string_view name, std::int64_t least, std::int64_t most,
                std::uint32_t* out) const {
    std::int64_t wide = *out;
    WEFT_TRY(number(name, least, most, &wide));
    *out = static_cast<std::uint32_t>(wide);  // -1 is kNone and kNobody
    return {};
  }
  Status needNumber(std::string_view name, std::int64_t least, std::int64_t most,
                    std::uint32_t* out) const {
    std::string_view value;
    WEFT_TRY(need(name, &value));
    return number(name, least, most, out);
  }
  Status flag(std::string_view name, bool* out) const {
    std::uint32_t value = *out;
    WEFT_TRY(number(name, 0, 1, &value));
    *out = value == 1;
    return {};
  }

 private:
  const XmlElement& element_;
  const std::string& file_;
};

class Reader {
 public:
  Reader(const std::string& file, const Limits& limits, MscclAlgorithm* out)
      : file_(file), limits_(limits), algorithm_(*out) {}

  Status begin(const XmlElement& element) {
    constexpr std::string_view kLevels[] = {"algo", "gpu", "tb", "step"};
    const Attributes attributes(element, file_);
    const bool isOp = element.depth == 3 && element.name == "op";
    if (element.depth == 2) isInBlock_ = element.name != "copy";
    if (element.depth == 2 && !isInBlock_) return addCopied(element, attributes);
    if (element.depth > 3 || (element.depth == 3 && !isInBlock_) ||
        (element.name != kLevels[element.depth] && !isOp))
      return attributes.wrong("<", element.name,
                              "> is not known here; MSCCL has <algo> <gpu> <tb> "
                              "<step> inside each other; fix: take it out");
    switch (element.depth) {
      case 0:
        return beginAlgorithm(element, attributes);
      case 1:
        return beginGpu(element, attributes);
      case 2:
        return beginBlock(element, attributes);
      default:
        return addStep(element, attributes, isOp ? "step" : "s");
    }
  }

  Status end() {
    for (std::uint32_t rank = 0; rank < algorithm_.form.ranks; ++rank)
      if (algorithm_.gpus[rank].line == 0)
        return wrongAt(algorithm_.line, text("gpu ", rank, " is missing of ", algorithm_.form.ranks,
                                             "; fix: give its blocks"));
    return {};
  }

 private:
  Status wrongAt(std::size_t line, const std::string& what) const {
    return Status::error(Code::InvalidArgument, file_, ":", line, ": ", what);
  }

  Status beginAlgorithm(const XmlElement& element, const Attributes& attributes) {
    constexpr std::string_view kKnown[] = {
        "name",       "proto",    "nchannels", "nchunksperloop", "ngpus",    "coll", "inplace",
        "outofplace", "minBytes", "maxBytes",  "nthreadblocks",  "maxcount", "redop"};
    WEFT_TRY(attributes.checkNames(kKnown));
    std::string_view name, collective;
    algorithm_.line = element.line;
    WEFT_TRY(attributes.need("name", &name));
    WEFT_TRY(attributes.need("coll", &collective));
    algorithm_.name = name;
    WEFT_TRY(attributes.needNumber("ngpus", 2, limits_.ranks, &algorithm_.form.ranks));
    WEFT_TRY(attributes.number("nchannels", 1, 1 << 16, &channels_));
    WEFT_TRY(attributes.flag("inplace", &algorithm_.inPlace));
    WEFT_TRY(readCollective(collective, attributes));
    algorithm_.gpus.resize(algorithm_.form.ranks);
    return cutBlocks(attributes);
  }

  Status readCollective(std::string_view name, const Attributes& attributes) {
    using enum schedule::Collective;
    constexpr std::pair<std::string_view, schedule::Collective> kNames[] = {
        {"allreduce", AllReduce},
        {"allgather", AllGather},
        {"reduce_scatter", ReduceScatter},
        {"reducescatter", ReduceScatter},
        {"alltoall", AllToAll}};
    for (const auto& [known, collective] : kNames)
      if (known == name) {
        algorithm_.form.collective = collective;
        return {};
      }
    return attributes.wrong("coll=\"", name,
                            "\" is no collective that can be proved; fix: use one "
                            "of allreduce, allgather, reduce_scatter, alltoall");
  }

  Status cutBlocks(const Attributes& attributes) {
    Form& form = algorithm_.form;
    const std::uint32_t most = limits_.chunks / form.ranks;
    WEFT_TRY(attributes.needNumber("nchunksperloop", 1, most, &form.chunks));
    if (form.collective == schedule::Collective::AllReduce) return {};
    if (form.chunks % form.ranks != 0)
      return attributes.wrong("nchunksperloop=\"", form.chunks, "\" does not cut the blocks of ",
                              form.ranks, " gpus into equal parts; fix: give a multiple of ",
                              form.ranks);
    form.parts = form.chunks / form.ranks;
    return {};
  }

  Status beginGpu(const XmlElement& element, const Attributes& attributes) {
    constexpr std::string_view kKnown[] = {"id", "i_chunks", "o_chunks", "s_chunks"};
    WEFT_TRY(attributes.checkNames(kKnown));
    const Form& form = algorithm_.form;
    std::uint32_t rank = 0;
    WEFT_TRY(attributes.needNumber("id", 0, form.ranks - 1, &rank));
    gpu_ = &algorithm_.gpus[rank];
    if (gpu_->line != 0)
      return attributes.wrong("gpu ", rank, " is described already, in line ", gpu_->line,
                              "; fix: give each gpu once");
    gpu_->line = element.line;
    // Files leave out what is not used.
    const std::uint32_t in = algorithm_.inPlace ? form.chunks : form.inChunks();
    const std::uint32_t out = algorithm_.inPlace ? form.chunks : form.outChunks();
    WEFT_TRY(attributes.needNumber("i_chunks", 0, in, &gpu_->inputChunks));
    WEFT_TRY(attributes.needNumber("o_chunks", 0, out, &gpu_->outputChunks));
    gpu_->inputChunks = form.inChunks();
    gpu_->outputChunks = form.outChunks();
    return attributes.needNumber("s_chunks", 0, limits_.chunks / form.ranks, &gpu_->scratchChunks);
  }

  // TE-CCL's files have these.
  Status addCopied(const XmlElement& element, const Attributes& attributes) {
    constexpr std::string_view kKnown[] = {"i_off", "o_off"};
    WEFT_TRY(attributes.checkNames(kKnown));
    MscclGpu::Copied copied{.line = element.line};
    WEFT_TRY(attributes.needNumber("i_off", 0, gpu_->inputChunks - 1, &copied.input));
    WEFT_TRY(attributes.needNumber("o_off", 0, gpu_->outputChunks - 1, &copied.output));
    gpu_->copied.push_back(copied);
    return {};
  }

  Status beginBlock(const XmlElement& element, const Attributes& attributes) {
    constexpr std::string_view kKnown[] = {"id", "send", "recv", "chan"};
    WEFT_TRY(attributes.checkNames(kKnown));
    const auto ranks = static_cast<std::int64_t>(algorithm_.form.ranks);
    std::uint32_t id = 0;
    MscclBlock block;
    block.line = element.line;
    WEFT_TRY(attributes.needNumber("id", 0, 1 << 16, &id));
    if (id != gpu_->blocks.size())
      return attributes.wrong("tb ", id, " stands where tb ", gpu_->blocks.size(),
                              " is due; fix: number the blocks of a gpu from 0 on, in order");
    WEFT_TRY(attributes.needNumber("send", -1, ranks - 1, &block.sendPeer));
    WEFT_TRY(attributes.needNumber("recv", -1, ranks - 1, &block.receivePeer));
    WEFT_TRY(attributes.needNumber("chan", 0, channels_ - 1, &block.channel));
    const auto self = static_cast<std::uint32_t>(gpu_ - algorithm_.gpus.data());
    if (block.sendPeer == self || block.receivePeer == self)
      return attributes.wrong("gpu ", self, " has itself as a peer; fix: use cpy");
    gpu_->blocks.push_back(std::move(block));
    return {};
  }

  Status addStep(const XmlElement& element, const Attributes& attributes,
                 std::string_view numberName) {
    constexpr std::string_view kKnown[] = {"s",      "step",   "type",   "srcbuf",  "srcoff",
                                           "dstbuf", "dstoff", "buf",    "off",     "cnt",
                                           "depid",  "deps",   "hasdep", "algostep"};
    WEFT_TRY(attributes.checkNames(kKnown));
    MscclBlock& block = gpu_->blocks.back();
    MscclStep step;
    step.line = element.line;
    std::uint32_t number = 0;
    WEFT_TRY(attributes.needNumber(numberName, 0, 1 << 24, &number));
    if (number != block.steps.size())
      return attributes.wrong("step ", number, " stands where step ", block.steps.size(),
                              " is due; fix: number the steps of a block from 0 on, in order");
    WEFT_TRY(readKind(attributes, &step));
    WEFT_TRY(attributes.number("depid", -1, 1 << 16, &step.afterBlock));
    WEFT_TRY(attributes.number("deps", -1, 1 << 24, &step.afterStep));
    WEFT_TRY(attributes.flag("hasdep", &step.isAwaited));
    if ((step.afterBlock == MscclStep::kNone) != (step.afterStep == MscclStep::kNone))
      return attributes.wrong(
          "of depid and deps, one is -1 and one is not; fix: give both or none");
    if (step.kind != MscclKind::Nop) WEFT_TRY(readSlots(attributes, &step));
    WEFT_TRY(checkPeers(attributes, block, step));
    block.steps.push_back(step);
    return {};
  }

  static Status readKind(const Attributes& attributes, MscclStep* step) {
    std::string_view type;
    WEFT_TRY(attributes.need("type", &type));
    for (const auto& [name, kind] : kKinds)
      if (name == type) {
        step->kind = kind;
        return {};
      }
    return attributes.wrong("type=\"", type,
                            "\" is no operation; fix: use one of s, r, rcs, rrc, "
                            "rrs, rrcs, cpy, re, nop");
  }

  Status readSlots(const Attributes& attributes, MscclStep* step) const {
    WEFT_TRY(attributes.number("cnt", 1, limits_.chunks, &step->count));
    const bool isOne = attributes.find("buf").has_value();
    if (step->readsSource())
      WEFT_TRY(readSlot(attributes, isOne ? "buf" : "srcbuf", isOne ? "off" : "srcoff", step->count,
                        &step->src));
    if (step->stores())
      WEFT_TRY(readSlot(attributes, isOne ? "buf" : "dstbuf", isOne ? "off" : "dstoff", step->count,
                        &step->dst));
    return {};
  }

  Status readSlot(const Attributes& attributes, std::string_view bufferName,
                  std::string_view offsetName, std::uint32_t count, MscclSlot* slot) const {
    std::string_view buffer;
    WEFT_TRY(attributes.need(bufferName, &buffer));
    std::uint32_t chunks = 0;
    if (buffer == "i") {
      slot->buffer = Contents::Buffer::Input;
      chunks = gpu_->inputChunks;
    } else if (buffer == "o") {
      slot->buffer = Contents::Buffer::Output;
      chunks = gpu_->outputChunks;
    } else if (buffer == "s") {
      slot->buffer = Contents::Buffer::Scratch;
      chunks = gpu_->scratchChunks;
    } else {
      return attributes.wrong(bufferName, "=\"", buffer, "\" is no buffer; fix: use i, o or s");
    }
    WEFT_TRY(attributes.needNumber(offsetName, 0, limits_.chunks, &slot->offset));
    if (slot->offset <= chunks && count <= chunks - slot->offset) return {};
    return attributes.wrong("chunks ", slot->offset, " to ", slot->offset + count - 1, " of '",
                            buffer, "', which has ", chunks, "; fix: stay inside");
  }

  static Status checkPeers(const Attributes& attributes, const MscclBlock& block,
                           const MscclStep& step) {
    if (step.sends() && block.sendPeer == MscclBlock::kNobody)
      return attributes.wrong("this step sends, but its block has send=\"-1\"; fix: name the peer");
    if (step.receives() && block.receivePeer == MscclBlock::kNobody)
      return attributes.wrong(
          "this step receives, but its block has recv=\"-1\"; fix: name the peer");
    return {};
  }

  const std::string& file_;
  const Limits& limits_;
  MscclAlgorithm& algorithm_;
  MscclGpu* gpu_ = nullptr;
  bool isInBlock_ = false;
  std::uint32_t channels_ = 1 << 16;
};

}  // namespace

Status readMsccl(std::string_view document, const std::string& file, const Limits& limits,
                 MscclAlgorithm* out) {
  *out = {};
  Reader reader(file, limits, out);
  WEFT_TRY(
      readXml(document, file, [&](const XmlElement& element) { return reader.begin(element); }));
  return reader.end();
}

}  // namespace weft::formats
