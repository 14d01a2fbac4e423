// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <ATen/core/ivalue.h>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>

#include "base.h"

namespace weft::pytorch {

class Call;

// Who brings a call to its end.
class Executor {
 public:
  virtual ~Executor() = default;
  // Somebody waits for `call` on this thread, and has no better use for it. May return before the call is done.
  virtual void help(Call&) {}
  // Somebody asks whether `call` is done: it should be begun now.
  virtual void hurry(Call&) {}
  // Until when help() and patience may last; beyond it expire() is called, which ends the call with an error, or does
  // nothing if it has just ended.
  virtual std::chrono::steady_clock::time_point deadline(const Call&) const {
    return std::chrono::steady_clock::time_point::max();
  }
  virtual void expire(Call&) {}
};

// What the profiler calls it ("weft:all_reduce"), which also names it in errors, and its kind.
struct Title {
  c10d::OpType type;
  const char* range;
  // Without "weft:".
  const char* name() const { return range + 5; }
};

// One call that may still run: torch's Work. Any thread may wait for it and ask for its future. Whoever waits holds no
// lock of Python, as torch's bindings let it go.
class Call final : public c10d::Work {
 public:
  using Body = std::function<void(Call&)>;

  // inputs are what the profiler shows, outputs what result() and the future give; both live until the call is done.
  Call(int rank, const Title& title, const Tensors& inputs, Tensors outputs,
       std::shared_ptr<Executor> executor, Body body);

  // Runs the body, and the call has ended by it; once. Then settle(), without locks and when other calls may run again.
  void run() noexcept;
  // Completes the future, if somebody has asked for it: its callbacks run here and may call whatever they like.
  void settle();
  // Both for a call without a body; an error is thrown by wait() and given to the future. Once.
  void end(const std::exception_ptr& error);

  const Title& title() const { return title_; }
  const at::Tensor& tensor() const { return outputs_.front(); }
  void setSource(int source) { source_ = source; }
  bool ended() const;
  // Somebody has asked for its future, which may have callbacks.
  bool isFuture() const;

  // ---- c10d::Work
  bool isCompleted() override;
  int sourceRank() const override;
  Tensors result() override;
  void synchronize() override { wait(); }
  bool wait(Milliseconds timeout = kNoTimeout) override;
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  bool awaitEnd(std::chrono::steady_clock::time_point until);
  void refuseInChild();

  const pid_t process_ = getpid();
  const Title title_;
  Tensors outputs_;
  const std::shared_ptr<Executor> executor_;
  Body body_;
  int source_ = -1;
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // once somebody has asked for it
  bool settled_ = false;
};

}  // namespace weft::pytorch
