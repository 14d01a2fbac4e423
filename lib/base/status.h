// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/peer_name.h"
#include "base/text.h"

namespace weft::inline base {

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
  // did: the communicator may be recovered.
  LinkLost = 13,
};

// An error as data; what is not known is empty. Its sentence is printed from this alone.
struct ErrorData {
  Code code = Code::Ok;
  PeerName who = {};        // the culprit, or whom others wait for
  std::string device = {};  // "mlx5_0", "eth0"
  int port = 0;             // of the device, from 1
  // "all_reduce(count=1, float, sum) #2 on communicator c"; of a mismatch, what each rank called.
  std::string call = {};
  std::vector<std::uint32_t> missing = {};  // ranks that did not come, in order
  // What is wrong. {who}, {call}, {missing} ("ranks 0-2,4") and {ranges} ("0-2,4") stand for those.
  std::string what = {};
  std::string fix = {};
  std::string variable = {};  // of the environment, whose value is refused
};

// The result of anything that can fail: success costs one null pointer and never allocates, so it
// may be returned on the hot path. An error says in one line who, what, where and the fix.
class [[nodiscard]] Status {
 public:
  Status() = default;
  static Status error(ErrorData data);
  // An error that names no culprit. `line` ends with its fix: "what; fix: how", or "what. fix:
  // how".
  static Status error(Code code, std::string line);
  // The same of a line in parts (base/text.h).
  template <class First, class Second, class... Parts>
  static Status error(Code code, const First& first, const Second& second, const Parts&... parts) {
    return error(code, base::text(first, second, parts...));
  }

  bool ok() const { return error_ == nullptr; }
  explicit operator bool() const { return ok(); }
  Code code() const { return data().code; }
  const ErrorData& data() const { return error().data; }
  // The sentence without the fix, and with it.
  const std::string& message() const { return error().message; }
  const std::string& text() const { return error().text; }

 private:
  struct Error {
    ErrorData data;
    std::string message, text;
  };
  static const Error& none();
  const Error& error() const { return error_ ? *error_ : none(); }

  // Shared: a communicator hands the same error to every caller.
  std::shared_ptr<const Error> error_;
};

// `status` with its place put in front of what it says, such as "control link of rank 3: ". The
// culprit stays; `who` is the culprit if there was none.
Status within(const std::string& place, const PeerName& who, const Status& status);

// `refused` by the value of a variable of the environment, if it is refused and names no other.
Status ofVariable(std::string_view variable, const Status& refused);

// An error on its way to other ranks: at most `limit` bytes, for which what is longest is cut.
std::string pack(const Status& error, std::size_t limit);
// What comes from elsewhere may be anything. False: it is no error that pack() has made, and
// *error says that. Fields that a later version has added are passed over, and those that an earlier one
// had not are empty.
bool unpack(std::string_view bytes, Status* error);

// Text that will be shown: control characters could forge log lines.
std::string printable(std::string text);

}  // namespace weft::inline base

// Returns from the calling function when `expression` is an error Status.
#define WEFT_TRY(expression)                                                  \
  do {                                                                        \
    if (::weft::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)
