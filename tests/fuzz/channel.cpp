// SPDX-License-Identifier: Apache-2.0
// Frames: anything at all, before there are keys; then between two ends that have them, with a byte changed on the way.
#include "net/channel.h"

#include <algorithm>

#include "fuzz.h"

namespace weft::fuzz {
namespace {

constexpr std::size_t kMaxMessage = 200'000;

void tryForeign(FuzzedDataProvider& from) {
  net::Channel channel;
  while (from.remaining_bytes() > 0) {
    const auto piece =
        from.ConsumeBytes<std::byte>(from.ConsumeIntegralInRange<std::size_t>(1, 600));
    channel.feed(piece);
    for (std::optional<net::Message> message;;) {
      if (!channel.next(&message).ok()) return;
      if (!std::exchange(message, std::nullopt)) break;
    }
  }
}

std::vector<net::Message> messagesFrom(FuzzedDataProvider& from) {
  std::vector<net::Message> messages;
  for (int count = from.ConsumeIntegralInRange(0, 4); count > 0; --count) {
    const auto type = static_cast<net::MessageType>(from.ConsumeIntegralInRange(1, 15));
    // Short, or about as long as a frame may be.
    const auto size =
        from.ConsumeIntegralInRange<std::size_t>(0, 200) +
        (from.ConsumeIntegralInRange(0, 15) == 0 ? net::Channel::kMaxFrameAfter - 100 : 0);
    messages.push_back({type, net::Bytes(size, std::byte{from.ConsumeIntegral<std::uint8_t>()})});
  }
  return messages;
}

net::Bytes sealed(const std::vector<net::Message>& messages, const net::Key& key) {
  net::Channel sender;
  sender.secure(key, {}, kMaxMessage);
  for (const net::Message& message : messages) sender.send(message.type, message.body);
  net::Bytes wire;
  for (net::ByteView part = sender.pending(); !part.empty(); part = sender.pending()) {
    wire.insert(wire.end(), part.begin(), part.end());
    sender.sent(part.size());
  }
  return wire;
}

void tryWithKeys(FuzzedDataProvider& from) {
  const net::Key key{std::byte{7}};
  const std::vector<net::Message> messages = messagesFrom(from);
  net::Bytes wire = sealed(messages, key);
  const std::byte change{from.ConsumeIntegral<std::uint8_t>()};
  if (!wire.empty()) wire[from.ConsumeIntegralInRange<std::size_t>(0, wire.size() - 1)] ^= change;

  net::Channel receiver;
  receiver.secure({}, key, kMaxMessage);
  std::size_t got = 0;
  for (std::size_t at = 0, piece = 0; at < wire.size(); at += piece) {
    const bool all = from.remaining_bytes() == 0;
    piece = all ? wire.size() - at
                : std::min(from.ConsumeIntegralInRange<std::size_t>(1, 70'000), wire.size() - at);
    receiver.feed(net::ByteView(wire).subspan(at, piece));
    for (std::optional<net::Message> message;;) {
      if (!receiver.next(&message).ok()) return require(change != std::byte{0}, "it arrives whole");
      if (!message) break;
      // The one message that needs no key: see channel.h.
      if (message->type == net::MessageType::Refusal && message->body.empty()) return;
      require(got < messages.size() && message->type == messages[got].type &&
                  message->body == messages[got].body,
              "what arrives is what was sent");
      ++got;
      message.reset();
    }
  }
  require(change != std::byte{0} || got == messages.size(), "all arrive");
}

}  // namespace

void tryInput(Input input) {
  FuzzedDataProvider from(input.data(), input.size());
  if (from.ConsumeBool())
    tryWithKeys(from);
  else
    tryForeign(from);
}

}  // namespace weft::fuzz
