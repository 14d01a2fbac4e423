// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace weft {

// What went wrong, as a class. The values are those of weftResult_t (include/weft/weft.h), so the
// C API translates by a cast; of LinkLost it makes RemoteError.
enum class Code : std::uint8_t {
  Ok = 0,
  DeviceError = 1,
  SystemError = 2,
  InternalError = 3,
  InvalidArgument = 4,
  InvalidUsage = 5,
  RemoteError = 6,
  InProgress = 7,
  Timeout = 8,
  Mismatch = 9,
  Aborted = 10,
  OutOfMemory = 11,
  Authentication = 12,
  // Within weft only; callers see RemoteError. Two ranks that live cannot reach each other as they
  // did: the communicator may be mended.
  LinkLost = 13,
};

// The result of anything that can fail: success costs one null pointer and never allocates, so it
// may be returned on the hot path. An error carries one line: who, what, where and the fix.
class [[nodiscard]] Status {
 public:
  Status() = default;
  static Status error(Code code, std::string text) { return Status(code, std::move(text)); }

  bool ok() const { return error_ == nullptr; }
  explicit operator bool() const { return ok(); }
  Code code() const { return error_ ? error_->code : Code::Ok; }
  const std::string& text() const {
    static const std::string none;
    return error_ ? error_->text : none;
  }

 private:
  struct Error {
    Code code;
    std::string text;
  };
  Status(Code code, std::string text) : error_(new Error{code, std::move(text)}) {}
  std::shared_ptr<const Error>
      error_;  // shared: a communicator hands the same verdict to every caller
};

}  // namespace weft

// Returns from the calling function when `expression` is an error Status.
#define WEFT_TRY(expression)                                                  \
  do {                                                                        \
    if (::weft::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)
