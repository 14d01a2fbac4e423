// SPDX-License-Identifier: Apache-2.0
// Pieces of text that threads encode side by side, and that come out in their order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tools/tokens/documents.h"
#include "tools/tokens/tokenizer.h"

namespace weft::tokens {

// Pieces that one thread encodes at a time.
struct Bundle {
  std::vector<Piece> pieces;
  size_t bytes = 0;

  std::vector<std::vector<int32_t>> tokens = {};  // of each piece
  std::exception_ptr failure = {};
  bool done = false;
};

// Used by one thread, which gives and takes.
class Encoding {
 public:
  Encoding(const Tokenizer& tokenizer, std::string jsonKey, int threads);
  ~Encoding();  // waits for bundles that are being encoded
  Encoding(const Encoding&) = delete;
  Encoding& operator=(const Encoding&) = delete;

  void give(Bundle bundle);
  // Whether so much is under way that one should be taken before another is given.
  bool isFull() const { return underWay_.size() >= most_; }
  bool isEmpty() const { return underWay_.empty(); }
  // Waits for the bundle that was given first. Throws what its encoding threw, which is train::Failure if its
  // text is wrong.
  std::unique_ptr<Bundle> take();

 private:
  void work();
  void encode(Bundle& bundle, Encoder& encoder) const;

  const Tokenizer& tokenizer_;
  const std::string jsonKey_;
  const size_t most_;
  std::deque<std::unique_ptr<Bundle>> underWay_;  // of the thread that gives and takes

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Bundle*> waiting_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace weft::tokens
