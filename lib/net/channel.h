// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "base/status.h"
#include "net/crypto.h"
#include "net/message_type.h"

namespace weft::net {

struct Message {
  MessageType type;
  Bytes body;
};

// Turns messages into bytes and back; does no I/O, so it can be fed anything. Not thread-safe.
//
// A frame is  "WEFT" | u8 format | u8 type | u8 flags | u8 0 | u32 payload bytes | payload [|
// 16-byte MAC]. A message is one frame, or several with the flag "more" on all but the last. After
// secure() every frame ends with the first half of HMAC-SHA256(key of its direction, u64 frame
// number | header | payload), so nothing can be changed, repeated, left out or moved. A Refusal in
// place of the first such frame has none: it is of somebody with other keys (handshake.h).
class Channel {
 public:
  static constexpr std::size_t kMaxFrameBefore = 4 * 1024;  // payload bytes before secure()
  static constexpr std::size_t kMaxFrameAfter = 64 * 1024;  // and after

  // From now on both directions are authenticated, and messages of up to maxMessage bytes are
  // taken. What was sent before must have left already (pending() is empty).
  void secure(const Key& sendKey, const Key& receiveKey, std::size_t maxMessage);

  // ---- receiving ----
  // Adds bytes from the peer.
  void feed(ByteView bytes);
  // The next whole message, if there is one. An error means that the peer does not speak this
  // protocol or that the bytes are forged; nothing after it can be trusted.
  Status next(std::optional<Message>* message);
  // The first bytes that arrived, for the log of rejected connections.
  ByteView unread() const { return ByteView(in_).subspan(inUsed_); }

  // ---- sending ----
  void send(MessageType type, Bytes body);
  // As above, sharing one body among many channels.
  void send(MessageType type, std::shared_ptr<const Bytes> body);
  // Bytes to hand to the socket now; empty if there are none. Frames are made one at a time, so a
  // large message to many ranks is not copied for each.
  ByteView pending();
  void sent(std::size_t bytes);

 private:
  struct Outgoing {
    MessageType type;
    std::shared_ptr<const Bytes> body;
    std::size_t offset = 0;
  };
  struct FrameHeader;

  std::size_t maxFrame() const { return secured_ ? kMaxFrameAfter : kMaxFrameBefore; }
  Status parseHeader(ByteView bytes, FrameHeader* header) const;
  bool isRefusal(const FrameHeader& header) const;
  Status openFrame(const FrameHeader& header);
  void sealFrame(Outgoing* message);

  bool secured_ = false;
  Key sendKey_{}, receiveKey_{};
  std::uint64_t framesSent_ = 0, framesReceived_ = 0;  // since secure()
  std::size_t maxMessage_ = kMaxFrameBefore;

  Bytes in_;
  std::size_t inUsed_ = 0;
  Bytes assembling_;

  std::deque<Outgoing> queue_;
  Bytes out_;
  std::size_t outUsed_ = 0;
};

}  // namespace weft::net
