// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/sockets.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace weft::simulation {
namespace {

constexpr std::size_t kBuffer = 4096;  // bytes on their way; small, so that writes are partial

Sockets* theSockets = nullptr;

int fails(int error) {
  errno = error;
  return -1;
}

}  // namespace

short Endpoint::events() const {
  short ready = 0;
  if (!inbox.empty() || ended || error != 0) ready |= POLLIN;
  if ((connected && inFlight < kBuffer) || error != 0) ready |= POLLOUT;
  return ready;
}

std::map<int, short> Epoll::ready() const {
  std::map<int, short> all;
  for (const auto& [fd, member] : members) {
    const Descriptor* const descriptor = descriptors().find(fd);
    const auto events =
        descriptor ? static_cast<short>(descriptor->events() & member.events) : short{0};
    if (events != 0) all[fd] = events;
  }
  return all;
}

Sockets::Sockets(Scheduler& scheduler, std::uint32_t processes)
    : scheduler_(scheduler),
      processes_(processes),
      cutSince_(std::size_t{processes} * processes, 0) {
  theSockets = this;
}

Sockets::~Sockets() { theSockets = nullptr; }

Sockets* Sockets::running() { return theSockets; }

Endpoint* Sockets::find(int fd) const { return dynamic_cast<Endpoint*>(descriptors().find(fd)); }

Time Sockets::delay() {
  Random& random = scheduler_.random();
  return random.between(5, random.chance(95) ? 100 : 3000) * kMicrosecond;
}

int Sockets::socket() {
  auto end = std::make_shared<Endpoint>();
  end->process = scheduler_.process();
  ends_.push_back(end);
  return descriptors().add(std::move(end));
}

int Sockets::listen(std::uint16_t port) {
  auto listener = std::make_shared<Listener>();
  listener->process = scheduler_.process();
  listener->port = port;
  listeners_.push_back(listener);
  return descriptors().add(std::move(listener));
}

int Sockets::connect(int fd, std::uint16_t port) {
  const auto listener = std::ranges::find(listeners_, port, &Listener::port);
  if (listener == listeners_.end()) return fails(ECONNREFUSED);
  const auto mine = *std::ranges::find(ends_, find(fd), [](const auto& end) { return end.get(); });
  auto theirs = std::make_shared<Endpoint>();
  theirs->process = (*listener)->process;
  theirs->connected = true;
  theirs->peer = mine;
  mine->peer = theirs;
  ends_.push_back(theirs);
  scheduler_.at(scheduler_.now() + delay(), [this, mine, theirs, to = *listener] {
    mine->connected = true;
    to->waiting.push_back(theirs);
    noteChange();
  });
  return fails(EINPROGRESS);
}

int Sockets::accept(int fd) {
  auto* const listener = dynamic_cast<Listener*>(descriptors().find(fd));
  if (listener->waiting.empty()) return fails(EAGAIN);
  std::shared_ptr<Endpoint> end = std::move(listener->waiting.front());
  listener->waiting.pop_front();
  return descriptors().add(std::move(end));
}

ssize_t Sockets::send(int fd, std::span<const std::byte> bytes) {
  Endpoint& end = *find(fd);
  if (end.error != 0) return fails(end.error);
  const std::size_t room = kBuffer - std::min(kBuffer, end.inFlight);
  if (room == 0) return fails(EAGAIN);
  std::size_t taken = std::min(room, bytes.size());
  if (scheduler_.random().chance(20)) taken = 1 + scheduler_.random().below(taken);
  const std::shared_ptr<Endpoint> peer = end.peer.lock();
  if (!peer || peer->closed) {  // the answer is a reset
    const auto self = *std::ranges::find(ends_, &end, [](const auto& one) { return one.get(); });
    scheduler_.at(scheduler_.now() + delay(), [this, self] { fail(self, ECONNRESET); });
    return static_cast<ssize_t>(taken);
  }
  auto data = std::make_shared<std::vector<std::byte>>(
      bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(taken));
  end.inFlight += taken;
  end.lastArrival = std::max(end.lastArrival, scheduler_.now() + delay());
  scheduler_.at(end.lastArrival, [this, peer, taken, data] { deliver(peer, taken, data); });
  return static_cast<ssize_t>(taken);
}

// What is cut off stays with its sender, whose buffer fills.
void Sockets::deliver(const std::shared_ptr<Endpoint>& to, std::size_t bytes,
                      const std::shared_ptr<std::vector<std::byte>>& data) {
  const std::shared_ptr<Endpoint> from = to->peer.lock();
  if (!from || to->closed || isCut(from->process, to->process)) return;
  from->inFlight -= bytes;
  to->inbox.insert(to->inbox.end(), data->begin(), data->end());
  scheduler_.note(bytes);
  noteChange();
}

ssize_t Sockets::receive(int fd, std::span<std::byte> bytes) {
  Endpoint& end = *find(fd);
  if (end.inbox.empty()) return end.error != 0 ? fails(end.error) : end.ended ? 0 : fails(EAGAIN);
  std::size_t got = std::min(bytes.size(), end.inbox.size());
  if (scheduler_.random().chance(20)) got = 1 + scheduler_.random().below(got);
  std::copy_n(end.inbox.begin(), got, bytes.begin());
  end.inbox.erase(end.inbox.begin(), end.inbox.begin() + static_cast<std::ptrdiff_t>(got));
  return static_cast<ssize_t>(got);
}

void Sockets::close(int fd) {
  for (const auto& end : ends_)
    if (end.get() == find(fd)) shut(end);
  std::erase_if(listeners_, [&](const auto& l) { return l.get() == descriptors().find(fd); });
  descriptors().close(fd);
}

// The peer hears of it behind what was sent. Who has not read all sends a reset.
void Sockets::shut(const std::shared_ptr<Endpoint>& end) {
  if (end->closed) return;
  end->closed = true;
  const std::shared_ptr<Endpoint> peer = end->peer.lock();
  if (!peer) return;
  const bool reset = !end->inbox.empty();
  const Time when = std::max(end->lastArrival, scheduler_.now() + delay());
  scheduler_.at(when, [this, peer, reset, from = end->process] {
    if (isCut(from, peer->process)) return;
    if (reset) return fail(peer, ECONNRESET);
    peer->ended = true;
    noteChange();
  });
}

void Sockets::fail(const std::shared_ptr<Endpoint>& end, int error) {
  if (end->closed || end->error != 0) return;
  end->error = error;
  noteChange();
}

void Sockets::cut(std::uint32_t from, std::uint32_t to) {
  Time& since = cutSince_[from * processes_ + to];
  if (since == 0) since = scheduler_.now();
  for (const auto& end : ends_) {
    const std::shared_ptr<Endpoint> peer = end->peer.lock();
    if (!peer) continue;
    const auto ways = std::minmax(end->process, peer->process);
    if (ways != std::minmax(from, to)) continue;
    const Time when = scheduler_.now() +
                      scheduler_.random().between(kSilenceMs, kSilenceMs + 2000) * kMillisecond;
    scheduler_.at(when, [this, end] { fail(end, ETIMEDOUT); });
  }
}

void Sockets::endProcess(std::uint32_t process) {
  for (const auto& end : ends_)
    if (end->process == process)
      scheduler_.at(scheduler_.now() + delay(), [this, end] { shut(end); });
}

void Sockets::dismiss(std::uint32_t process) {
  for (const auto& end : ends_)
    if (end->process == process) end->error = ECONNRESET;
  noteChange();
}

Time Sockets::silenceOf(int fd) const {
  const Endpoint& end = *find(fd);
  const std::shared_ptr<Endpoint> peer = end.peer.lock();
  if (!peer) return 0;
  const Time since = std::max(cutSince_[peer->process * processes_ + end.process],
                              cutSince_[end.process * processes_ + peer->process]);
  return since == 0 ? 0 : scheduler_.now() - since;
}

}  // namespace weft::simulation
