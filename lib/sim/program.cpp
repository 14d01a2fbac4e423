// SPDX-License-Identifier: Apache-2.0
#include "sim/program.h"

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/text.h"

namespace weft::sim {
namespace {

using PlanKind = plan::BoundOp::Kind;

constexpr std::uint32_t kNobody = ~0u;

Status broken(std::uint32_t rank, std::size_t op, const std::string& what) {
  return Status::error(Code::InternalError, "rank ", rank, ", op ", op, " of its plan: ", what,
                       "; fix: report it as a bug, with the command");
}

Step stepOf(const plan::BoundOp& op) {
  Step step;
  step.planned = op.kind;
  step.drain = op.drain;
  switch (op.kind) {
    case PlanKind::Wait:
      step.kind = Step::Kind::Wait;
      return step;
    case PlanKind::Put:
    case PlanKind::PutInline:
    case PlanKind::PutDirect:
    case PlanKind::Signal:
    case PlanKind::Raise:
      step.kind = Step::Kind::Message;
      break;
    default:
      break;
  }
  const bool isEmpty = op.kind == PlanKind::Signal || op.kind == PlanKind::Raise;
  step.max = isEmpty ? 0 : op.max;
  step.limit = isEmpty ? 0 : op.limit;
  return step;
}

// Waits that follow each other may come in any order: nothing happens between them.
void sortWaits(std::vector<Step>* steps) {
  const auto waits = [](const Step& step) { return step.kind == Step::Kind::Wait; };
  for (auto begin = steps->begin(); begin != steps->end();) {
    begin = std::find_if(begin, steps->end(), waits);
    const auto end = std::find_if_not(begin, steps->end(), waits);
    std::sort(begin, end, [](const Step& a, const Step& b) {
      return std::pair(a.peer, a.arrival) < std::pair(b.peer, b.arrival);
    });
    begin = end;
  }
}

// How often each of some small numbers has been seen.
class Counts {
 public:
  // Before now.
  std::uint32_t see(std::size_t number) {
    if (number >= counts_.size()) counts_.resize(2 * number + 1, 0);
    return counts_[number]++;
  }

 private:
  std::vector<std::uint32_t> counts_;
};

// The number of a message among those to its peer, or of a wait among those for it: arrival slots
// are numbered by chunk, which differs between ranks that are otherwise alike.
class Ordinals {
 public:
  std::uint32_t next(const plan::BoundOp& op) {
    return (op.kind == PlanKind::Wait ? waits_ : messages_).see(op.peer);
  }

 private:
  Counts messages_, waits_;
};

// The part of its length that a chunk has in the last segment if all have the same.
double evenPart(const plan::Plan& plan) {
  std::uint64_t total = 0;
  for (const plan::BoundOp& op : plan.ops) total = std::max(total, op.limit);
  const std::uint64_t last = (plan.segments - 1) * plan.segmentBytes;
  if (plan.segmentBytes == 0 || total <= last) return 1;
  return std::min(1.0, static_cast<double>(total - last) / static_cast<double>(plan.segmentBytes));
}

Status compile(const Job& job, const Setting& setting, const Symmetry& symmetry, std::uint32_t rank,
               const plan::Plan* plan, Program* program) {
  if (plan->ops.empty())
    return Status::error(Code::InternalError, "the plan of rank ", rank,
                         " has no ops, so there is nothing to time; fix: report it as a bug");
  const Network& network = *setting.network;
  const Pricing pricing(*plan, rank, job, network, setting.messageNs);
  const transport::ArrivalRegions regions = job.regions(plan->inRing);
  const std::uint64_t last = (plan->segments - 1) * plan->segmentBytes;
  const double even = evenPart(*plan);
  *program = {{}, plan->segments, plan->segmentBytes, plan->depth, plan->lead, 0, {}};
  for (const std::uint32_t reader : plan->readers)
    program->readers.push_back(symmetry.seenFrom(rank, job.groups.rankOf(rank, reader)));
  program->steps.reserve(plan->ops.size());
  Ordinals ordinals;
  for (const plan::BoundOp& op : plan->ops) {
    Step step = stepOf(op);
    step.price = pricing.of(op);
    if (step.limit >= last + step.max) step.limit = last + step.max;  // no shorter one in any
    if (setting.evens)
      step.limit = last + static_cast<std::uint64_t>(even * static_cast<double>(step.max));
    if (step.kind != Step::Kind::Work) {
      const std::uint32_t peer = job.groups.rankOf(rank, op.peer);
      step.peer = symmetry.seenFrom(rank, peer);
      step.arrival = symmetry.folds() ? ordinals.next(op) : regions.indexOf(op.arrival);
      step.byMemory = network.joinsByMemory(rank, peer);
    }
    program->steps.push_back(step);
  }
  return {};
}

// Numbers the waits of a program, so that messages can be joined to them.
class Waits {
 public:
  explicit Waits(Program* program) {
    for (std::uint32_t i = 0; i < program->steps.size(); ++i) {
      Step& step = program->steps[i];
      if (step.kind != Step::Kind::Wait) continue;
      step.target = program->waits++;
      all_.push_back({keyOf(step.peer, step.arrival), step.target, i});
    }
    std::ranges::sort(all_);
    isMet_.resize(all_.size(), false);
  }

  // The wait for that message of that writer, which is met once: else kNobody.
  std::uint32_t meet(std::uint32_t writer, std::uint32_t arrival) {
    const Wait wanted{keyOf(writer, arrival), 0, 0};
    const auto found = std::ranges::lower_bound(all_, wanted);
    if (found == all_.end() || found->key != wanted.key || isMet_[found->number]) return kNobody;
    isMet_[found->number] = true;
    return found->number;
  }
  // The op of a wait that no message meets.
  std::uint32_t firstUnmet() const {
    for (const Wait& wait : all_)
      if (!isMet_[wait.number]) return wait.op;
    return kNobody;
  }

 private:
  struct Wait {
    std::uint64_t key = 0;
    std::uint32_t number = 0, op = 0;
    auto operator<=>(const Wait&) const = default;
  };
  static std::uint64_t keyOf(std::uint32_t writer, std::uint32_t arrival) {
    return std::uint64_t{writer} << 32 | arrival;
  }
  std::vector<Wait> all_;
  std::vector<bool> isMet_;
};

Status join(const Symmetry& symmetry, std::vector<Program>* programs) {
  std::vector<Waits> waits;
  for (Program& program : *programs) waits.emplace_back(&program);
  for (std::uint32_t from = 0; from < programs->size(); ++from) {
    std::vector<Step>& steps = (*programs)[from].steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind != Step::Kind::Message) continue;
      const std::uint32_t peer = steps[i].peer;
      steps[i].target =
          waits[symmetry.classOf(peer)].meet(symmetry.seenFrom(peer, from), steps[i].arrival);
      if (steps[i].target == kNobody)
        return broken(from, i, text(describe(steps[i]), ", which does not wait for it"));
    }
  }
  for (std::uint32_t rank = 0; rank < waits.size(); ++rank)
    if (const std::uint32_t op = waits[rank].firstUnmet(); op != kNobody)
      return broken(
          rank, op,
          text(describe((*programs)[rank].steps[op]), ", which sends nothing of the kind"));
  return {};
}

// The numbers of shifts whose ranks are compared with those of the first, which is none.
std::set<std::uint32_t> sampledShifts(const Symmetry& symmetry) {
  constexpr std::uint32_t kAll = 8;
  const std::uint32_t shifts = symmetry.shifts();
  std::set<std::uint32_t> some{0, 1, shifts / 2, shifts - 1};
  for (std::uint32_t shift = 0; shift < shifts && shifts <= kAll; ++shift) some.insert(shift);
  return some;
}

// The arrival slots of all messages to that member, or of all waits for it, in the order of the ops.
std::vector<std::uint32_t> arrivalsOf(const Job& job, const plan::Plan& plan, std::uint32_t peer,
                                      bool waits) {
  const transport::ArrivalRegions regions = job.regions(plan.inRing);
  std::vector<std::uint32_t> arrivals;
  for (const plan::BoundOp& op : plan.ops) {
    const Step::Kind kind = stepOf(op).kind;
    if (op.peer == peer && kind == (waits ? Step::Kind::Wait : Step::Kind::Message))
      arrivals.push_back(regions.indexOf(op.arrival));
  }
  return arrivals;
}

// The members that get several messages of a rank: all of few, and some of many.
std::vector<std::uint32_t> sampledPeers(const plan::Plan& plan) {
  constexpr std::size_t kAll = 64, kSome = 2;
  std::vector<std::uint32_t> several, some;
  Counts messages;
  for (const plan::BoundOp& op : plan.ops)
    if (stepOf(op).kind == Step::Kind::Message && messages.see(op.peer) == 1)
      several.push_back(op.peer);
  std::ranges::sort(several);
  const std::size_t step = several.size() <= kAll ? 1 : (several.size() + kSome - 1) / kSome;
  for (std::size_t i = 0; i < several.size(); i += step) some.push_back(several[i]);
  return some;
}

// Do the first rank of a class and those that it stands for run the same program?
Status areAlike(const Job& job, const Setting& setting, const Symmetry& symmetry, std::uint32_t one,
                const std::set<std::uint32_t>& shifts, Plans* plans, bool* alike) {
  Program first;
  for (const std::uint32_t shift : shifts) {
    const std::uint32_t rank = symmetry.moved(one, shift);
    Plans::Pointer plan;
    Program program;
    WEFT_TRY(plans->keep(job, rank, &plan));
    WEFT_TRY(compile(job, setting, symmetry, rank, plan.get(), &program));
    sortWaits(&program.steps);
    if (shift == 0) first = program;
    *alike = program == first;
    if (!*alike) break;
  }
  return {};
}

// Does a rank's first message to a peer meet the first wait for it, and so on?
Status areInOrder(const Job& job, std::uint32_t rank, Plans* plans, bool* inOrder) {
  Plans::Pointer plan, theirs;
  WEFT_TRY(plans->keep(job, rank, &plan));
  for (const std::uint32_t peer : sampledPeers(*plan)) {
    WEFT_TRY(plans->keep(job, job.groups.rankOf(rank, peer), &theirs));
    *inOrder = arrivalsOf(job, *plan, peer, false) ==
               arrivalsOf(job, *theirs, job.groups.positionOf(rank), true);
    if (!*inOrder) break;
  }
  return {};
}

}  // namespace

std::string describe(const Step& step) {
  if (step.kind == Step::Kind::Work) return nameOf(step.planned);
  const char* const way = step.kind == Step::Kind::Wait ? " for rank " : " to rank ";
  return text(nameOf(step.planned), way, step.peer);
}

Status makePrograms(const Job& job, const Setting& setting, const Symmetry& symmetry,
                    const Plans& plans, std::vector<Program>* programs) {
  programs->assign(symmetry.classes(), {});
  for (std::uint32_t rank = 0; rank < symmetry.classes(); ++rank) {
    Plans::Pointer plan;
    WEFT_TRY(plans.find(job, rank, &plan));
    WEFT_TRY(compile(job, setting, symmetry, rank, plan.get(), &(*programs)[rank]));
  }
  return join(symmetry, programs);
}

Status followsSymmetry(const Job& job, const Setting& setting, const Symmetry& symmetry,
                       Plans* plans, bool* follows) {
  *follows = true;
  const std::set<std::uint32_t> shifts = sampledShifts(symmetry);
  for (std::uint32_t one = 0; *follows && one < symmetry.classes(); ++one) {
    WEFT_TRY(areAlike(job, setting, symmetry, one, shifts, plans, follows));
    for (const std::uint32_t shift : shifts)
      if (*follows) WEFT_TRY(areInOrder(job, symmetry.moved(one, shift), plans, follows));
  }
  return {};
}

}  // namespace weft::sim
