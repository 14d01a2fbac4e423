// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/status.h"

namespace weft::launch {

// A client of PMI version 1, the text protocol that MPICH's mpiexec speaks over the socket PMI_FD:
// one line "cmd=<name> key=value ...\n" each way. Serialized by its caller.
class PmiClient {
 public:
  explicit PmiClient(int fd) : fd_(fd) {}

  Status initialize(Deadline deadline);  // and learns the name of the job's key-value space
  Status put(std::string_view key, std::string_view value, Deadline deadline);
  Status barrier(
      Deadline deadline);  // over all ranks of the job; what was put before it can be got after
  Status get(std::string_view key, std::string* value, Deadline deadline);
  Status finalize(Deadline deadline);

 private:
  // Sends one line and reads the answer, which must be the command `answer` with rc=0 if it has an
  // rc.
  Status ask(const std::string& request, std::string_view answer, std::string* reply,
             Deadline deadline);
  Status sendLine(std::string_view line, Deadline deadline);
  Status readLine(std::string* line, Deadline deadline);

  int fd_;
  std::string space_;
  std::string unread_;
};

// The value of a key in such a line; false if it is not there.
bool pmiValue(std::string_view line, std::string_view key, std::string* value);

}  // namespace weft::launch
