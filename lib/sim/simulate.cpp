// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>
#include <queue>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "sim/job.h"
#include "sim/program.h"
#include "sim/sharing.h"
#include "sim/symmetry.h"

namespace weft::sim {
namespace {

constexpr std::uint32_t kNone = ~0u;

// One invocation in flight, as the engine's.
struct Lane {
  std::uint64_t segment = 0;
  std::uint32_t next = 0;     // op to run
  std::uint32_t pending = 0;  // messages whose bytes have not all left
  bool active = false;
};

// The first rank of a class, and what the engine of this rank would be at.
struct Rank {
  const Program* program = nullptr;
  std::vector<Lane> lanes;
  std::vector<std::uint64_t> arrived;  // [lane * waits + wait]: the last segment, from 1
  std::uint64_t opened = 0, closed = 0, looksAt = 0;  // segments
  std::uint64_t completed = 0;
  std::vector<Time> completedAt;  // by segment, where credits are asked for
  std::vector<std::pair<std::uint32_t, Time>> wantCredit;  // who, and how long it is told
  bool moved = false, busy = false, idle = true, woken = false;
  Time finished = kNever;
  Time began = 0;  // of what the core is at
  double slowness = 1;
  std::uint32_t core = kNone;  // the channel of its core, where that is shared
  bool turnsTo = false;        // the core is about to run this rank
  bool isThrough() const { return finished != kNever; }
};

struct Event {
  enum class Kind : std::uint8_t { Done, Arrival, Wake };
  Time at = 0;
  std::uint64_t number = 0;  // of equal times the first comes first
  Kind kind = Kind::Done;
  std::uint32_t rank = 0;
  std::uint32_t what = 0;  // Arrival: the message
  bool operator>(const Event& other) const {
    return at != other.at ? at > other.at : number > other.number;
  }
};

struct Message {
  std::uint32_t from = 0, to = 0;  // classes
  std::uint32_t target = 0;
  std::uint64_t segment = 0;
  Time latency = 0, sent = 0;
  std::uint32_t op = 0;
  std::uint64_t bytes = 0;
};

// A way that messages take: what they use, and how long they are on it.
struct Way {
  std::uint32_t channel = kNone;
  Time latency = 0;
};

class Simulation {
 public:
  Simulation(const Job& job, const Setting& setting, const Symmetry& symmetry,
             const std::vector<Program>& programs)
      : job_(job),
        setting_(setting),
        network_(*setting.network),
        symmetry_(symmetry),
        sharing_(ratesOf(setting)),
        ranks_(programs.size()) {
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) begin(r, programs[r]);
  }

  Status run() {
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) wake(r);
    runWoken();
    sharing_.settle(now_);
    while (true) {
      const Time next = std::min(events_.empty() ? kNever : events_.top().at, sharing_.nextEnd());
      if (next == kNever) break;
      now_ = next;
      handleAll();
      sharing_.settle(now_);
    }
    return checkThrough();
  }

  void report(Result* result) const {
    Time last = 0;
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].finished <= last) continue;
      last = ranks_[r].finished;
      result->slowest = r;
    }
    result->ns = nsOf(last);
    result->simulated = static_cast<std::uint32_t>(ranks_.size());
    result->events = number_;
    result->messages = messageCount_ * symmetry_.shifts();
    for (std::uint32_t r = 0; r < network_.resources(); ++r) {
      const double could = network_.rateOf(r) * result->ns;
      if (sharing_.carried(r) > 0 && could > 0)
        result->loads.push_back({r, sharing_.carried(r), sharing_.carried(r) / could});
    }
    std::ranges::stable_sort(result->loads, std::greater(), &Load::share);
  }

 private:
  // The fabric's resources come first, then cores, where they matter: those that ranks share, or
  // whose work is slower when memory is.
  static std::vector<double> ratesOf(const Setting& setting) {
    const Network& network = *setting.network;
    std::vector<double> rates;
    for (std::uint32_t r = 0; r < network.resources(); ++r) rates.push_back(network.rateOf(r));
    rates.resize(rates.size() + std::size_t{network.nodes()} * coresOf(setting), 1);
    return rates;
  }
  static std::uint32_t coresOf(const Setting& setting) {
    if (setting.coresOfNode != 0 || !setting.network->limitsMemory()) return setting.coresOfNode;
    return setting.network->fabric().mostRanksOfANode();
  }

  bool sharesCores() const { return setting_.coresOfNode != 0; }
  std::uint32_t coreOf(std::uint32_t rank) const {
    const std::uint32_t cores = coresOf(setting_);
    return network_.resources() + network_.nodeOf(rank) * cores +
           network_.localRankOf(rank) % cores;
  }

  void begin(std::uint32_t number, const Program& program) {
    Rank& rank = ranks_[number];
    rank.program = &program;
    const std::uint64_t lanes = std::min<std::uint64_t>(setting_.lanes, program.segments);
    rank.lanes.resize(lanes);
    rank.arrived.resize(lanes * program.waits, 0);
    if (program.segments > program.depth) rank.completedAt.resize(program.segments, kNever);
    for (const Straggler& straggler : setting_.stragglers)
      if (straggler.rank == number) rank.slowness *= straggler.factor;
    if (coresOf(setting_) != 0) rank.core = sharing_.addChannel({});
  }

  // ---- time

  void post(Time at, Event::Kind kind, std::uint32_t rank, std::uint32_t what = 0) {
    events_.push({at, number_++, kind, rank, what});
  }

  // All that happens now, and what follows from it at once.
  void handleAll() {
    do {
      for (const std::uint64_t cookie : sharing_.finish(now_)) handleEnd(cookie);
      while (!events_.empty() && events_.top().at == now_) {
        const Event event = events_.top();
        events_.pop();
        handle(event);
      }
      runWoken();
    } while (!events_.empty() && events_.top().at == now_);
  }

  static constexpr std::uint64_t kOfGroups = std::uint64_t{1} << 63;
  // Cookies: messages, or ranks whose core has done its work.
  static constexpr std::uint64_t kOfCore = std::uint64_t{1} << 32;
  void handleEnd(std::uint64_t cookie) {
    if ((cookie & kOfCore) != 0) {
      complete(static_cast<std::uint32_t>(cookie));
      return;
    }
    const auto number = static_cast<std::uint32_t>(cookie);
    post(now_ + messages_[number].latency, Event::Kind::Arrival, messages_[number].to, number);
  }

  void handle(const Event& event) {
    if (event.kind == Event::Kind::Done) complete(event.rank);
    if (event.kind == Event::Kind::Wake) wake(event.rank);
    if (event.kind == Event::Kind::Arrival) arrive(event.what);
  }

  void arrive(std::uint32_t number) {
    const Message message = messages_[number];
    Rank& to = ranks_[message.to];
    const std::uint64_t lane = message.segment % to.lanes.size();
    to.arrived[lane * to.program->waits + message.target] = message.segment + 1;
    wake(message.to);
    Rank& from = ranks_[message.from];
    if (!from.program->steps[message.op].byMemory) {
      --from.lanes[message.segment % from.lanes.size()].pending;
      wake(message.from);
    }
    observeMessage(message);
    freeMessages_.push_back(number);
  }

  void wake(std::uint32_t number) {
    Rank& rank = ranks_[number];
    if (rank.busy || rank.isThrough() || std::exchange(rank.woken, true)) return;
    woken_.push_back(number);
  }

  void runWoken() {
    while (!woken_.empty()) {
      const std::vector<std::uint32_t> now = std::exchange(woken_, {});
      for (const std::uint32_t number : now) {
        Rank& rank = ranks_[number];
        rank.woken = false;
        if (rank.busy || rank.isThrough()) continue;
        advance(number);
      }
    }
  }

  // ---- the engine's loop

  // Looks at the lanes in turn until the core is busy, nothing moves or all is done.
  void advance(std::uint32_t number) {
    Rank& rank = ranks_[number];
    if (rank.idle && !turnTo(number)) return;
    const std::uint64_t segments = rank.program->segments;
    while (true) {
      const bool looks = rank.looksAt < std::min(segments, rank.closed + rank.lanes.size());
      if (looks) {
        Lane& lane = rank.lanes[rank.looksAt % rank.lanes.size()];
        if (rank.looksAt == rank.opened) lane = {rank.opened++, 0, 0, true};
        if (lane.active && !advanceLane(number, lane)) return;
        ++rank.looksAt;
        continue;
      }
      while (rank.closed < rank.opened && !rank.lanes[rank.closed % rank.lanes.size()].active)
        ++rank.closed;
      if (rank.closed == segments) {
        rank.finished = now_;
        return;
      }
      rank.idle = !std::exchange(rank.moved, false);
      if (rank.idle) return;
      rank.looksAt = rank.closed;
    }
  }

  // A rank that waits begins anew with its first lane. A core that others use turns to it when it has
  // something to do, which takes a while: false.
  bool turnTo(std::uint32_t number) {
    Rank& rank = ranks_[number];
    if (sharesCores() && !hasWork(number)) return false;
    rank.idle = false;
    rank.looksAt = rank.closed;
    if (!sharesCores()) return true;
    rank.turnsTo = true;
    work(number, job_.costs->machine.handOverNs, 0);
    return false;
  }

  bool hasWork(std::uint32_t number) {
    Rank& rank = ranks_[number];
    if (rank.opened < std::min(rank.program->segments, rank.closed + rank.lanes.size()))
      return true;
    return std::ranges::any_of(rank.lanes, [&](const Lane& lane) {
      if (!lane.active) return false;
      if (lane.next == rank.program->steps.size()) return lane.pending == 0;
      const Step& step = rank.program->steps[lane.next];
      if (step.kind == Step::Kind::Wait) return hasArrived(rank, lane, step);
      return (!step.drain || lane.pending == 0) &&
             (step.kind != Step::Kind::Message || mayPut(number, lane, step));
    });
  }

  // False: the core is busy.
  bool advanceLane(std::uint32_t number, Lane& lane) {
    Rank& rank = ranks_[number];
    const std::vector<Step>& steps = rank.program->steps;
    while (lane.next < steps.size()) {
      const Step& step = steps[lane.next];
      if (step.drain && lane.pending != 0) return true;
      if (step.kind == Step::Kind::Wait) {
        if (!hasArrived(rank, lane, step)) return true;
      } else {
        if (step.kind == Step::Kind::Message && !mayPut(number, lane, step)) return true;
        const double ns = workOf(number, lane, step);
        if (ns > 0) {
          work(number, ns, step.price.memoryPerByte * bytesOf(rank, lane, step));
          return false;
        }
        send(number, lane, step);
      }
      ++lane.next;
      rank.moved = true;
    }
    if (lane.pending == 0) close(number, lane);
    return true;
  }

  double bytesOf(const Rank& rank, const Lane& lane, const Step& step) const {
    return static_cast<double>(step.bytes(lane.segment * rank.program->segmentBytes));
  }

  bool hasArrived(const Rank& rank, const Lane& lane, const Step& step) const {
    const std::uint64_t at = lane.segment % rank.lanes.size() * rank.program->waits + step.target;
    return rank.arrived[at] == lane.segment + 1;
  }

  // Its slots at the peer are free again when the peer has completed what used them, and says so.
  bool mayPut(std::uint32_t number, const Lane& lane, const Step& step) {
    const std::uint32_t depth = ranks_[number].program->depth;
    if (lane.segment < depth) return true;
    Rank& peer = ranks_[symmetry_.classOf(step.peer)];
    const Time told = latencyOf(number, step);
    const Time done = peer.completedAt[lane.segment - depth];
    if (done == kNever) {
      const std::pair wish{number, told};
      if (std::ranges::find(peer.wantCredit, wish) == peer.wantCredit.end())
        peer.wantCredit.push_back(wish);
      return false;
    }
    if (done + told <= now_) return true;
    post(done + told, Event::Kind::Wake, number);
    return false;
  }

  double workOf(std::uint32_t number, const Lane& lane, const Step& step) const {
    const Rank& rank = ranks_[number];
    const double ns = step.price.fixedNs + step.price.nsPerByte * bytesOf(rank, lane, step);
    if (ns <= 0) return 0;
    return ns * rank.slowness * noise(number, lane.segment, lane.next, 0);
  }

  void work(std::uint32_t number, double ns, double memoryBytes) {
    Rank& rank = ranks_[number];
    rank.busy = true;
    rank.began = now_;
    if (rank.core == kNone) {
      post(now_ + timeOf(ns), Event::Kind::Done, number);
      return;
    }
    std::vector<Use> uses{{coreOf(number), 1}};
    if (network_.limitsMemory() && memoryBytes > 0)
      uses.push_back(
          symmetry_.folded({network_.memoryOf(network_.nodeOf(number)), memoryBytes / ns}));
    sharing_.setUses(rank.core, uses);
    sharing_.start(rank.core, ns, kOfCore | number, now_);
  }

  // The core has done its op.
  void complete(std::uint32_t number) {
    Rank& rank = ranks_[number];
    rank.busy = false;
    if (std::exchange(rank.turnsTo, false)) return wake(number);
    Lane& lane = rank.lanes[rank.looksAt % rank.lanes.size()];
    const Step& step = rank.program->steps[lane.next];
    observeWork(number, lane, step);
    send(number, lane, step);
    ++lane.next;
    rank.moved = true;
    wake(number);
  }

  void close(std::uint32_t number, Lane& lane) {
    Rank& rank = ranks_[number];
    lane.active = false;
    rank.moved = true;
    while (rank.completed < rank.opened && !rank.lanes[rank.completed % rank.lanes.size()].active) {
      if (!rank.completedAt.empty()) rank.completedAt[rank.completed] = now_;
      ++rank.completed;
    }
    for (const auto& [who, told] : std::exchange(rank.wantCredit, {}))
      post(now_ + told, Event::Kind::Wake, who);
  }

  // ---- messages

  void send(std::uint32_t number, Lane& lane, const Step& step) {
    if (step.kind != Step::Kind::Message) return;
    Rank& rank = ranks_[number];
    const double bytes = bytesOf(rank, lane, step);
    Message message{.from = number,
                    .to = symmetry_.classOf(step.peer),
                    .target = step.target,
                    .segment = lane.segment,
                    .sent = now_,
                    .op = lane.next,
                    .bytes = static_cast<std::uint64_t>(bytes)};
    const double drawn = noise(number, lane.segment, lane.next, 1);
    message.latency = timeOf(nsOf(latencyOf(number, step)) * drawn);
    ++messageCount_;
    const std::uint32_t made = keep(message);
    if (!step.byMemory) ++lane.pending;
    if (step.byMemory || bytes == 0)
      post(now_ + message.latency, Event::Kind::Arrival, message.to, made);
    else
      sharing_.startInQueue(wayOf(number, step).channel, std::uint64_t{number} << 32 | step.peer,
                            bytes, made, now_);
  }

  std::uint32_t keep(const Message& message) {
    if (freeMessages_.empty()) {
      messages_.push_back(message);
      return static_cast<std::uint32_t>(messages_.size() - 1);
    }
    const std::uint32_t number = freeMessages_.back();
    freeMessages_.pop_back();
    messages_[number] = message;
    return number;
  }

  Time latencyOf(std::uint32_t number, const Step& step) {
    return step.byMemory ? timeOf(job_.costs->machine.exchangeNs) : wayOf(number, step).latency;
  }

  const Way& wayOf(std::uint32_t number, const Step& step) {
    const bool isNear = network_.nodeOf(number) == network_.nodeOf(step.peer);
    const std::uint64_t key = isNear ? std::uint64_t{number} << 32 | step.peer
                                     : kOfGroups | std::uint64_t{network_.groupOf(number)} << 32 |
                                           network_.groupOf(step.peer);
    const auto [known, isNew] = ways_.try_emplace(key, std::uint32_t{0});
    if (isNew) known->second = findWay(number, step.peer);
    return foundWays_[known->second];
  }

  // Those that use the same resources are one.
  std::uint32_t findWay(std::uint32_t from, std::uint32_t to) {
    Route route;
    network_.findRoute(from, to, &route);
    std::vector<Use> uses;
    for (const Use& use : route.uses) addUse(symmetry_.folded(use), &uses);
    if (network_.limitsMemory()) addMemory(from, to, &uses);
    std::ranges::sort(uses, {}, &Use::resource);
    const auto number = static_cast<std::uint32_t>(foundWays_.size());
    const auto [known, isNew] = wayOfUses_.try_emplace(hashOf(uses, route.latencyNs), number);
    if (isNew) foundWays_.push_back({sharing_.addChannel(uses), timeOf(route.latencyNs)});
    return known->second;
  }

  static std::uint64_t hashOf(const std::vector<Use>& uses, double latencyNs) {
    Hash hash;
    for (const Use& use : uses)
      hash.add(use.resource).add(static_cast<std::uint64_t>(std::llround(use.weight * 1e9)));
    return hash.add(static_cast<std::uint64_t>(timeOf(latencyNs))).value();
  }

  static void addUse(const Use& use, std::vector<Use>* uses) {
    const auto same = std::ranges::find(*uses, use.resource, &Use::resource);
    if (same == uses->end())
      uses->push_back(use);
    else
      same->weight += use.weight;
  }

  // Links read and write it, too.
  void addMemory(std::uint32_t from, std::uint32_t to, std::vector<Use>* uses) const {
    for (const std::uint32_t rank : {from, to})
      addUse(symmetry_.folded({network_.memoryOf(network_.nodeOf(rank)), 1}), uses);
  }

  // ---- noise, and what is seen

  double noise(std::uint32_t rank, std::uint64_t segment, std::uint32_t op,
               std::uint32_t what) const {
    if (setting_.jitter.sigma <= 0) return 1;
    Hash hash;
    hash.add(setting_.jitter.seed).add(rank).add(segment).add(op).add(what);
    const std::uint64_t one = hash.value(), two = hash.add(1).value();
    const double u = (static_cast<double>(one >> 11) + 0.5) * 0x1p-53;
    const double v = (static_cast<double>(two >> 11) + 0.5) * 0x1p-53;
    const double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
    return std::exp(setting_.jitter.sigma * normal);
  }

  void observeWork(std::uint32_t number, const Lane& lane, const Step& step) const {
    if (!setting_.observe) return;
    const Rank& rank = ranks_[number];
    const auto bytes = static_cast<std::uint64_t>(bytesOf(rank, lane, step));
    setting_.observe({number, static_cast<std::uint32_t>(lane.segment % rank.lanes.size()),
                      lane.next, lane.segment, rank.began, now_, bytes, step.peer, false,
                      nameOf(step.planned)});
  }

  void observeMessage(const Message& message) const {
    if (!setting_.observe) return;
    const Rank& from = ranks_[message.from];
    const Step& step = from.program->steps[message.op];
    setting_.observe({message.from, static_cast<std::uint32_t>(message.segment % from.lanes.size()),
                      message.op, message.segment, message.sent, now_, message.bytes, message.to,
                      true, nameOf(step.planned)});
  }

  Status checkThrough() const {
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      const Rank& rank = ranks_[r];
      if (rank.isThrough()) continue;
      const Lane& lane = rank.lanes[rank.closed % rank.lanes.size()];
      const std::vector<Step>& steps = rank.program->steps;
      const std::string at = lane.next < steps.size() ? describe(steps[lane.next]) : "";
      return Status::error(Code::InternalError, "rank ", r, " does not finish: in segment ",
                           lane.segment, " it stands at op ", lane.next, " (", at,
                           ") when nothing is left to happen; fix: report it as a bug, with the "
                           "command");
    }
    return {};
  }

  const Job& job_;
  const Setting& setting_;
  const Network& network_;
  const Symmetry& symmetry_;
  Sharing sharing_;
  std::vector<Rank> ranks_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> freeMessages_, woken_;
  std::unordered_map<std::uint64_t, std::uint32_t> ways_, wayOfUses_;
  std::vector<Way> foundWays_;
  Time now_ = 0;
  std::uint64_t number_ = 0, messageCount_ = 0;
};

Unfolded whyUnfolded(const Setting& setting) {
  if (!setting.folds) return Unfolded::NotAsked;
  if (setting.observe) return Unfolded::Observed;
  if (setting.coresOfNode != 0) return Unfolded::Cores;
  const bool differ = !setting.stragglers.empty() || setting.jitter.sigma > 0;
  return differ ? Unfolded::Different : Unfolded::No;
}

// The most shifts under which this job is the same, as it is or with its last segment spread.
Status findSymmetry(const Job& job, Setting* setting, Symmetry* symmetry, Unfolded* why) {
  const Network& network = *setting->network;
  *symmetry = Symmetry::none(network);
  *why = whyUnfolded(*setting);
  const std::vector<Symmetry> candidates = Symmetry::of(network);
  if (*why == Unfolded::No && candidates.empty()) *why = Unfolded::Different;
  if (*why != Unfolded::No) return {};
  const bool mayEven = std::exchange(setting->evens, false);
  for (const bool evens : {false, true}) {
    if (evens && !mayEven) break;
    setting->evens = evens;
    for (const Symmetry& candidate : candidates) {
      bool follows = false;
      WEFT_TRY(followsSymmetry(job, *setting, candidate, &follows));
      if (!follows) continue;
      *symmetry = candidate;
      return {};
    }
  }
  setting->evens = false;
  *why = Unfolded::Plans;
  return {};
}

// Where some ranks are joined by nothing, the plans must send nothing between them.
Status checkWays(const Network& network, const std::vector<Program>& programs) {
  const Status connected = network.checkConnected();
  if (connected.ok()) return {};
  Route route;
  for (std::uint32_t rank = 0; rank < programs.size(); ++rank)
    for (const Step& step : programs[rank].steps)
      if (step.kind == Step::Kind::Message && !network.findRoute(rank, step.peer, &route))
        return connected;
  return {};
}

}  // namespace

Status simulate(const Job& job, const Setting& setting, Result* result) {
  *result = {};
  Setting settled = setting;
  Symmetry symmetry = Symmetry::none(*setting.network);
  WEFT_TRY(findSymmetry(job, &settled, &symmetry, &result->unfolded));
  std::vector<Program> programs;
  WEFT_TRY(makePrograms(job, settled, symmetry, &programs));
  WEFT_TRY(checkWays(*setting.network, programs));
  Simulation simulation(job, settled, symmetry, programs);
  result->evened = settled.evens;
  WEFT_TRY(simulation.run());
  simulation.report(result);
  return {};
}

}  // namespace weft::sim
