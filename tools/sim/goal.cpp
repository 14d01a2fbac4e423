// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/goal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "sim/program.h"

namespace weft::simulator {
namespace {

Status refuse(const std::string& why) {
  return Status::error(Code::InvalidUsage, fmt::format("--goal: {}", why));
}

class GoalMaker {
 public:
  GoalMaker(const sim::Job& job, const sim::Setting& setting, Goal* goal)
      : job_(job), setting_(setting), network_(*setting.network), goal_(*goal) {}

  Status run() {
    WEFT_TRY(
        sim::makePrograms(job_, setting_, sim::Symmetry::none(network_), sim::Plans(), &programs_));
    WEFT_TRY(findMessages());
    goal_.ranks.resize(programs_.size());
    for (std::uint32_t rank = 0; rank < programs_.size(); ++rank) addRank(rank);
    return {};
  }

 private:
  // A message by the wait for it.
  struct Sent {
    const sim::Step* step = nullptr;
  };

  Status findMessages() {
    sent_.resize(programs_.size());
    for (std::uint32_t rank = 0; rank < programs_.size(); ++rank)
      sent_[rank].resize(programs_[rank].waits);
    for (std::uint32_t rank = 0; rank < programs_.size(); ++rank)
      for (const sim::Step& step : programs_[rank].steps) {
        if (step.kind != sim::Step::Kind::Message) continue;
        sent_[step.peer][step.target] = {&step};
        WEFT_TRY(addWay(rank, step));
      }
    return {};
  }

  // All are alike.
  Status addWay(std::uint32_t rank, const sim::Step& step) {
    if (step.byMemory)
      return refuse(fmt::format(
          "ranks {} and {} share memory, which GOAL does not know; fix: a fabric whose ranks are "
          "joined by links",
          rank, step.peer));
    sim::Route route;
    network_.findRoute(rank, step.peer, &route);
    double rate = 0;
    for (const sim::Use& use : route.uses) {
      const double ofUse = network_.rateOf(use.resource) / use.weight;
      rate = rate == 0 ? ofUse : std::min(rate, ofUse);
    }
    LogGops here;
    here.overheadPs = sim::timeOf(step.price.fixedNs);
    here.latencyPs = sim::timeOf(route.latencyNs);
    here.gapPerBytePs = 1e3 / rate;
    if (!known_) known_ = goal_.parameters = here;
    if (known_->latencyPs == here.latencyPs && known_->gapPerBytePs == here.gapPerBytePs) return {};
    return refuse(
        fmt::format("the way from rank {} to rank {} differs from others in rate or latency, and "
                    "GOAL knows one "
                    "of each; fix: a fabric with one kind of links",
                    rank, step.peer));
  }

  void addRank(std::uint32_t rank) {
    const sim::Program& program = programs_[rank];
    std::vector<std::vector<std::uint32_t>> last;  // by segment: its last op, if it has one
    for (std::uint64_t segment = 0; segment < program.segments; ++segment) {
      std::vector<std::uint32_t> after;
      if (segment >= setting_.lanes) after = last[segment - setting_.lanes];
      for (const sim::Step& step : program.steps) {
        std::optional<GoalOp> op = opOf(rank, step, segment);
        if (!op) continue;
        op->after = std::move(after);
        after = {static_cast<std::uint32_t>(goal_.ranks[rank].size())};
        goal_.ranks[rank].push_back(std::move(*op));
      }
      last.push_back(after);
    }
  }

  std::optional<GoalOp> opOf(std::uint32_t rank, const sim::Step& step,
                             std::uint64_t segment) const {
    const std::uint64_t shift = segment * programs_[rank].segmentBytes;
    const auto tag = static_cast<std::uint32_t>(segment);
    switch (step.kind) {
      case sim::Step::Kind::Message:
        return GoalOp{GoalOp::Kind::Send, step.peer, step.bytes(shift) + 1,
                      tagOf(step.peer, step.target, tag)};
      case sim::Step::Kind::Wait: {
        const std::uint64_t bytes = sent_[rank][step.target].step->bytes(shift);
        return GoalOp{GoalOp::Kind::Receive, step.peer, bytes + 1, tagOf(rank, step.target, tag)};
      }
      case sim::Step::Kind::Work:
        break;
    }
    const auto bytes = static_cast<double>(step.bytes(shift));
    const sim::Time time = sim::timeOf(step.price.fixedNs + step.price.nsPerByte * bytes);
    if (time == 0) return {};
    return GoalOp{GoalOp::Kind::Calc, 0, static_cast<std::uint64_t>(time), 0};
  }

  // Of a wait of that rank, in that segment.
  std::uint32_t tagOf(std::uint32_t rank, std::uint32_t wait, std::uint32_t segment) const {
    return segment * programs_[rank].waits + wait;
  }

  const sim::Job& job_;
  const sim::Setting& setting_;
  const sim::Network& network_;
  Goal& goal_;
  std::vector<sim::Program> programs_;
  std::vector<std::vector<Sent>> sent_;  // [rank][wait]
  std::optional<LogGops> known_;
};

// The binary form: little endian, packed.
class Bytes {
 public:
  template <class Number>
  void add(Number number) {
    for (std::size_t i = 0; i < sizeof(Number); ++i)
      bytes_.push_back(static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i) & 0xff));
  }
  void add(const std::string& bytes) { bytes_ += bytes; }
  std::size_t size() const { return bytes_.size(); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

std::string binaryOf(const std::vector<GoalOp>& ops) {
  std::vector<std::vector<std::uint32_t>> followers(ops.size());
  std::vector<std::uint32_t> roots;
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    if (ops[i].after.empty()) roots.push_back(i);
    for (const std::uint32_t before : ops[i].after) followers[before].push_back(i);
  }
  Bytes bytes;
  bytes.add(static_cast<std::uint32_t>(ops.size()));
  bytes.add(static_cast<std::uint32_t>(roots.size()));
  for (const std::uint32_t root : roots) bytes.add(root);
  std::uint32_t appendix = 0;
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    bytes.add(static_cast<std::uint32_t>(ops[i].after.size()));
    bytes.add(static_cast<std::uint8_t>(ops[i].kind));
    bytes.add(ops[i].peer);
    bytes.add(ops[i].size);
    bytes.add(ops[i].tag);
    bytes.add(std::uint16_t{0});  // core and NIC
    const auto count = static_cast<std::uint32_t>(followers[i].size());
    bytes.add(count);
    bytes.add(appendix);
    appendix += count;
    bytes.add(std::uint32_t{0});  // none follows its start
    bytes.add(appendix);
  }
  for (const std::vector<std::uint32_t>& some : followers)
    for (const std::uint32_t follower : some) bytes.add(follower);
  return bytes.take();
}

}  // namespace

Status makeGoal(const sim::Job& job, const sim::Setting& setting, Goal* goal) {
  *goal = {};
  return GoalMaker(job, setting, goal).run();
}

std::string textOf(const Goal& goal) {
  std::string text = fmt::format(
      "// picoseconds; LogGOPSim -L {} -o {} -g 0 -G {} -O 0 -S 2147483647\nnum_ranks {}\n",
      goal.parameters.latencyPs, goal.parameters.overheadPs, goal.parameters.gapPerBytePs,
      goal.ranks.size());
  const auto out = std::back_inserter(text);
  for (std::size_t rank = 0; rank < goal.ranks.size(); ++rank) {
    fmt::format_to(out, "\nrank {} {{\n", rank);
    for (std::size_t i = 0; i < goal.ranks[rank].size(); ++i) {
      const GoalOp& op = goal.ranks[rank][i];
      if (op.kind == GoalOp::Kind::Send)
        fmt::format_to(out, "l{}: send {}b to {} tag {}\n", i, op.size, op.peer, op.tag);
      else if (op.kind == GoalOp::Kind::Receive)
        fmt::format_to(out, "l{}: recv {}b from {} tag {}\n", i, op.size, op.peer, op.tag);
      else
        fmt::format_to(out, "l{}: calc {}\n", i, op.size);
      for (const std::uint32_t before : op.after)
        fmt::format_to(out, "l{} requires l{}\n", i, before);
    }
    text += "}\n";
  }
  return text;
}

std::string binaryOf(const Goal& goal) {
  constexpr std::uint64_t kMagic = 4223;
  Bytes bytes, parts;
  bytes.add(kMagic);
  bytes.add(static_cast<std::uint32_t>(goal.ranks.size()));
  bytes.add(std::uint16_t{0});  // the highest core and NIC
  // Places of ranks count from behind the magic number.
  const std::uint64_t first = 6 + 16 * goal.ranks.size();
  for (const std::vector<GoalOp>& ops : goal.ranks) {
    bytes.add(std::uint64_t{first + parts.size()});
    parts.add(binaryOf(ops));
    bytes.add(std::uint64_t{first + parts.size()});
  }
  bytes.add(parts.take());
  return bytes.take();
}

}  // namespace weft::simulator
