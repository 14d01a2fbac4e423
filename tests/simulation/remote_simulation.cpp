// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/remote_simulation.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <set>

#include "base/text.h"
#include "bootstrap/handshake.h"
#include "bootstrap/joiner.h"
#include "control/bodies.h"
#include "control/control_client.h"
#include "control/control_relay.h"
#include "control/control_server.h"
#include "engine/executor.h"
#include "net/service_threads.h"
#include "tests/simulation/cables.h"
#include "tests/simulation/caller.h"
#include "tests/simulation/sockets.h"
#include "transports/wire/wire_transport.h"

namespace weft::simulation {
namespace {

// A call returns by its deadline, and what the watch takes to find and tell the reason.
constexpr Time kPatience = 1200 * kMillisecond;
constexpr std::uint16_t kPort = 7;
constexpr std::uint32_t kMostRanks = 4;

// Memory made once for all seeds: that of a network is large.
class Pool {
 public:
  std::shared_ptr<transport::Mapping> get(std::uint32_t rank, std::size_t bytes) {
    Piece& piece = pieces_[rank];
    if (piece.bytes < bytes) piece = {std::make_shared<transport::Mapping>(bytes, -1), bytes};
    return piece.memory;
  }

 private:
  struct Piece {
    std::shared_ptr<transport::Mapping> memory;
    std::size_t bytes = 0;
  };
  std::array<Piece, kMostRanks> pieces_;
};

struct Script {
  Setting setting;
  Cables::Weather weather;
  engine::WaitTuning waiting;
  std::uint64_t epochsBefore = 0;
  int timeoutMs = 0;
  std::uint32_t perHost = 1;
  // Of the communicator that the calls are of: whose control link it has.
  enum class Parent : std::uint8_t { None, LeavesFirst, LeavesLast } parent = Parent::None;
  struct Step {
    const SimulatedCall* call = nullptr;
    std::uint64_t salt = 0;
    std::uint32_t stray = ~0u;  // the rank that makes another call
    const SimulatedCall* other = nullptr;

    const SimulatedCall& of(std::uint32_t rank) const { return rank == stray ? *other : *call; }
  };
  std::vector<Step> steps;
};

Script writeScript(Random& random) {
  Script script;
  script.setting.ranks = 2 + static_cast<std::uint32_t>(random.below(kMostRanks - 1));
  script.setting.cramped = random.chance(30);
  script.weather.maxWrite = random.oneOf<std::size_t>({256, 1024, 1 << 20});
  script.weather.anySource = random.chance(50);
  script.weather.usual = random.oneOf<Time>({1, 5, 20}) * kMicrosecond;
  script.weather.longest = random.oneOf<Time>({20, 200, 1000}) * kMicrosecond;
  if (random.chance(20)) script.weather.clogged = random.between(2, 40) * kMillisecond;
  script.waiting.eager = script.waiting.spins = script.waiting.respins = 0;
  script.waiting.crowded = random.chance(50);
  script.epochsBefore =
      random.oneOf<std::uint64_t>({0, 0, (1u << 27) - 3, (1u << 28) - 2, 1ull << 40});
  script.timeoutMs = random.oneOf({600, 2000});
  script.perHost = random.oneOf<std::uint32_t>({1, 1, 2, 3});
  script.parent = random.oneOf({Script::Parent::None, Script::Parent::None,
                                Script::Parent::LeavesFirst, Script::Parent::LeavesLast});
  const std::uint64_t calls = 1 + random.below(4);
  for (std::uint64_t i = 0; i < calls; ++i)
    script.steps.push_back({&randomCall(script.setting, random), random.next() & 0xffffff});
  return script;
}

class RemoteWorld {
 public:
  explicit RemoteWorld(std::uint64_t seed)
      : scheduler_(seed ^ 0x52656d6f7465u),
        script_(writeScript(scheduler_.random())),
        layout_(script_.setting.layout()),
        sockets_(scheduler_, layout_.ranks),
        cables_(scheduler_, layout_.ranks, script_.weather),
        ranks_(layout_.ranks) {
    descriptors().clear();
    layout_.epochsBefore = script_.epochsBefore;
    for (std::uint32_t r = 0; r < layout_.ranks; ++r) {
      names_.push_back({static_cast<int>(r), text("h", leaderOf(r)), 1000 + static_cast<int>(r)});
      ranks_[r].steps = static_cast<std::uint32_t>(script_.steps.size());
      ranks_[r].fiber = scheduler_.spawn([this, r] { live(r); }, r);
    }
    for (std::byte& byte : secret_) byte = static_cast<std::byte>(scheduler_.random().below(256));
  }

  Outcome run() {
    const Time allowed = static_cast<Time>(script_.steps.size() + 8) *
                         (script_.timeoutMs * kMillisecond + kPatience);
    if (!scheduler_.run(scheduler_.now() + allowed)) blame("somebody hangs");
    judge();
    outcome_.trace = scheduler_.trace();
    dismissTheDead();
    outcome_.story = story();
    return outcome_;
  }

 private:
  struct Rank {
    Scheduler::FiberId fiber = 0;
    std::uint32_t steps = 0;  // calls that it makes
    std::uint32_t done = 0;   // calls that succeeded
    watch::Watch* watch = nullptr;
    Status error;    // of the call that failed
    Status verdict;  // the communicator's, a while later
    Time stoppedFor = 0;
    bool aborting = false;  // by another thread
    bool dead = false;
    bool apart = false;  // its control link was cut
    std::deque<Buffers> buffers;
  };

  void live(std::uint32_t rank);
  transport::TransportSetup setupOf(std::uint32_t rank) const;
  std::unique_ptr<wire::WireTransport> makeTransport(std::uint32_t rank);
  // Ranks of a host follow each other.
  std::uint32_t leaderOf(std::uint32_t rank) const {
    return rank / script_.perHost * script_.perHost;
  }
  static std::uint16_t portOf(std::uint32_t leader) {
    return static_cast<std::uint16_t>(kPort + leader);
  }
  bool relayed(std::uint32_t rank) const {
    return leaderOf(rank) != 0 && script_.perHost > 1 && leaderOf(rank) + 1 < layout_.ranks;
  }
  using Origin = bootstrap::IdContent::Origin;
  bootstrap::IdContent contentAt(std::uint16_t port, Origin origin) const;
  Status reach(std::uint32_t rank, const bootstrap::IdContent& where, bool relay, Deadline deadline,
               std::unique_ptr<net::Stream>* out) const;
  void openRelay(std::uint32_t leader, Deadline deadline);
  std::shared_ptr<control::ControlClient> openLink(std::uint32_t rank,
                                                   transport::Transport& transport);
  control::Members allRanks() const;
  std::shared_ptr<control::ControlClient> branch(std::uint32_t rank,
                                                 transport::Transport& transport,
                                                 const std::shared_ptr<control::LinkEnd>& link);
  void awaitOthers();
  void makeCalls(std::uint32_t rank, transport::Transport& transport, watch::RemoteRanks& remote);
  Status call(std::uint32_t rank, engine::Executor& executor, watch::Watch& watch,
              const Script::Step& step);
  void doHarm();
  void harm();
  void die(std::uint32_t victim);
  void stop(std::uint32_t victim);
  void cutLinks(std::uint32_t victim);
  void cutControl(std::uint32_t from, std::uint32_t to);
  void abort(std::uint32_t victim);
  void stray(std::uint32_t victim);
  void later(std::uint32_t victim, const std::string& what, std::function<void()> action);
  void judge();
  void judgeStrays();
  void judgeVerdict();
  void judgeCulprit(const Status& error);
  bool canAgree() const;
  bool lostServerAndRelay() const;
  void dismissTheDead();
  std::string story() const;
  void blame(const std::string& what) {
    if (outcome_.fault.empty()) outcome_.fault = what;
  }

  Scheduler scheduler_;
  Script script_;
  transport::WindowLayout layout_;
  Sockets sockets_;
  Cables cables_;
  net::Key secret_{};
  std::vector<PeerName> names_;
  std::vector<Rank> ranks_;
  const std::shared_ptr<control::NewGroups> newGroups_ = std::make_shared<control::NewGroups>();
  std::uint32_t linked_ = 0;  // to the parent's link
  std::uint32_t group_ = 0;   // of the branch, once it has one
  std::uint32_t ready_ = 0;
  std::set<int> harmed_;    // ranks that an error may name
  std::set<int> broken_;    // of these, those that did not only leave early
  bool mayBeLate_ = false;  // by what the seed does; all else is noticed before a deadline
  std::vector<std::string> harms_;
  Outcome outcome_;
};

transport::TransportSetup RemoteWorld::setupOf(std::uint32_t rank) const {
  transport::TransportSetup setup;
  setup.rank = rank;
  setup.ranks = layout_.ranks;
  setup.layout = layout_;
  setup.names = names_;
  return setup;
}

std::unique_ptr<wire::WireTransport> RemoteWorld::makeTransport(std::uint32_t rank) {
  wire::WireTransport::Parts parts;
  parts.rank = rank;
  parts.layout = layout_;
  static Pool windows, bounces, books;
  parts.window = pagesOf(windows.get(rank, layout_.size()));
  std::byte* const window = parts.window.get();
  std::memset(window, 0, layout_.arena());
  std::memset(window + layout_.arena(), 0x5a, layout_.size() - layout_.arena());
  new (window) transport::ControlPage();
  const std::size_t bytes = wire::BounceBuffer::bytes(layout_);
  parts.bounceMemory = bounces.get(rank, bytes);
  const std::size_t bookBytes = wire::WireEnd::bookBytes(layout_);
  parts.bookMemory = books.get(rank, bookBytes);
  std::memset(parts.bookMemory->base(), 0, bookBytes);
  parts.peers.assign(layout_.ranks, true);
  parts.peers[rank] = false;
  parts.wire = cables_.plugIn(rank, wire::WireEnd::regionsOf(parts));
  return std::make_unique<wire::WireTransport>(std::move(parts));
}

bootstrap::IdContent RemoteWorld::contentAt(std::uint16_t port, Origin origin) const {
  bootstrap::IdContent content;
  content.origin = origin;
  content.addresses = {net::Address{.ip = {10, 0, 0, 1}, .port = port}};
  content.secret = secret_;
  return content;
}

// A seat of that rank, or a relay.
Status RemoteWorld::reach(std::uint32_t rank, const bootstrap::IdContent& where, bool relay,
                          Deadline deadline, std::unique_ptr<net::Stream>* out) const {
  const bootstrap::Hello hello{
      {}, bootstrap::idTag(secret_),  static_cast<int>(rank), static_cast<int>(layout_.ranks),
      {}, bootstrap::libraryVersion()};
  std::string server;
  WEFT_TRY(bootstrap::Joiner(where, hello, deadline)
               .run(control::maxMessageBytes(layout_.ranks), out, &server));
  const net::Bytes info =
      bootstrap::encode(bootstrap::InfoMessage{names_[rank], relay ? control::kRelay : "", 0});
  if (relay) {
    (*out)->channel().send(net::MessageType::Info, info);
    return (*out)->awaitFlushed(deadline);
  }
  net::Message seated{};
  return (*out)->ask(net::MessageType::Info, info, deadline, &seated);
}

void RemoteWorld::openRelay(std::uint32_t leader, Deadline deadline) {
  control::RelaySpec spec{.leader = names_[leader],
                          .members = std::min(script_.perHost, layout_.ranks - leader),
                          .ranks = layout_.ranks,
                          .listeners = {},
                          .secret = secret_,
                          .server = nullptr,
                          .opening = deadline};
  spec.listeners.emplace_back(sockets_.listen(portOf(leader)));
  const Status opened =
      reach(leader, contentAt(kPort, Origin::Address), true, deadline, &spec.server);
  if (opened.ok())
    (void)control::startControlRelay(std::move(spec));
  else
    blame(text("rank ", leader, " opens no relay: ", opened.text()));
}

// As control/control_link.cpp does it, but for how the addresses travel.
std::shared_ptr<control::ControlClient> RemoteWorld::openLink(std::uint32_t rank,
                                                              transport::Transport& transport) {
  const Deadline deadline = Deadline::in(20000);
  if (rank == 0) {
    std::vector<net::Socket> listeners;
    listeners.emplace_back(sockets_.listen(kPort));
    (void)control::startControlServer(std::move(listeners), secret_, names_, deadline, newGroups_);
  }
  const std::uint32_t leader = leaderOf(rank);
  if (relayed(rank) && leader == rank) openRelay(rank, deadline);
  std::unique_ptr<net::Stream> stream;
  const Status status =
      reach(rank, contentAt(relayed(rank) ? portOf(leader) : kPort, Origin::Address), false,
            deadline, &stream);
  if (!status.ok()) {
    blame(text("rank ", rank, " gets no control link: ", status.text()));
    return nullptr;
  }
  control::LinkEnd::Reach past;
  if (relayed(rank))
    past = [this, rank](std::unique_ptr<net::Stream>* out) {
      return reach(rank, contentAt(kPort, Origin::Created), false,
                   Deadline::in(control::LinkEnd::kReachMs), out);
    };
  const auto end = std::make_shared<control::LinkEnd>(std::move(stream), std::move(past));
  auto client = std::make_shared<control::ControlClient>(setupOf(rank), &transport, end, leader);
  end->add(client);
  (void)net::ServiceThreads::get().start("weft-control",
                                         [end](const net::StopSignal& stop) { end->run(stop); });
  return client;
}

control::Members RemoteWorld::allRanks() const {
  control::Members all;
  for (std::uint32_t r = 0; r < layout_.ranks; ++r) all.push_back(r);
  return all;
}

// Of another communicator of the same ranks, on the same link.
std::shared_ptr<control::ControlClient> RemoteWorld::branch(
    std::uint32_t rank, transport::Transport& transport,
    const std::shared_ptr<control::LinkEnd>& link) {
  ++linked_;
  if (rank == 0) {
    while (linked_ < layout_.ranks) scheduler_.sleepUntil(scheduler_.now() + 50 * kMicrosecond);
    newGroups_->add(1, allRanks());
    group_ = 1;
  }
  while (group_ == 0) scheduler_.sleepUntil(scheduler_.now() + 50 * kMicrosecond);
  auto client = std::make_shared<control::ControlClient>(setupOf(rank), &transport, link,
                                                         leaderOf(rank), group_);
  link->add(client);
  return client;
}

// Whoever comes last begins the harm.
void RemoteWorld::awaitOthers() {
  if (++ready_ == layout_.ranks) doHarm();
  while (ready_ < layout_.ranks && outcome_.fault.empty())
    scheduler_.sleepUntil(scheduler_.now() + 50 * kMicrosecond);
}

void RemoteWorld::live(std::uint32_t rank) {
  const std::unique_ptr<wire::WireTransport> transport = makeTransport(rank);
  std::shared_ptr<control::ControlClient> client = openLink(rank, *transport), parent;
  if (!client) return;
  if (script_.parent != Script::Parent::None) {
    parent = std::exchange(client, branch(rank, *transport, client->link()));
    if (script_.parent == Script::Parent::LeavesFirst) parent->detach();
  }
  awaitOthers();
  makeCalls(rank, *transport, *client);
  watch::leaveForGood(*transport, client.get());
  client->detach();
  if (parent) parent->detach();
}

void RemoteWorld::makeCalls(std::uint32_t rank, transport::Transport& transport,
                            watch::RemoteRanks& remote) {
  Rank& self = ranks_[rank];
  watch::Watch watch(transport, rank, names_, "w", &remote);
  engine::Executor executor(transport, watch, rank, script_.waiting);
  self.watch = &watch;
  for (const Script::Step& step : script_.steps) {
    if (self.done == self.steps) break;
    if (scheduler_.random().chance(30))
      scheduler_.sleepUntil(scheduler_.now() + scheduler_.random().between(0, 2 * kMillisecond));
    self.error = watch.firstError();
    if (self.error.ok()) self.error = call(rank, executor, watch, step);
    if (!self.error.ok()) break;
    ++self.done;
  }
  if (self.error.ok() && self.done == script_.steps.size())
    self.error = watch.finish(script_.timeoutMs);
  if (!self.error.ok()) {
    scheduler_.sleepUntil(scheduler_.now() + 1000 * kMillisecond);
    self.verdict = watch.firstError();
  }
  self.watch = nullptr;
  while (self.aborting) scheduler_.sleepUntil(scheduler_.now() + kMillisecond);
}

Status RemoteWorld::call(std::uint32_t rank, engine::Executor& executor, watch::Watch& watch,
                         const Script::Step& step) {
  Rank& self = ranks_[rank];
  Buffers& buffers =
      self.buffers.emplace_back(step.of(rank), rank, step.salt, scheduler_.random().chance(50));
  const Time start = scheduler_.now();
  const engine::Launch launch = buffers.launch();
  watch.enter(*launch.plan, script_.timeoutMs, nullptr);
  Status status = watch.firstError();
  if (status.ok()) status = executor.run(launch);
  status = watch.settle(status);
  if (self.dead) return status;
  const Time took = scheduler_.now() - start - self.stoppedFor;
  if (took > script_.timeoutMs * kMillisecond + kPatience)
    blame(text("rank ", rank, " returned ", took / kMillisecond, " ms after it was called"));
  if (const std::string wrong = buffers.takeBack(status.ok()); !wrong.empty())
    blame(text("rank ", rank, ", call ", self.done + 1, " (", step.call->text(), "): ", wrong));
  return status;
}

void RemoteWorld::doHarm() {
  if (!scheduler_.random().chance(60)) return;
  outcome_.harmed = true;
  do harm();
  while (scheduler_.random().chance(20));
}

void RemoteWorld::harm() {
  const auto victim = static_cast<std::uint32_t>(scheduler_.random().below(layout_.ranks));
  const std::uint64_t kind = scheduler_.random().below(100);
  harmed_.insert(static_cast<int>(victim));
  if (kind < 90) broken_.insert(static_cast<int>(victim));
  if (kind < 35) return die(victim);
  if (kind < 45) return stop(victim);
  if (kind < 65) return cutLinks(victim);
  if (kind < 80) return abort(victim);
  if (kind < 90) return stray(victim);
  // It destroys its end too early.
  ranks_[victim].steps =
      static_cast<std::uint32_t>(scheduler_.random().below(script_.steps.size()));
  harms_.push_back(text("rank ", victim, " leaves after ", ranks_[victim].steps, " calls"));
}

void RemoteWorld::later(std::uint32_t victim, const std::string& what,
                        std::function<void()> action) {
  const auto steps = static_cast<std::uint32_t>(
      1 + scheduler_.random().below(scheduler_.random().oneOf<std::uint64_t>({8, 40, 150})));
  harms_.push_back(text(what, " at step ", steps));
  scheduler_.afterSteps(ranks_[victim].fiber, steps, std::move(action));
}

void RemoteWorld::die(std::uint32_t victim) {
  later(victim, text("rank ", victim, " dies"), [this, victim] {
    ranks_[victim].dead = true;
    scheduler_.freeze(victim);
    cables_.kill(victim);
    sockets_.endProcess(victim);
  });
}

void RemoteWorld::stop(std::uint32_t victim) {
  mayBeLate_ = true;
  const Time span = scheduler_.random().between(1, 4000) * kMillisecond;
  later(victim, text("rank ", victim, " stops for ", span / kMillisecond, " ms"),
        [this, victim, span] {
          ranks_[victim].stoppedFor += span;
          scheduler_.freeze(victim, scheduler_.now() + span);
        });
}

// Of the data, of the control link, or of both; one way or both ways.
void RemoteWorld::cutLinks(std::uint32_t victim) {
  const std::uint32_t other =
      (victim + 1 + static_cast<std::uint32_t>(scheduler_.random().below(layout_.ranks - 1))) %
      layout_.ranks;
  const std::uint64_t what = scheduler_.random().below(3);
  const bool data = what != 0, control = what != 1, bothWays = scheduler_.random().chance(50);
  harmed_.insert(static_cast<int>(other));
  mayBeLate_ = mayBeLate_ || control;
  broken_.insert(static_cast<int>(other));
  later(victim,
        text("the ", data ? control ? "links" : "data link" : "control link", " of ranks ", victim,
             bothWays ? " <-> " : " -> ", other, " cut"),
        [=, this] {
          if (data) cables_.cut(victim, other);
          if (data && bothWays) cables_.cut(other, victim);
          if (control) cutControl(victim, other);
          if (control && bothWays) cutControl(other, victim);
        });
}

void RemoteWorld::cutControl(std::uint32_t from, std::uint32_t to) {
  const auto speaker = [this](std::uint32_t rank) { return relayed(rank) ? leaderOf(rank) : rank; };
  if (leaderOf(from) == leaderOf(to)) return;  // within a host
  sockets_.cut(speaker(from), speaker(to));
  for (std::uint32_t r = 1; r < layout_.ranks; ++r)
    if ((from == 0 || to == 0) && speaker(r) == speaker(from + to)) ranks_[r].apart = true;
}

void RemoteWorld::abort(std::uint32_t victim) {
  later(victim, text("rank ", victim, " aborts"), [this, victim] {
    scheduler_.spawn(
        [this, victim] {
          Rank& rank = ranks_[victim];
          if (rank.watch == nullptr) return;
          rank.aborting = true;
          (void)rank.watch->abort();
          rank.aborting = false;
        },
        victim);
  });
}

void RemoteWorld::stray(std::uint32_t victim) {
  Script::Step& step = script_.steps[scheduler_.random().below(script_.steps.size())];
  const SimulatedCall& other = randomCall(script_.setting, scheduler_.random());
  if (step.other || other.plans[0]->fingerprint == step.call->plans[0]->fingerprint) return;
  step.stray = victim;
  step.other = &other;
  harms_.push_back(text("rank ", victim, " makes another call: ", other.text()));
}

void RemoteWorld::judge() {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r)
    for (const Buffers& buffers : ranks_[r].buffers)
      if (!ranks_[r].dead || &buffers != &ranks_[r].buffers.back())
        if (const std::string wrong = buffers.check(); !wrong.empty())
          blame(text("rank ", r, ": ", wrong));
  judgeStrays();
  judgeVerdict();
}

// A call that not all have made alike succeeds nowhere, but where a rank need not wait for the
// others: that hears of it later, unless it leaves before.
void RemoteWorld::judgeStrays() {
  const std::size_t calls = script_.steps.size();
  for (std::uint32_t i = 0; i < calls; ++i)
    for (std::uint32_t r = 0; script_.steps[i].other && r < ranks_.size(); ++r)
      if ((ranks_[r].done == calls && ranks_[r].error.ok() && !ranks_[r].dead) ||
          (ranks_[r].done > i && !schedule::isRooted(script_.steps[i].of(r).collective)))
        blame(text("rank ", r, " succeeded in call ", i + 1, ", of which rank ",
                   script_.steps[i].stray, " made another"));
}

// Whoever can reach the server, and the server all the time.
bool RemoteWorld::canAgree() const { return !ranks_[0].dead && ranks_[0].stoppedFor == 0; }

void RemoteWorld::judgeVerdict() {
  const Status* first = nullptr;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    if (rank.dead || rank.error.ok()) continue;
    ++outcome_.failed;
    // Cut off from the server, or with one that is stopped for longer than anybody waits, a rank
    // knows of a lost cable and not why it was lost: the other end may have left, for a good reason.
    // So does one whose relay is stopped.
    const bool behind = relayed(r) && ranks_[leaderOf(r)].stoppedFor != 0;
    const bool unheard = behind || ranks_[0].stoppedFor > script_.timeoutMs * kMillisecond;
    if ((rank.apart || unheard) && watch::isRecoverable(rank.verdict)) continue;
    judgeCulprit(rank.verdict);
    if (rank.apart || behind || rank.stoppedFor != 0 || !canAgree()) continue;
    if (!watch::isRecoverable(rank.error) && rank.error.text() != rank.verdict.text())
      blame(text("rank ", r, "'s first error was overwritten"));
    if (first && first->text() != rank.verdict.text())
      blame(text("two verdicts: \"", first->text(), "\" and \"", rank.verdict.text(), "\""));
    first = &rank.verdict;
  }
}

// Then a rank looks for the server, for as long as that might take.
bool RemoteWorld::lostServerAndRelay() const {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r)
    if (relayed(r) && ranks_[leaderOf(r)].dead && ranks_[0].dead) return true;
  return false;
}

void RemoteWorld::judgeCulprit(const Status& error) {
  const PeerName& who = error.data().who;
  if (harmed_.empty()) return blame("an error without a harm: " + error.text());
  // Who holds up a call is a guess by what the others show of themselves; all else is knowledge.
  if (error.code() == Code::Timeout) {
    if (!mayBeLate_ && !lostServerAndRelay())
      blame("not noticed before the deadline: " + error.text());
    return;
  }
  if (error.code() == Code::Mismatch && who.rank == -1) return;
  if (who.rank >= 0 && !broken_.contains(who.rank) &&
      error.text().find("destroyed its end") == std::string::npos)
    blame("who said good-bye is called dead: " + error.text());
  const bool host = who.rank == -1 && std::ranges::any_of(harmed_, [&](int r) {
                      return names_[static_cast<std::size_t>(r)].host == who.host;
                    });
  if (!host && !harmed_.contains(who.rank)) blame("an innocent is named: " + error.text());
}

void RemoteWorld::dismissTheDead() {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    if (!ranks_[r].dead) continue;
    cables_.dismiss(r);
    sockets_.dismiss(r);
    scheduler_.freeze(r, 0);
  }
  if (!scheduler_.run(scheduler_.now() + 20 * (script_.timeoutMs * kMillisecond + kPatience)))
    blame("somebody hangs who is alone");
}

std::string RemoteWorld::story() const {
  std::string lines = text(layout_.ranks, " ranks, writes of ", script_.weather.maxWrite,
                           script_.weather.anySource ? " from anywhere" : "", ", epochs from ",
                           script_.epochsBefore, ", timeout ", script_.timeoutMs, " ms");
  for (const Script::Step& step : script_.steps) lines += "\n  " + step.call->text();
  for (const std::string& one : harms_) lines += "\n  " + one;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    lines += text("\n  rank ", r, ranks_[r].dead ? " (dead)" : "", ": ", ranks_[r].done, " calls, ",
                  ranks_[r].error.ok() ? "OK" : ranks_[r].error.text());
    if (!ranks_[r].error.ok() && ranks_[r].error.text() != ranks_[r].verdict.text())
      lines += text("\n    then: ", ranks_[r].verdict.text());
  }
  return lines;
}

}  // namespace

Outcome simulateRemote(std::uint64_t seed) { return RemoteWorld(seed).run(); }

}  // namespace weft::simulation
