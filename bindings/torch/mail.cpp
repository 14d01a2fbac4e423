// SPDX-License-Identifier: Apache-2.0
#include "mail.h"

#include <pthread.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <stdexcept>

namespace weft::pytorch {
namespace {

// A sender may come whenever it likes; each receive has a deadline of its own.
constexpr Milliseconds kForEver{INT_MAX};

// For threads that have been told to end.
constexpr Milliseconds kLastPatience{1000};

std::string keyOf(int from, int to) {
  return "weft/mail/" + std::to_string(from) + "-" + std::to_string(to);
}

std::string nameOf(int from, int to, const Identity& who) {
  return "mail from rank " + std::to_string(from) + " to rank " + std::to_string(to) + " of " +
         who.name;
}

Title titleOf(const std::optional<int>& from) {
  if (from) return {c10d::OpType::RECV, "weft:recv"};
  return {c10d::OpType::RECVANYSOURCE, "weft:recvAnySource"};
}

std::exception_ptr errorOf(const std::string& text) {
  return std::make_exception_ptr(std::runtime_error(text));
}

}  // namespace

void Mail::checkOpen() const {
  if (closing_)
    throw std::runtime_error("this process group has been destroyed; fix: make a new one");
}

// ---- Sending

Work Mail::send(const at::Tensor& tensor, int to, int tag) {
  const Elements from = elementsOf("send", tensor);
  checkOpen();
  std::shared_ptr<Queue> queue;
  {
    const std::lock_guard lock(mutex_);
    if (!way(to).out) way(to).out = Queue::make("weft-to-" + std::to_string(to));
    queue = way(to).out;
  }
  const Tensors tensors = {tensor};
  auto call = c10::make_intrusive<Call>(
      who_.rank, Title{c10d::OpType::SEND, "weft:send"}, tensors, tensors, queue,
      [self = shared_from_this(), tensor, to, from, tag](Call&) { self->transmit(to, from, tag); });
  queue->push(call, from.bytes);
  return call;
}

// On whichever thread the queue has chosen, and one at a time.
weftComm_t Mail::outgoing(int to) {
  {
    const std::lock_guard lock(mutex_);
    if (way(to).outComm) return way(to).outComm;
  }
  try {
    Communicator comm = meetAsFirst(who_, 2, keyOf(who_.rank, to), nameOf(who_.rank, to, who_));
    const std::lock_guard lock(mutex_);
    way(to).outComm = std::move(comm);
    return way(to).outComm;
  } catch (const Error& error) {
    if (error.result() != weftTimeout) throw;
    throw std::runtime_error(
        "weft:send Timed out: rank " + std::to_string(to) + " of " + who_.name +
        " has asked for no message of rank " + std::to_string(who_.rank) + " within " +
        std::to_string(who_.timeoutMs()) +
        " ms; fix: see what keeps it from its first recv, or give init_process_group a longer "
        "timeout");
  }
}

void Mail::transmit(int to, const Elements& from, int tag) {
  const weftComm_t comm = outgoing(to);
  const Header header{tag, from.bytes};
  check(weftSend(&header, sizeof(header), weftUint8, 1, comm, nullptr), comm);
  if (from.bytes > 0) check(weftSend(from.data, from.bytes, weftUint8, 1, comm, nullptr), comm);
}

// ---- Receiving: torch's side

Work Mail::receive(const at::Tensor& tensor, std::optional<int> from, int tag) {
  const Tensors tensors = {tensor};
  Receive wanted{{}, elementsOf("recv", tensor), from, tag, Clock::now() + timeout_.load()};
  checkOpen();
  const auto call = c10::make_intrusive<Call>(who_.rank, titleOf(from), tensors, tensors,
                                              shared_from_this(), nullptr);
  wanted.call = call;
  std::unique_lock lock(mutex_);
  const std::optional<Letter> letter = takeLetter(wanted);
  if (!letter) {
    if (from && !way(*from).ended.empty()) throw std::runtime_error(way(*from).ended);
    for (int r = 0; r < who_.size; ++r)
      if (r != who_.rank && from.value_or(r) == r) listen(r);
    receives_.push_back(std::move(wanted));
    return call;
  }
  lock.unlock();
  fulfil(wanted, letter->from, letter->bytes.size(),
         [&](void* into) { std::memcpy(into, letter->bytes.data(), letter->bytes.size()); });
  return call;
}

void Mail::fulfil(const Receive& receive, int from, std::uint64_t bytes,
                  const std::function<void(void*)>& get) {
  try {
    if (bytes == receive.into.bytes) {
      get(receive.into.data);
      receive.call->setSource(from);
      receive.call->end(nullptr);
      return;
    }
    std::vector<char> scrap(bytes);
    get(scrap.data());
    throw std::runtime_error(
        "weft:recv: rank " + std::to_string(from) + " sent " + std::to_string(bytes) +
        " bytes with tag " + std::to_string(receive.tag) + ", and the tensor to receive them has " +
        std::to_string(receive.into.bytes) + "; fix: pass a tensor of the shape and dtype sent");
  } catch (...) {
    receive.call->end(std::current_exception());
  }
}

std::optional<Mail::Letter> Mail::takeLetter(const Receive& wanted) {
  const auto fits = [&](const Letter& letter) { return wanted.matches(letter.from, letter.tag); };
  const auto found = std::find_if(letters_.begin(), letters_.end(), fits);
  if (found == letters_.end()) return std::nullopt;
  std::optional<Letter> letter = std::move(*found);
  letters_.erase(found);
  return letter;
}

std::chrono::steady_clock::time_point Mail::deadline(const Call& call) const {
  const std::lock_guard lock(mutex_);
  for (const Receive& receive : receives_)
    if (receive.call.get() == &call) return receive.deadline;
  return Clock::time_point::max();  // it has come, or is just coming
}

void Mail::expire(Call& call) {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    for (const Receive& receive : receives_)
      if (receive.call.get() == &call) text = describeMissing(receive);
  }
  failReceives(text, [&](const Receive& receive) { return receive.call.get() == &call; });
}

// With the lock.
std::string Mail::describeMissing(const Receive& wanted) const {
  const auto source = [](int rank) { return " from rank " + std::to_string(rank); };
  const auto isFrom = [&](int rank) { return wanted.from.value_or(rank) == rank; };
  std::string others;
  for (const Letter& letter : letters_)
    if (isFrom(letter.from) && others.size() < 200)
      others += "; one with tag " + std::to_string(letter.tag) + source(letter.from) + " is there";
  for (const Way& w : ways_)
    if (!w.ended.empty()) others += " (" + w.ended + ")";
  return std::string(titleOf(wanted.from).range) + " Timed out waiting for a message with tag " +
         std::to_string(wanted.tag) + (wanted.from ? source(*wanted.from) : " from any rank") +
         ": nobody has sent it to rank " + std::to_string(who_.rank) + " of " + who_.name +
         " within " + std::to_string(timeout_.load().count()) + " ms" + others +
         "; fix: see what keeps the sender and which tag it sends, or give init_process_group a "
         "longer timeout";
}

void Mail::failReceives(const std::string& why, const std::function<bool(const Receive&)>& which) {
  std::list<Receive> failed;
  {
    const std::lock_guard lock(mutex_);
    for (auto next = receives_.begin(); next != receives_.end();) {
      const auto here = next++;
      if (which(*here)) failed.splice(failed.end(), receives_, here);
    }
  }
  for (const Receive& receive : failed) receive.call->end(errorOf(why));
}

// ---- Receiving: the thread of a source

// With the lock.
void Mail::listen(int from) {
  Way& here = way(from);
  if (here.in.joinable() || closing_) return;
  here.in = std::thread([self = shared_from_this(), from] { self->serve(from); });
  pthread_setname_np(here.in.native_handle(),
                     ("weft-from-" + std::to_string(from)).substr(0, 15).c_str());
}

void Mail::serve(int from) try {
  Communicator comm = meetAsOther(who_, 2, 1, keyOf(from, who_.rank), nameOf(from, who_.rank, who_),
                                  kForEver, closing_);
  hold(from, comm);
  try {
    for (;;) accept(from, comm);
  } catch (...) {
    hold(from, nullptr);
    throw;
  }
} catch (const std::exception& error) {
  noteEnd(from, error.what());
}

void Mail::hold(int from, weftComm_t comm) {
  const std::lock_guard lock(mutex_);
  way(from).inComm = comm;
  if (comm != nullptr && closing_)
    static_cast<void>(weftCommAbort(comm));  // close() has not seen it
}

void Mail::accept(int from, weftComm_t comm) {
  weftOpts_t forEver = defaultOptions();
  forEver.timeoutMs = INT_MAX;
  Header header;
  check(weftRecv(&header, sizeof(header), weftUint8, 0, comm, nullptr, &forEver), comm);
  const auto get = [&](void* into) {
    if (header.bytes > 0) check(weftRecv(into, header.bytes, weftUint8, 0, comm, nullptr), comm);
  };
  if (const std::optional<Receive> receive = takeReceive(from, header.tag)) {
    fulfil(*receive, from, header.bytes, get);
    return;
  }
  Letter letter{from, header.tag, std::vector<char>(header.bytes)};
  get(letter.bytes.data());
  keep(std::move(letter));
}

std::optional<Mail::Receive> Mail::takeReceive(int from, std::int64_t tag) {
  const std::lock_guard lock(mutex_);
  const auto fits = [&](const Receive& receive) { return receive.matches(from, tag); };
  const auto found = std::find_if(receives_.begin(), receives_.end(), fits);
  if (found == receives_.end()) return std::nullopt;
  std::optional<Receive> receive = std::move(*found);
  receives_.erase(found);
  return receive;
}

void Mail::keep(Letter letter) {
  std::list<Letter> kept;
  kept.push_back(std::move(letter));
  const Letter& here = kept.front();
  std::unique_lock lock(mutex_);
  const auto fits = [&](const Receive& receive) { return receive.matches(here.from, here.tag); };
  const auto found = std::find_if(receives_.begin(), receives_.end(), fits);
  if (found == receives_.end()) {
    letters_.splice(letters_.end(), kept);
    return;
  }
  const Receive receive = std::move(*found);  // it has come while the bytes did
  receives_.erase(found);
  lock.unlock();
  fulfil(receive, here.from, here.bytes.size(),
         [&](void* into) { std::memcpy(into, here.bytes.data(), here.bytes.size()); });
}

void Mail::noteEnd(int from, const std::string& why) {
  bool all = false;
  {
    const std::lock_guard lock(mutex_);
    way(from).ended = why.empty() ? "it has ended" : why;
    all = allEnded();
    ended_.notify_all();
  }
  failReceives(
      why, [&](const Receive& receive) { return receive.from == from || (all && !receive.from); });
}

bool Mail::allEnded() const {
  const auto ended = [](const Way& w) { return !w.ended.empty(); };
  return std::count_if(ways_.begin(), ways_.end(), ended) == who_.size - 1;
}

// ---- The end

// Who is just being met can't be told to stop: such a thread is left to itself, and ends by the timeout of the group.
void Mail::close(Clock::time_point until) {
  closing_ = true;
  const auto abort = [this](const Way& w) {
    const std::lock_guard lock(mutex_);
    return w.outComm && weftCommAbort(w.outComm) == weftSuccess;
  };
  for (Way& w : ways_)
    if (w.out) w.out->close(until, [&] { return abort(w); });
  std::unique_lock lock(mutex_);
  for (const Way& w : ways_)
    if (w.inComm != nullptr) static_cast<void>(weftCommAbort(w.inComm));
  const auto atWork = [](const Way& w) { return w.in.joinable() && w.ended.empty(); };
  const auto patience = std::max(until, Clock::now() + kLastPatience);
  ended_.wait_until(lock, patience,
                    [&] { return std::none_of(ways_.begin(), ways_.end(), atWork); });
  for (Way& w : ways_)
    if (atWork(w) || w.in.get_id() == std::this_thread::get_id())
      w.in.detach();  // or a callback of what has come destroys the group
  lock.unlock();
  for (Way& w : ways_)
    if (w.in.joinable()) w.in.join();
  failReceives("the process group was destroyed before a message came",
               [](const Receive&) { return true; });
}

}  // namespace weft::pytorch
