// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/form.h"
#include "schedule/ir.h"

namespace weft::formats {

// What the ranks of a foreign schedule do to chunks, in single-assignment form: each chunk that is
// read, received or summed is a value of its own, and so are the old and the new content of a buffer
// that the schedule uses twice. Copies inside a rank are values under two names, and cost nothing.
//
// Whoever reads a format calls this in an order in which the schedule may run, so that each value is
// known before it is used; the order of a rank's calls is that of its program.
class Flow {
 public:
  using Value = std::uint32_t;
  using Values = std::vector<Value>;

  explicit Flow(const Form& form);

  const Form& form() const { return form_; }

  // What is in In slot `slot` of `rank`.
  Value input(std::uint32_t rank, std::uint32_t slot) const;
  // `from` sends values of its own to `to`, which waits for them when it receives the message.
  std::uint32_t send(std::uint32_t from, std::uint32_t to, const Values& values);
  // The same, but `from` sends as soon as it has them: of what `to` reads in its buffers.
  std::uint32_t sendAtOnce(std::uint32_t from, std::uint32_t to, const Values& values);
  Values receive(std::uint32_t message);
  // [k] is the sum of the k-th values of both; false if two of them cannot be added: they are of
  // different chunks, or one has all ranks' already.
  bool add(std::uint32_t rank, const Values& a, const Values& b, Values* sums);
  // What is in Out slot `slot` of `rank` at the end.
  void output(std::uint32_t rank, std::uint32_t slot, Value value);

  // Is it what the collective wants in that Out slot?
  bool isWanted(std::uint32_t rank, std::uint32_t slot, Value value) const;
  bool hasReceived(std::uint32_t message) const { return messages_[message].first != kNone; }
  std::uint64_t values() const { return values_.size(); }

  // The schedule of it: values get slots, which are written once, and runs of chunks that are together
  // at both ends become one op. Every output is set, and every message received.
  schedule::Schedule build(std::string name);

 private:
  friend class Placement;
  static constexpr std::uint32_t kNone = ~0u;

  struct Node {
    enum class Kind : std::uint8_t { Input, Message, Sum };
    Kind kind = Kind::Input;
    std::uint32_t rank = 0;
    std::uint32_t chunk = 0;                 // logical
    std::uint32_t at = 0;                    // In slot, or the message
    std::uint32_t event = 0;                 // of its rank, that makes it
    std::uint32_t firstRank = 0;             // the lowest rank whose input it holds
    std::uint64_t sum = 0;                   // verify::Value::sum
    std::vector<Value> operands = {};        // of a sum
    std::uint32_t uses = 0, output = kNone;  // how often it is read; an Out slot that holds it
  };
  struct Message {
    std::uint32_t from = 0, to = 0;
    Values sent;
    Value first = kNone;  // of those that are received
  };
  // What a rank does at a time: sends a message, waits for one, or adds.
  struct Event {
    enum class Kind : std::uint8_t { Send, Receive, Add };
    Kind kind = Kind::Send;
    std::uint32_t message = 0;
    Value first = 0;  // of the sums
    std::uint32_t count = 0;
    bool atOnce = false;  // of a Send
  };

  bool isComplete(const Node& node) const { return node.sum == complete_; }
  bool isAdded(const Node& node) const;
  void joinSums();
  void sendAtOnce(std::uint32_t rank);
  std::uint32_t placeAtOnce(const Event& event) const;

  const Form form_;
  const std::uint64_t complete_;
  std::vector<Node> values_;
  std::vector<Message> messages_;
  std::vector<std::vector<Event>> events_;  // by rank
  std::vector<Values> outputs_;             // by rank
};

}  // namespace weft::formats
