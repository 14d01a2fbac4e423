// SPDX-License-Identifier: Apache-2.0
#include "net/channel.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "net/bytes.h"

namespace weft::net {
namespace {

constexpr std::string_view kMagic = "WEFT";
constexpr std::uint8_t kFormat = 1;
constexpr std::uint8_t kMore = 1;
constexpr std::size_t kHeaderBytes = 12;
constexpr std::size_t kMacBytes = 16;

Bytes macOf(const Key& key, std::uint64_t number, ByteView frame) {
  const Bytes position = ByteWriter().number(number).take();
  const Digest digest = hmacSha256(key, {position, frame});
  return Bytes(digest.begin(), digest.begin() + kMacBytes);
}

Status malformed(std::string_view what) {
  return Status::error(Code::RemoteError, "malformed bootstrap frame: ", what);
}

}  // namespace

struct Channel::FrameHeader {
  MessageType type;
  bool more;
  std::size_t payload;
};

void Channel::secure(const Key& sendKey, const Key& receiveKey, std::size_t maxMessage) {
  secured_ = true;
  sendKey_ = sendKey;
  receiveKey_ = receiveKey;
  maxMessage_ = maxMessage;
}

void Channel::feed(ByteView bytes) {
  in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(std::exchange(inUsed_, 0)));
  in_.insert(in_.end(), bytes.begin(), bytes.end());
}

Status Channel::parseHeader(ByteView bytes, FrameHeader* header) const {
  ByteReader reader(bytes);
  if (!std::ranges::equal(reader.raw(kMagic.size()), bytesOf(kMagic)))
    return malformed("not weft's");
  if (reader.number<std::uint8_t>() != kFormat) return malformed("unknown format");
  const auto type = reader.number<std::uint8_t>();
  const auto flags = reader.number<std::uint8_t>();
  const auto zero = reader.number<std::uint8_t>();
  const bool known = type >= static_cast<std::uint8_t>(MessageType::Hello) &&
                     type <= static_cast<std::uint8_t>(MessageType::Grouped);
  if (!known || flags > kMore || zero != 0) return malformed("unknown type or flags");
  *header = {static_cast<MessageType>(type), flags == kMore, reader.number<std::uint32_t>()};
  if (header->payload > maxFrame())
    return malformed(text(header->payload, " bytes, more than ", maxFrame()));
  if (header->more && (!secured_ || header->payload == 0))
    return malformed("a part where none may be");
  return {};
}

bool Channel::isRefusal(const FrameHeader& header) const {
  return secured_ && framesReceived_ == 0 && header.type == MessageType::Refusal &&
         header.payload == 0 && !header.more;
}

// Checks and consumes the whole frame at the front of unread().
Status Channel::openFrame(const FrameHeader& header) {
  const std::size_t size = kHeaderBytes + header.payload;
  const ByteView frame = unread().first(size);
  if (secured_) {
    const Bytes mac = macOf(receiveKey_, framesReceived_, frame);
    if (!equalInConstantTime(mac, unread().subspan(size, kMacBytes))) return malformed("wrong MAC");
  }
  if (assembling_.size() + header.payload > maxMessage_) return malformed("message too long");
  assembling_.insert(assembling_.end(), frame.begin() + kHeaderBytes, frame.end());
  inUsed_ += size + (secured_ ? kMacBytes : 0);
  framesReceived_ += secured_ ? 1 : 0;
  return {};
}

Status Channel::next(std::optional<Message>* message) {
  message->reset();
  while (unread().size() >= kHeaderBytes) {
    FrameHeader header{};
    WEFT_TRY(parseHeader(unread().first(kHeaderBytes), &header));
    if (isRefusal(header)) {
      inUsed_ += kHeaderBytes;
      *message = Message{MessageType::Refusal, {}};
      return {};
    }
    if (unread().size() < kHeaderBytes + header.payload + (secured_ ? kMacBytes : 0)) return {};
    WEFT_TRY(openFrame(header));
    if (header.more) continue;
    *message = Message{header.type, std::exchange(assembling_, {})};
    return {};
  }
  // Foreign connections are told apart by the first bytes already, not only once a whole header is
  // there.
  const std::size_t seen = std::min(unread().size(), kMagic.size());
  const bool ours = std::ranges::equal(unread().first(seen), bytesOf(kMagic.substr(0, seen)));
  return ours ? Status() : malformed("not weft's");
}

void Channel::send(MessageType type, Bytes body) {
  send(type, std::make_shared<const Bytes>(std::move(body)));
}

void Channel::send(MessageType type, std::shared_ptr<const Bytes> body) {
  queue_.push_back({type, std::move(body)});
}

// All of it or, without memory, nothing: half a frame would be waited for.
void Channel::sealFrame(Outgoing* message) {
  const std::size_t left = message->body->size() - message->offset;
  const std::size_t payload = std::min(left, maxFrame());
  ByteWriter writer;
  writer.raw(bytesOf(kMagic)).number(kFormat).number(static_cast<std::uint8_t>(message->type));
  writer.number(payload < left ? kMore : std::uint8_t{0}).number(std::uint8_t{0});
  writer.number(static_cast<std::uint32_t>(payload));
  writer.raw(ByteView(*message->body).subspan(message->offset, payload));
  Bytes frame = writer.take();
  if (secured_) {
    const Bytes mac = macOf(sendKey_, framesSent_, frame);
    frame.insert(frame.end(), mac.begin(), mac.end());
    ++framesSent_;
  }
  out_ = std::move(frame);
  outUsed_ = 0;
  message->offset += payload;
}

ByteView Channel::pending() {
  if (outUsed_ == out_.size() && !queue_.empty()) {
    Outgoing& front = queue_.front();
    sealFrame(&front);
    if (front.offset == front.body->size()) queue_.pop_front();
  }
  return ByteView(out_).subspan(outUsed_);
}

void Channel::sent(std::size_t bytes) { outUsed_ += bytes; }

}  // namespace weft::net
