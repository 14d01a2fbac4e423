// SPDX-License-Identifier: Apache-2.0
// Memory that is in a file while nobody needs it: it is written by a thread beside compute, and read ahead of the time that
// it is taken, in the reverse of the order in which it was put away.
//
// A file and not a second buffer, as it takes no memory that is short: its pages are a cache that the kernel
// gives up first. Space is reserved before anything is written, so that a disk that is too small is told at once.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace weft::train {

// One thread uses it at a time, beside its own.
class OffloadFile {
 public:
  using Bytes = std::shared_ptr<const std::byte>;
  using Id = uint64_t;
  struct Figures {
    uint64_t put = 0, read = 0;  // bytes: put away, and read back of them; the rest was still here
    double waited = 0;           // seconds that put() and take() took
  };

  // Has no name in the folder, so that nothing stays when the process ends however it ends. Throws Failure
  // if there is no room or no folder, as put() and take() do.
  explicit OffloadFile(const std::string& folder);
  ~OffloadFile();
  OffloadFile(const OffloadFile&) = delete;
  OffloadFile& operator=(const OffloadFile&) = delete;

  // Puts bytes away, which nobody changes any more. They are let go by a later call, once they are written;
  // so few wait for it that put() waits where the disk is slower.
  Id put(Bytes bytes, size_t size);
  // The same bytes, aligned to 64, once; what was put away before them is read meanwhile.
  Bytes take(Id id);
  // Nobody will take them.
  void drop(Id id);

  Figures figures() const { return figures_; }

 private:
  enum class State { kToWrite, kWriting, kStored, kToRead, kHere };
  struct Item {
    State state;
    Bytes bytes;  // in memory: before they are written, and when they are read
    size_t size;
    int64_t at;  // in the file
  };
  using Items = std::map<Id, Item>;
  class Clock;

  void run();
  bool workOnce(std::unique_lock<std::mutex>& lock);
  void write(Id id, std::unique_lock<std::mutex>& lock);
  void read(Id id, std::unique_lock<std::mutex>& lock);
  void forget(Id id);
  int64_t reserve(size_t size);
  void beginToRead(Item& item);
  template <class Condition>
  void waitUntil(std::unique_lock<std::mutex>& lock, Condition condition);
  [[noreturn]] void fail(int error) const;

  const std::string folder_;
  int file_;
  Figures figures_;

  std::mutex mutex_;
  std::condition_variable work_, done_;
  Items items_;
  std::map<size_t, std::vector<int64_t>> free_;  // places of a size
  std::vector<Bytes> written_;                   // that the next call lets go
  int64_t end_ = 0;
  Id next_ = 0;
  size_t toWrite_ = 0;
  int error_ = 0;
  bool ends_ = false;
  std::thread thread_;  // last, as it uses the rest
};

}  // namespace weft::train
