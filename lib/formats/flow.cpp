// SPDX-License-Identifier: Apache-2.0
#include "formats/flow.h"

#include <algorithm>
#include <memory>

#include "formats/placement.h"
#include "verify/values.h"

namespace weft::formats {

Flow::Flow(const Form& form)
    : form_(form),
      complete_(verify::completeSum(0, form.ranks).sum),
      events_(form.ranks),
      outputs_(form.ranks, Values(form.outChunks(), kNone)) {
  for (std::uint32_t rank = 0; rank < form.ranks; ++rank)
    for (std::uint32_t slot = 0; slot < form.inChunks(); ++slot) {
      const std::uint32_t chunk = schedule::logicalIn(form.collective, rank, slot, form.parts);
      values_.push_back({.rank = rank,
                         .chunk = chunk,
                         .at = slot,
                         .firstRank = rank,
                         .sum = verify::inputOf(rank, chunk).sum});
    }
}

Flow::Value Flow::input(std::uint32_t rank, std::uint32_t slot) const {
  return rank * form_.inChunks() + slot;
}

std::uint32_t Flow::send(std::uint32_t from, std::uint32_t to, const Values& values) {
  const auto message = static_cast<std::uint32_t>(messages_.size());
  messages_.push_back({from, to, values});
  events_[from].push_back({.kind = Event::Kind::Send, .message = message});
  for (const Value value : values) ++values_[value].uses;
  return message;
}

std::uint32_t Flow::sendAtOnce(std::uint32_t from, std::uint32_t to, const Values& values) {
  const std::uint32_t message = send(from, to, values);
  events_[from].back().atOnce = true;
  return message;
}

Flow::Values Flow::receive(std::uint32_t number) {
  Message& message = messages_[number];
  const auto event = static_cast<std::uint32_t>(events_[message.to].size());
  events_[message.to].push_back({.kind = Event::Kind::Receive, .message = number});
  message.first = static_cast<Value>(values_.size());
  Values received;
  for (const Value value : message.sent) {
    const Node& sent = values_[value];
    received.push_back(static_cast<Value>(values_.size()));
    values_.push_back({.kind = Node::Kind::Message,
                       .rank = message.to,
                       .chunk = sent.chunk,
                       .at = number,
                       .event = event,
                       .firstRank = sent.firstRank,
                       .sum = sent.sum});
  }
  return received;
}

bool Flow::add(std::uint32_t rank, const Values& a, const Values& b, Values* sums) {
  sums->clear();
  for (std::size_t k = 0; k < a.size(); ++k) {
    const Node &x = values_[a[k]], &y = values_[b[k]];
    if (x.chunk != y.chunk || isComplete(x) || isComplete(y)) return false;
  }
  const auto event = static_cast<std::uint32_t>(events_[rank].size());
  events_[rank].push_back({.kind = Event::Kind::Add,
                           .first = static_cast<Value>(values_.size()),
                           .count = static_cast<std::uint32_t>(a.size())});
  for (std::size_t k = 0; k < a.size(); ++k) {
    ++values_[a[k]].uses;
    ++values_[b[k]].uses;
    const Node &x = values_[a[k]], &y = values_[b[k]];
    Node sum{.kind = Node::Kind::Sum,
             .rank = rank,
             .chunk = x.chunk,
             .event = event,
             .firstRank = std::min(x.firstRank, y.firstRank),
             .sum = verify::addSums(x.sum, y.sum),
             .operands = {a[k], b[k]}};
    sums->push_back(static_cast<Value>(values_.size()));
    values_.push_back(std::move(sum));
  }
  return true;
}

void Flow::output(std::uint32_t rank, std::uint32_t slot, Value value) {
  outputs_[rank][slot] = value;
  ++values_[value].uses;
  if (values_[value].output == kNone) values_[value].output = slot;
}

bool Flow::isWanted(std::uint32_t rank, std::uint32_t slot, Value value) const {
  using enum schedule::Collective;
  const Node& node = values_[value];
  const std::uint32_t parts = form_.parts;
  if (schedule::isReduction(form_.collective))
    return isComplete(node) &&
           node.chunk == schedule::logicalOut(form_.collective, rank, slot, parts);
  const std::uint32_t source = slot / parts;
  const std::uint32_t chunk = form_.collective == AllToAll ? rank * parts + slot % parts : slot;
  return node.chunk == chunk && node.sum == verify::inputOf(source, chunk).sum;
}

// Is it nothing but an addend of one other sum of its rank?
bool Flow::isAdded(const Node& node) const {
  return node.kind == Node::Kind::Sum && node.uses == 1 && node.output == kNone;
}

// A sum of which another one alone is made, is left out: one op adds what both do, in the order of
// ranks, so that ranks which add alike get the same bits, whatever the order in the file.
void Flow::joinSums() {
  for (Node& node : values_) {
    if (node.kind != Node::Kind::Sum) continue;
    Values operands;
    for (const Value value : node.operands) {
      Node& operand = values_[value];
      if (!isAdded(operand)) {
        operands.push_back(value);
        continue;
      }
      operands.insert(operands.end(), operand.operands.begin(), operand.operands.end());
      operand.operands.clear();
    }
    std::ranges::stable_sort(operands, {}, [&](Value v) { return values_[v].firstRank; });
    node.operands = std::move(operands);
  }
}

// Behind the event that makes the last of its values, or before all: events stand at odd places.
std::uint32_t Flow::placeAtOnce(const Event& event) const {
  std::uint32_t place = 0;
  for (const Value value : messages_[event.message].sent)
    if (values_[value].kind != Node::Kind::Input)
      place = std::max(place, 2 * values_[value].event + 2);
  return place;
}

void Flow::sendAtOnce(std::uint32_t rank) {
  std::vector<Event>& events = events_[rank];
  std::vector<std::pair<std::uint32_t, Event>> placed;
  for (std::uint32_t i = 0; i < events.size(); ++i)
    placed.emplace_back(events[i].atOnce ? placeAtOnce(events[i]) : 2 * i + 1, events[i]);
  std::ranges::stable_sort(placed, {}, [](const auto& pair) { return pair.first; });
  for (std::uint32_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i] = placed[i].second;
    if (event.kind == Event::Kind::Receive)
      for (Value k = 0; k < messages_[event.message].sent.size(); ++k)
        values_[messages_[event.message].first + k].event = i;
    for (Value k = 0; k < event.count; ++k) values_[event.first + k].event = i;
  }
}

schedule::Schedule Flow::build(std::string name) {
  for (std::uint32_t rank = 0; rank < form_.ranks; ++rank) sendAtOnce(rank);
  joinSums();
  Placement placement(*this);
  schedule::Schedule s = schedule::emptySchedule(form_.collective, "", form_.ranks, form_.chunks);
  s.name = std::move(name);
  s.inChunks = form_.inChunks();
  s.outChunks = form_.outChunks();
  s.parts = form_.parts;
  s.typical.clear();
  for (std::uint32_t rank = 0; rank < form_.ranks; ++rank) s.typical.push_back(rank);
  auto programs = std::make_shared<std::vector<schedule::Program>>(placement.run());
  s.tmpChunks = placement.tmpChunks();
  s.program = [programs = std::shared_ptr<const std::vector<schedule::Program>>(
                   std::move(programs))](std::uint32_t rank) { return (*programs)[rank]; };
  return s;
}

}  // namespace weft::formats
