// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/comm.h"

#include <stdexcept>

namespace weft::accuracy {

void check(weftResult_t result, weftComm_t comm) {
  if (result != weftSuccess) throw std::runtime_error(weftGetLastError(comm));
}

void check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.text());
}

std::unique_ptr<Comm> Comm::join() {
  weftComm_t comm = nullptr;
  check(weftCommInitFromEnv(&comm, nullptr), nullptr);
  return std::make_unique<Comm>(comm);
}

int Comm::rank() const {
  int rank = 0;
  check(weftCommUserRank(comm_, &rank), comm_);
  return rank;
}

int Comm::size() const {
  int size = 0;
  check(weftCommCount(comm_, &size), comm_);
  return size;
}

std::unique_ptr<Comm> Comm::split(int color) const {
  weftComm_t made = nullptr;
  check(weftCommSplit(comm_, color, rank(), &made, nullptr), comm_);
  return std::make_unique<Comm>(made);
}

void Comm::barrier() const { check(weftBarrier(comm_, nullptr, nullptr), comm_); }

std::vector<double> Comm::gather(const std::vector<double>& mine) const {
  std::vector<double> all(mine.size() * static_cast<std::size_t>(size()));
  check(weftAllGather(mine.data(), all.data(), mine.size(), weftFloat64, comm_, nullptr, nullptr),
        comm_);
  return all;
}

}  // namespace weft::accuracy
