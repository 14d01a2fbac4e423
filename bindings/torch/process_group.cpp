// SPDX-License-Identifier: Apache-2.0
#include "process_group.h"

#include <Python.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <random>

namespace weft::pytorch {
namespace {

// So long a group that is destroyed waits for calls that nobody has waited for.
constexpr Milliseconds kFarewell{5000};

// The threads that are waited for may want Python's lock for a callback.
class WithoutPythonLock {
 public:
  WithoutPythonLock()
      : state_(Py_IsInitialized() != 0 && PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr) {
  }
  ~WithoutPythonLock() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }
  WithoutPythonLock(const WithoutPythonLock&) = delete;
  WithoutPythonLock& operator=(const WithoutPythonLock&) = delete;

 private:
  PyThreadState* state_;
};

// Programs look for PyTorch's "Timed out"; and it is PyTorch's timeout that they would raise.
[[noreturn]] void throwInWordsOfTorch(const Title& title, const Error& error) {
  if (error.result() != weftTimeout) throw error;
  throw Error(error.result(),
              std::string(title.range) + " Timed out waiting for other ranks: " + error.what() +
                  " (in PyTorch by the timeout of init_process_group or new_group)",
              error.info());
}

}  // namespace

char* Scratch::atLeast(std::size_t bytes) {
  if (bytes > size_) {
    check(weftMemFree(memory_));
    memory_ = nullptr;
    size_ = 0;
    check(weftMemAlloc(&memory_, bytes));
    size_ = bytes;
  }
  return static_cast<char*>(memory_);
}

struct ProcessGroupWeft::Shared {
  explicit Shared(const Identity& who)
      : comm(joinGroup(who)), mail(std::make_shared<Mail>(who)), monitoredBarrier(who) {}

  const pid_t process = getpid();
  Communicator comm;
  Scratch scratch;
  std::shared_ptr<Queue> queue = Queue::make("weft-torch");
  std::shared_ptr<Mail> mail;
  MonitoredBarrier monitoredBarrier;
};

ProcessGroupWeft::ProcessGroupWeft(const Identity& who)
    : Base(who.rank, who.size),
      who_(who),
      shared_(std::make_shared<Shared>(who)),
      timeoutMs_(who.timeoutMs()) {
  init();
}

ProcessGroupWeft::~ProcessGroupWeft() {
  if (getpid() !=
      shared_->process) {  // a forked child has none of the threads; nothing of it is touched
    static_cast<void>(new std::shared_ptr<Shared>(std::move(shared_)));
    return;
  }
  close(kFarewell);
  const WithoutPythonLock unlocked;
  shared_.reset();
}

// Once more does nothing.
void ProcessGroupWeft::close(Milliseconds patience) {
  if (getpid() != shared_->process) return;
  const WithoutPythonLock unlocked;
  const auto until = std::chrono::steady_clock::now() + std::min(who_.timeout, patience);
  shared_->queue->close(until, [this] {
    shared_->comm.abort();
    return true;
  });
  shared_->mail->close(until);
}

// The inputs are kept by the body until the call has run, the outputs by the call.
Work ProcessGroupWeft::submit(const Title& title, const Tensors& inputs, Tensors outputs,
                              Milliseconds timeout, std::size_t bytes,
                              std::function<void(const Way&)> call) {
  refuseInChild(title.name());
  ++sequence_;
  const int timeoutMs = timeout == c10d::kUnsetTimeout ? timeoutMs_.load() : inWeft(timeout);
  auto work = c10::make_intrusive<Call>(
      getRank(), title, inputs, std::move(outputs), shared_->queue,
      [shared = shared_.get(), title, timeoutMs, inputs, call = std::move(call)](Call&) {
        weftOpts_t options = defaultOptions();
        options.timeoutMs = timeoutMs;
        try {
          call({shared->comm, &options, shared->scratch});
        } catch (const Error& error) {
          throwInWordsOfTorch(title, error);
        }
      });
  shared_->queue->push(work, bytes);
  return work;
}

// Its queue has no thread there.
void ProcessGroupWeft::refuseInChild(const char* call) const {
  if (getpid() != shared_->process)
    refuse(call, "this process was forked from the one that has made the group",
           "make a group in it, or leave all calls to its parent");
}

// ---- Point to point

int ProcessGroupWeft::peer(const char* call, int rank) const {
  if (rank < 0 || rank >= getSize())
    refuse(call,
           "the other rank is " + std::to_string(rank) + " in a group of " +
               std::to_string(getSize()) + " ranks",
           "pass a rank of the group");
  if (rank == getRank())
    refuse(call, "the other rank is this one, " + std::to_string(rank), "copy the tensor instead");
  return rank;
}

Work ProcessGroupWeft::send(Tensors& tensors, int to, int tag) {
  refuseInChild("send");
  return shared_->mail->send(only("send", "input", tensors), peer("send", to), tag);
}

Work ProcessGroupWeft::recv(Tensors& tensors, int from, int tag) {
  refuseInChild("recv");
  return shared_->mail->receive(only("recv", "output", tensors), peer("recv", from), tag);
}

Work ProcessGroupWeft::recvAnysource(Tensors& tensors, int tag) {
  refuseInChild("recv");
  return shared_->mail->receive(only("recv", "output", tensors), std::nullopt, tag);
}

// ---- The rest

void ProcessGroupWeft::monitoredBarrier(const c10d::BarrierOptions& options, bool waitAllRanks) {
  refuseInChild("monitored_barrier");
  const bool isGiven = options.timeout != c10d::kUnsetTimeout;
  shared_->monitoredBarrier.pass(isGiven ? options.timeout : who_.timeout, waitAllRanks);
}

void ProcessGroupWeft::setSequenceNumberForGroup() try {
  if (getRank() == 0) {
    sequence_ = std::random_device()();
    const std::string digits = std::to_string(sequence_.load());
    who_.store->set(c10d::kSeqNumStoreKey, std::vector<std::uint8_t>(digits.begin(), digits.end()));
  } else {
    const std::vector<std::uint8_t> digits = who_.store->get(c10d::kSeqNumStoreKey);
    sequence_ = std::stoull(std::string(digits.begin(), digits.end()));
  }
} catch (const std::exception& error) {
  blameStore(who_, "the sequence number", error);
}

std::uint64_t ProcessGroupWeft::getSequenceNumberForGroup() { return sequence_; }

void ProcessGroupWeft::setTimeout(Milliseconds timeout) {
  timeoutMs_ = inWeft(timeout);
  shared_->mail->setTimeout(timeout);
}

c10::intrusive_ptr<Base> ProcessGroupWeft::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                 const std::vector<int>& ranks,
                                                 const c10::intrusive_ptr<Options>& options) {
  const auto mine = std::find(ranks.begin(), ranks.end(), getRank());
  if (mine == ranks.end()) return {};
  Identity who = who_;
  who.store = store;
  who.rank = static_cast<int>(mine - ranks.begin());
  who.size = static_cast<int>(ranks.size());
  if (options) who.timeout = options->timeout;
  who.name = "a part of " + who_.name;
  return c10::make_intrusive<ProcessGroupWeft>(who);
}

c10::intrusive_ptr<Base::Options> ProcessGroupWeft::getBackendOptions() {
  return c10::make_intrusive<Options>(getBackendName(), Milliseconds(timeoutMs_.load()));
}

void ProcessGroupWeft::shutdown() { close(kFarewell); }

void ProcessGroupWeft::abort() {
  if (getpid() != shared_->process) return;
  shared_->comm.abort();
  close(Milliseconds(0));
}

}  // namespace weft::pytorch
