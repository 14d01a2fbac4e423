// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace weft::verify {

// [actor]: how many of its steps are known to be through. Actors are lanes and callers.
using Clock = std::vector<std::uint32_t>;

// An access to memory by a step of an actor. A local one is through when its step is; one by a put
// may happen at any time until somebody knows better.
struct Access {
  static constexpr std::uint32_t kLocal = ~0u;
  std::uint32_t actor = 0, step = 0;
  std::uint32_t put = kLocal;

  friend bool operator==(const Access&, const Access&) = default;
};

// What happens before what: program order, messages and completions, as vector clocks (Fidge 1988,
// Mattern 1989).
class Order {
 public:
  explicit Order(std::uint32_t actors)
      : clocks_(actors, Clock(actors, 0)), sent_(actors), pending_(actors) {}

  const Clock& of(std::uint32_t actor) const { return clocks_[actor]; }
  void begin(std::uint32_t actor, std::uint32_t step) { clocks_[actor][actor] = step + 1; }
  // `actor` learns what `other` says; an empty one says nothing.
  void learn(std::uint32_t actor, const Clock& other);

  // Step `step` of `sender` puts; the answer numbers the put.
  std::uint32_t put(std::uint32_t sender, std::uint32_t step);
  // Its arrival is awaited by that step of `receiver`, which learns what the sender knew.
  void await(std::uint32_t receiver, std::uint32_t step, std::uint32_t put);
  // All puts of `actor` have read their sources when this step of it begins.
  void drain(std::uint32_t actor, std::uint32_t step);

  bool isAwaited(std::uint32_t put) const { return puts_[put].awaited != 0; }
  // Is the access known to be through to whoever has this clock?
  bool isThrough(const Access& access, bool write, const Clock& clock) const;

 private:
  struct Put {
    std::uint32_t sender, time;
    std::shared_ptr<const Clock> known;  // to the sender, but for its own time; until the arrival
    std::uint32_t drained = 0;           // time of the sender by which the source has been read
    std::uint32_t receiver = 0;
    std::uint32_t awaited = 0;  // time of the receiver by which it has arrived
  };

  std::vector<Clock> clocks_;
  std::vector<std::shared_ptr<const Clock>> sent_;  // by actor: its clock, until it learns more
  std::vector<Put> puts_;
  std::vector<std::vector<std::uint32_t>> pending_;  // by actor: its puts since it last drained
};

}  // namespace weft::verify
