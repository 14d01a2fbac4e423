// SPDX-License-Identifier: Apache-2.0
#include "tools/tokens/encoding.h"

#include <utility>

namespace weft::tokens {

Encoding::Encoding(const Tokenizer& tokenizer, std::string jsonKey, int threads)
    : tokenizer_(tokenizer), jsonKey_(std::move(jsonKey)), most_(4 * static_cast<size_t>(threads)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Encoding::~Encoding() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Encoding::give(Bundle bundle) {
  underWay_.push_back(std::make_unique<Bundle>(std::move(bundle)));
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(underWay_.back().get());
  }
  changed_.notify_all();
}

std::unique_ptr<Bundle> Encoding::take() {
  std::unique_ptr<Bundle> first = std::move(underWay_.front());
  underWay_.pop_front();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return first->done; });
  if (first->failure) std::rethrow_exception(first->failure);
  return first;
}

void Encoding::work() {
  Encoder encoder(tokenizer_);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    Bundle& bundle = *waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    encode(bundle, encoder);
    lock.lock();
    bundle.done = true;
    changed_.notify_all();
  }
}

void Encoding::encode(Bundle& bundle, Encoder& encoder) const {
  try {
    for (const Piece& piece : bundle.pieces)
      encoder.encode(textOf(piece, jsonKey_), bundle.tokens.emplace_back());
  } catch (...) {
    bundle.failure = std::current_exception();
  }
}

}  // namespace weft::tokens
