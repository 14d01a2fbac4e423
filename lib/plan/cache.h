// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "plan/asking.h"
#include "plan/bind.h"
#include "plan/decide.h"
#include "plan/trial.h"
#include "plan/tuning.h"

namespace weft::plan {

// Compiles what was decided for one rank: for shared buffers with what to do if they are not.
Status bindDecision(const Decision& decision, const Call& call, const Tuning& tuning,
                    const BindTarget& target, std::unique_ptr<Plan>* out);

// The compiled plans of one communicator and rank. find() is the hot path: one comparison when the
// same call comes again. Bounded: those that were not used for longest make room. One thread at a
// time.
class PlanCache {
 public:
  // Room for the plans of 64 calls that exchange a block with each rank and wait for one of each.
  static std::size_t mostBytes(std::uint32_t ranks);
  // Calls of so many kinds try their forms, those of further ones run what the model says. A kind is a
  // collective, a size in quarters of octaves, a type, an operation and a root: all eight collectives with
  // 25 sizes each are 200, broadcasts of one size from each of 1,024 ranks are all that there is room for.
  static constexpr std::size_t kMostKinds = 1024;

  PlanCache(Tuning tuning, BindTarget target) : tuning_(std::move(tuning)), target_(target) {}

  // The plan stays valid until the next find(). The call's spans and name are copied.
  Status find(const Call& call, const Plan** plan) {
    if (last_ == nullptr || !last_->isOf(call)) WEFT_TRY(look(call));
    Entry& found = *last_;
    found.used = ++finds_;
    *plan = found.plan.get();
    asked_ = found.asking;
    if (asked_ != nullptr && !found.variant.isProbe && !asked_->isDue())
      *plan = found.plan->otherwise.get();
    kind_ = found.kind;
    return {};
  }
  // The plan that was found last and has an `otherwise` has run: were all buffers shared?
  void learn(bool shared) {
    asked_->learn(shared);
    if (kind_ != nullptr && kind_->areShared != shared) enter(*kind_, shared);
  }
  // Will calls like the one whose plan was found last be of that plan from now on?
  bool isSettled() const {
    return asked_ == nullptr && (kind_ == nullptr || kind_->trial().forms() <= 1);
  }
  // Is the call whose plan was found last to be timed? Null: no. Else its ranks, who all get it for the
  // same calls, tell each other when it isDue(), and have it judged.
  Trial* trial() {
    return kind_ != nullptr && kind_->trial().isTimed() ? &kind_->trial() : nullptr;
  }
  void judge(Trial& trial);
  // What calls of this kind have found out; not if they have not tried anything. Any thread.
  struct Findings {
    std::vector<std::pair<Form, double>> ns;  // of a call
    Form chosen;
  };
  std::optional<Findings> findings(const Call& call) const;
  std::size_t bytes() const { return bytes_ + kinds_.size() * sizeof(Kind); }
  std::uint64_t made() const { return made_; }  // how many plans so far
  const Tuning& tuning() const { return tuning_; }

 private:
  // What a call of a kind runs: one of its forms, or the probe of it.
  struct Variant {
    bool isShared = false;  // of those for shared buffers
    std::uint8_t form = 0;
    bool isProbe = false;  // asks, as the form itself does not
    friend bool operator==(const Variant&, const Variant&) = default;
  };
  // Calls that are alike but for a part of their size, and what they try.
  struct Kind {
    Forms forms;
    std::array<Trial, 2> trials;  // of any buffers, of shared ones
    bool areShared = false;       // the buffers of the last call that asked

    Trial& trial() { return trials[areShared]; }
    const Trial& trial() const { return trials[areShared]; }
    bool tries() const { return !(forms.any.empty() && forms.shared.empty()); }
    Variant variant() const { return {areShared, trial().form(), trial().isProbe() && mayProbe()}; }
    bool mayProbe() const { return forms.asked.algorithm != nullptr && form() && !form()->asks(); }
    const Form* form() const;          // null: nothing is tried of such buffers
    std::optional<Form> next() const;  // that, or the probe of it
  };
  struct Entry {
    // Of this call, in the form that it runs in now?
    bool isOf(const Call& other) const {
      return same(call, other) && (kind == nullptr || kind->variant() == variant);
    }

    Call call;  // its spans and algorithm point into the members below
    std::vector<std::size_t> counts, displs;
    std::string algorithm;
    std::unique_ptr<const Plan> plan;
    Asking* asking = nullptr;  // of a plan that has an `otherwise`
    Kind* kind = nullptr;      // null: only one form is considered
    Variant variant;           // of the kind, that `plan` is of
    std::uint64_t used = 0;    // by which find() last

    std::size_t bytes() const;
  };
  using Bucket = std::vector<std::unique_ptr<Entry>>;  // the last found stands first
  static constexpr std::size_t kBuckets = 64, kAskings = 2048;

  static std::uint64_t mixed(const Call& call) {
    const std::uint64_t root = static_cast<std::uint32_t>(call.root);
    const std::uint64_t mixed =
        ((call.count + (root << 32)) * 10 + static_cast<std::uint64_t>(call.type)) * 9 +
        static_cast<std::uint64_t>(call.collective);
    return (mixed * 0x9e3779b97f4a7c15u) >> 32;
  }
  static std::size_t bucketOf(const Call& call) { return mixed(call) % kBuckets; }
  // Field by field, as the call was just written: a load of several at once would wait for those stores.
  // (Compilers join comparisons that one `&&` joins.)
  static bool same(const Call& a, const Call& b) {
    const auto words = [](const Call& call) {
      return std::tie(call.count, call.collective, call.type, call.op, call.root, call.reproducible,
                      call.algorithm);
    };
    return words(a) == words(b) && std::ranges::equal(a.counts, b.counts) &&
           std::ranges::equal(a.displs, b.displs);
  }
  static std::unique_ptr<Entry> entryOf(const Call& call, std::unique_ptr<const Plan> plan);
  static std::uint64_t kindOf(const Call& call);
  bool mayBeKind(const Call& call) const;
  Kind* knownKind(const Call& call) const;
  Kind* newKind(const Call& call, Forms forms);
  Status look(const Call& call);
  Status bringToFront(const Call& call, Bucket& bucket);
  Status make(const Call& call, Kind* kind, std::unique_ptr<Entry>* out);
  void enter(Kind& kind, bool areShared);
  void makeRoom(std::size_t bytes);

  Tuning tuning_;
  BindTarget target_;
  std::array<Bucket, kBuckets> buckets_;
  Entry* last_ = nullptr;  // found
  // By call, not of its entry: ranks' plans differ in size, so entries may make room on some ranks
  // and not on others. Kinds of calls that share one ask together.
  std::array<Asking, kAskings> askings_;
  Asking* asked_ = nullptr;  // of what was found last
  // By id, likewise: the first ones that are called.
  std::unordered_map<std::uint64_t, std::unique_ptr<Kind>> kinds_;
  Kind* kind_ = nullptr;             // of what was found last
  mutable std::mutex judgingMutex_;  // kinds_ and what they have found out, for findings()
  std::size_t bytes_ = 0;
  std::uint64_t finds_ = 0, made_ = 0;
};

}  // namespace weft::plan
