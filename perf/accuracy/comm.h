// SPDX-License-Identifier: Apache-2.0
// A communicator of the ranks that measure, and failures as exceptions.
#pragma once

#include <weft/weft.h>

#include <memory>
#include <vector>

#include "base/status.h"

namespace weft::accuracy {

// They throw std::runtime_error.
void check(weftResult_t result, weftComm_t comm);
void check(const Status& status);

class Comm {
 public:
  // Of all ranks, as weftCommInitFromEnv finds them.
  static std::unique_ptr<Comm> join();
  explicit Comm(weftComm_t comm) : comm_(comm) {}
  ~Comm() { weftCommDestroy(comm_); }
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  weftComm_t get() const { return comm_; }
  int rank() const;
  int size() const;
  std::unique_ptr<Comm> split(int color) const;
  std::unique_ptr<Comm> copy() const { return split(0); }
  void barrier() const;
  // Of all ranks, one after the other.
  std::vector<double> gather(const std::vector<double>& mine) const;

 private:
  weftComm_t comm_;
};

}  // namespace weft::accuracy
