// SPDX-License-Identifier: Apache-2.0
#include "formats/placement.h"

#include <algorithm>

namespace weft::formats {
namespace {

constexpr std::uint32_t kForever = ~0u;

}  // namespace

Placement::Placement(const Flow& flow)
    : flow_(flow),
      spots_(flow.values_.size()),
      lastRead_(flow.form_.ranks, std::vector<std::uint32_t>(flow.form_.inChunks(), 0)),
      nextTmp_(flow.form_.ranks, 0) {}

std::vector<schedule::Program> Placement::run() {
  findLastReads();
  for (Flow::Value value = 0; value < spots_.size(); ++value) place(value);
  tmpChunks_ = *std::ranges::max_element(nextTmp_);
  std::vector<schedule::Program> programs(flow_.form_.ranks);
  for (std::uint32_t rank = 0; rank < programs.size(); ++rank) emit(rank, &programs[rank]);
  return programs;
}

void Placement::findLastReads() {
  for (std::uint32_t rank = 0; rank < flow_.form_.ranks; ++rank) {
    const std::vector<Flow::Event>& events = flow_.events_[rank];
    for (std::uint32_t e = 0; e < events.size(); ++e) {
      if (events[e].kind == Flow::Event::Kind::Send)
        for (const Flow::Value value : flow_.messages_[events[e].message].sent) readAt(value, e);
      for (std::uint32_t k = 0; k < events[e].count; ++k)
        for (const Flow::Value value : flow_.values_[events[e].first + k].operands)
          readAt(value, e);
    }
    for (std::uint32_t slot = 0; slot < flow_.outputs_[rank].size(); ++slot) {
      const Flow::Node& node = flow_.values_[flow_.outputs_[rank][slot]];
      const bool own =
          node.kind == Flow::Node::Kind::Input &&
          schedule::inPlaceOut(flow_.form_.collective, rank, node.at, flow_.form_.parts) == slot;
      if (!own) readAt(flow_.outputs_[rank][slot], kForever - 1);
    }
  }
}

void Placement::readAt(Flow::Value value, std::uint32_t event) {
  const Flow::Node& node = flow_.values_[value];
  if (node.kind != Flow::Node::Kind::Input) return;
  std::uint32_t& last = lastRead_[node.rank][node.at];
  last = std::max(last, event + 1);
}

// In and Out may be the same memory.
bool Placement::mayWriteOut(const Flow::Node& node) const {
  const Form& form = flow_.form_;
  if (node.output == Flow::kNone) return false;
  if (!schedule::allowsInPlace(form.collective)) return true;
  std::uint32_t in = node.output;  // the In slot of that place
  if (schedule::hasOneOut(form.collective)) in += node.rank * form.parts;
  if (schedule::hasOneIn(form.collective)) {
    if (in / form.parts != node.rank) return true;
    in %= form.parts;
  }
  return lastRead_[node.rank][in] <= node.event + 1;
}

void Placement::place(Flow::Value value) {
  const Flow::Node& node = flow_.values_[value];
  switch (node.kind) {
    case Flow::Node::Kind::Input:
      spots_[value] = {schedule::in(node.at), kFixed};
      return;
    case Flow::Node::Kind::Message:
      if (value == flow_.messages_[node.at].first) placeMessage(node.at);
      return;
    case Flow::Node::Kind::Sum:
      if (!node.operands.empty()) placeSum(value);
      return;
  }
}

// Its pieces that are one put: together in the sender's memory, and in the receiver's.
void Placement::placeMessage(std::uint32_t number) {
  const Flow::Message& message = flow_.messages_[number];
  for (std::uint32_t k = 0; k < message.sent.size(); ++k) {
    const Flow::Value value = message.first + k;
    const Flow::Node& node = flow_.values_[value];
    const bool inOut = mayWriteOut(node);
    Spot& spot = spots_[value];
    spot.slot = inOut ? schedule::out(node.output) : schedule::tmp(newTmp(node.rank));
    const bool goesOn = k > 0 && sameRun(message.sent[k - 1], message.sent[k]) &&
                        spots_[value - 1].slot + 1 == spot.slot;
    spot.unit = inOut ? kFixed : goesOn ? spots_[value - 1].unit : units_++;
  }
}

void Placement::placeSum(Flow::Value value) {
  const Flow::Node& node = flow_.values_[value];
  if (mayWriteOut(node)) {
    spots_[value] = {schedule::out(node.output), kFixed};
    return;
  }
  for (const Flow::Value operand : node.operands) {
    const Flow::Node& from = flow_.values_[operand];
    const bool isSpare = from.kind == Flow::Node::Kind::Message && from.uses == 1 &&
                         spots_[operand].slot.buf == schedule::Buf::Tmp;
    if (!isSpare) continue;
    spots_[value] = spots_[operand];
    return;
  }
  spots_[value] = {schedule::tmp(newTmp(node.rank)), units_++};
}

std::uint32_t Placement::newTmp(std::uint32_t rank) { return nextTmp_[rank]++; }

bool Placement::continues(const Spot& last, const Spot& next) const {
  return last.slot + 1 == next.slot && last.unit == next.unit;
}

bool Placement::sameRun(Flow::Value last, Flow::Value next) const {
  return flow_.values_[last].chunk + 1 == flow_.values_[next].chunk &&
         continues(spots_[last], spots_[next]);
}

void Placement::emit(std::uint32_t rank, schedule::Program* program) const {
  for (const Flow::Event& event : flow_.events_[rank]) {
    if (event.kind == Flow::Event::Kind::Add)
      emitSums(event, program);
    else
      emitMessage(flow_.messages_[event.message], event.kind == Flow::Event::Kind::Send, program);
  }
  emitCopies(rank, true, program);
  emitCopies(rank, false, program);
}

// Both ends cut a message alike: where either cannot go on.
void Placement::emitMessage(const Flow::Message& message, bool sends,
                            schedule::Program* program) const {
  const auto count = static_cast<std::uint32_t>(message.sent.size());
  for (std::uint32_t begin = 0, end = 0; begin < count; begin = end) {
    for (end = begin + 1; end < count; ++end) {
      const Flow::Value value = message.first + end;
      if (!sameRun(message.sent[end - 1], message.sent[end]) ||
          !continues(spots_[value - 1], spots_[value]))
        break;
    }
    const schedule::Slot to = spots_[message.first + begin].slot;
    const schedule::Span what{flow_.values_[message.sent[begin]].chunk, end - begin};
    if (sends)
      program->put(message.to, spots_[message.sent[begin]].slot, to, what);
    else
      program->wait(message.from, to, what);
  }
}

bool Placement::sumsContinue(Flow::Value last, Flow::Value next) const {
  const Flow::Node &a = flow_.values_[last], &b = flow_.values_[next];
  if (!sameRun(last, next) || a.operands.size() != b.operands.size()) return false;
  for (std::size_t k = 0; k < a.operands.size(); ++k)
    if (!continues(spots_[a.operands[k]], spots_[b.operands[k]])) return false;
  return true;
}

void Placement::emitSums(const Flow::Event& event, schedule::Program* program) const {
  std::vector<Flow::Value> run;
  for (std::uint32_t k = 0; k < event.count; ++k) {
    const Flow::Value value = event.first + k;
    if (flow_.values_[value].operands.empty()) continue;  // a part of a later sum
    if (!run.empty() && !sumsContinue(run.back(), value)) {
      emitReduce(run, program);
      run.clear();
    }
    run.push_back(value);
  }
  if (!run.empty()) emitReduce(run, program);
}

// Complete sums are finished where they are made.
void Placement::emitReduce(const std::vector<Flow::Value>& run, schedule::Program* program) const {
  const Flow::Node& first = flow_.values_[run[0]];
  const schedule::Slot to = spots_[run[0]].slot;
  const schedule::Span what{first.chunk, static_cast<std::uint32_t>(run.size())};
  std::vector<schedule::Slot> operands;
  for (const Flow::Value operand : first.operands) operands.push_back(spots_[operand].slot);
  program->reduce(to, operands, what);
  for (std::uint32_t begin = 0, end = 0; begin < run.size(); begin = end) {
    const bool complete = flow_.isComplete(flow_.values_[run[begin]]);
    for (end = begin + 1; end < run.size(); ++end)
      if (flow_.isComplete(flow_.values_[run[end]]) != complete) break;
    if (complete)
      program->apply(schedule::ApplyId::Finish, to + begin, to + begin,
                     {what.first + begin, end - begin});
  }
}

// What is not in Out yet: first from In, which the others may overwrite.
void Placement::emitCopies(std::uint32_t rank, bool fromIn, schedule::Program* program) const {
  const Flow::Values& outputs = flow_.outputs_[rank];
  const auto count = static_cast<std::uint32_t>(outputs.size());
  for (std::uint32_t begin = 0, end = 0; begin < count; begin = end) {
    for (end = begin + 1; end < count; ++end)
      if (!sameRun(outputs[end - 1], outputs[end])) break;
    const schedule::Slot from = spots_[outputs[begin]].slot;
    if (fromIn == (from.buf == schedule::Buf::In))
      program->copy(from, schedule::out(begin), {flow_.values_[outputs[begin]].chunk, end - begin});
  }
}

}  // namespace weft::formats
