// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/caller.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace weft::simulation {

Buffers::Buffers(const SimulatedCall& call, std::uint32_t rank, std::uint64_t salt, bool inPlace)
    : call_(call), rank_(rank), salt_(salt) {
  const std::size_t in = call.inBytes(rank), out = call.outBytes(rank);
  inPlace_ = inPlace && in != 0 && out != 0 && schedule::allowsInPlace(call.collective);
  const std::size_t second = inPlace_ ? 0 : kGuard + in;  // where Out begins, or the larger of both
  memory_.assign(kGuard + (inPlace_ ? std::max(in, out) : second + out) + kGuard, kUntouched);
  if (out != 0)
    out_ = memory_.data() + kGuard + second + (in > out && inPlace_ ? call.aliasAt(rank) : 0);
  if (in != 0) in_ = memory_.data() + kGuard + (out > in && inPlace_ ? call.aliasAt(rank) : 0);
  for (std::size_t i = 0; i < in / call.elementBytes(); ++i) {
    const std::uint64_t value = call.inputAt(salt, rank, i);
    std::memcpy(in_ + i * call.elementBytes(), &value, call.elementBytes());
  }
}

engine::Launch Buffers::launch() const {
  return {.plan = call_.plans[rank_].get(), .in = in_, .out = out_};
}

std::uint64_t Buffers::elementAt(const std::byte* buffer, std::size_t i) const {
  std::uint64_t value = 0;
  std::memcpy(&value, buffer + i * call_.elementBytes(), call_.elementBytes());
  return value;
}

std::string Buffers::takeBack(bool succeeded) {
  std::string wrong = checkGuards();
  if (wrong.empty() && succeeded) wrong = checkOut();
  std::ranges::fill(memory_, kGivenBack);
  return wrong;
}

std::string Buffers::checkGuards() const {
  const auto untouched = [](std::byte b) { return b == kUntouched; };
  if (!std::all_of(memory_.begin(), memory_.begin() + kGuard, untouched) ||
      !std::all_of(memory_.end() - kGuard, memory_.end(), untouched))
    return "bytes outside of the buffers were written";
  for (std::size_t i = 0; in_ && !inPlace_ && i < call_.inBytes(rank_) / call_.elementBytes();
       ++i) {
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * call_.elementBytes());
    if (elementAt(in_, i) != (call_.inputAt(salt_, rank_, i) & mask))
      return text("element ", i, " of the send buffer was written");
  }
  return {};
}

std::string Buffers::checkOut() const {
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * call_.elementBytes());
  for (std::size_t i = 0; out_ && i < call_.outBytes(rank_) / call_.elementBytes(); ++i) {
    const std::uint64_t expected = call_.expectedAt(salt_, rank_, i) & mask;
    if (elementAt(out_, i) != expected)
      return text("success with a wrong result: element ", i, " is ", elementAt(out_, i), ", not ",
                  expected);
  }
  return {};
}

std::string Buffers::check() const {
  const auto at = std::ranges::find_if(memory_, [](std::byte b) { return b != kGivenBack; });
  if (at == memory_.end()) return {};
  return text("byte ", at - memory_.begin() - std::ptrdiff_t{kGuard},
              " of a buffer was written after the call had returned");
}

}  // namespace weft::simulation
