// SPDX-License-Identifier: Apache-2.0
// The root's half of the handshake, against a rank that holds the secret, or not, and says what it likes.
#include "bootstrap/admission.h"
#include "fuzz.h"

namespace weft::fuzz {
namespace {

using bootstrap::Admission;
using net::MessageType;

const net::Key kSecret{std::byte{1}};

// The rank's side: what it says next, right or wrong as the input has it.
class Rank {
 public:
  explicit Rank(FuzzedDataProvider& from) : from_(from) {}

  net::Message hello() {
    bootstrap::Hello hello;
    if (from_.ConsumeBool()) return anything();
    hello.tag = bootstrap::idTag(kSecret);
    hello.rank = from_.ConsumeIntegral<std::int32_t>();
    hello.size = from_.ConsumeIntegral<std::int32_t>();
    hello.wire = {from_.ConsumeIntegral<std::uint16_t>(), from_.ConsumeIntegral<std::uint16_t>()};
    hello.version = from_.ConsumeRandomLengthString(80);
    hello_ = encode(hello);
    return {MessageType::Hello, hello_};
  }
  net::Message proof(const net::Bytes& challenge) {
    if (from_.ConsumeBool()) return anything();
    const net::Digest proof = bootstrap::rankProof(kSecret, hello_, challenge);
    return {MessageType::Proof, net::Bytes(proof.begin(), proof.end())};
  }
  net::Message anything() {
    const auto type = static_cast<MessageType>(from_.ConsumeIntegralInRange(1, 15));
    const std::string body = from_.ConsumeRandomLengthString();
    const net::ByteView bytes = net::bytesOf(body);
    return {type, net::Bytes(bytes.begin(), bytes.end())};
  }

 private:
  FuzzedDataProvider& from_;
  net::Bytes hello_;
};

// The body of the one frame that the root has to send.
net::Bytes takeAnswer(net::Channel* root) {
  net::Channel rank;
  rank.feed(root->pending());
  root->sent(root->pending().size());
  std::optional<net::Message> message;
  require(rank.next(&message).ok() && message, "the root speaks the protocol");
  return message->body;
}

}  // namespace

void tryInput(Input input) {
  FuzzedDataProvider from(input.data(), input.size());
  Rank rank(from);
  net::Channel channel;
  Admission admission(kSecret);
  std::optional<bootstrap::Member> admitted;
  if (!isGood(admission.handle(rank.hello(), &channel, &admitted))) return;
  require(admission.knowsOurId() && !admission.proven() && !admitted, "a hello proves nothing");
  if (!isGood(admission.handle(rank.proof(takeAnswer(&channel)), &channel, &admitted))) return;
  require(admission.proven(), "whoever passes has proved it");
  if (admitted) return;
  if (!isGood(admission.handle(rank.anything(), &channel, &admitted))) return;
  require(admitted && admitted->info.who.rank == admitted->hello.rank, "it is let in");
}

}  // namespace weft::fuzz
