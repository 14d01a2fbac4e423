// SPDX-License-Identifier: Apache-2.0
#include "verify/order.h"

#include <algorithm>

namespace weft::verify {

void Order::learn(std::uint32_t actor, const Clock& other) {
  Clock& clock = clocks_[actor];
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
  sent_[actor].reset();
}

std::uint32_t Order::put(std::uint32_t sender, std::uint32_t step) {
  if (!sent_[sender]) sent_[sender] = std::make_shared<const Clock>(clocks_[sender]);
  const auto number = static_cast<std::uint32_t>(puts_.size());
  puts_.push_back({sender, step + 1, sent_[sender]});
  pending_[sender].push_back(number);
  return number;
}

void Order::await(std::uint32_t receiver, std::uint32_t step, std::uint32_t number) {
  Put& put = puts_[number];
  learn(receiver, *put.known);
  std::uint32_t& sendersTime = clocks_[receiver][put.sender];
  sendersTime = std::max(sendersTime, put.time);
  put.receiver = receiver;
  put.awaited = step + 1;
  put.known.reset();
}

void Order::drain(std::uint32_t actor, std::uint32_t step) {
  for (const std::uint32_t number : pending_[actor]) puts_[number].drained = step + 1;
  pending_[actor].clear();
}

bool Order::isThrough(const Access& access, bool write, const Clock& clock) const {
  if (access.put == Access::kLocal) return access.step < clock[access.actor];
  const Put& put = puts_[access.put];
  if (put.awaited != 0 && put.awaited <= clock[put.receiver]) return true;
  return !write && put.drained != 0 && put.drained <= clock[put.sender];
}

}  // namespace weft::verify
