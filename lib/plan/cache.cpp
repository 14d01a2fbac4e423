// SPDX-License-Identifier: Apache-2.0
#include "plan/cache.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weft::plan {

Status bindDecision(const Decision& decision, const Call& call, const Tuning& tuning,
                    const BindTarget& target, std::unique_ptr<Plan>* out) {
  BindTarget bound = target;
  bound.flipsStores = decision.flipsStores;
  std::unique_ptr<Plan> plain;
  if (decision.needsSchedule(tuning)) {
    WEFT_TRY(bindSchedule(decision.schedule, call, bound, &plain));
    plain->expected = decision.expected;
    plain->cmaCopies = decision.copies;
  }
  if (!decision.shared) {
    *out = std::move(plain);
    return {};
  }
  WEFT_TRY(bindSchedule(*decision.shared, call, bound, out));
  (*out)->expected = decision.expectedShared;
  (*out)->otherwise = std::move(plain);
  return {};
}

std::size_t PlanCache::mostBytes(std::uint32_t ranks) {
  constexpr std::size_t kLeast = std::size_t{1} << 20, kMost = std::size_t{32} << 20;
  constexpr std::size_t kCalls = 64, kOps = 4;  // of a peer: put, wait, and what is done with it
  return std::min(kLeast + ranks * kCalls * kOps * sizeof(BoundOp), kMost);
}

std::size_t PlanCache::Entry::bytes() const {
  return sizeof(*this) + plan->bytes() + algorithm.capacity() +
         (counts.capacity() + displs.capacity()) * sizeof(std::size_t);
}

std::unique_ptr<PlanCache::Entry> PlanCache::entryOf(const Call& call,
                                                     std::unique_ptr<const Plan> plan) {
  auto entry = std::make_unique<Entry>();
  entry->call = call;
  entry->counts.assign(call.counts.begin(), call.counts.end());
  entry->displs.assign(call.displs.begin(), call.displs.end());
  entry->algorithm = call.algorithm;
  entry->call.counts = entry->counts;
  entry->call.displs = entry->displs;
  entry->call.algorithm = entry->algorithm;
  entry->plan = std::move(plan);
  return entry;
}

// Sizes within a quarter of an octave are one kind.
std::uint64_t PlanCache::kindOf(const Call& call) {
  const auto bytes = static_cast<double>(call.count * reduce::sizeOf(call.type));
  auto id = static_cast<std::uint64_t>(4 * std::log2(std::max(bytes, 1.0)));
  id = id << 6 | static_cast<std::uint64_t>(call.collective);
  id = id << 6 | static_cast<std::uint64_t>(call.type);
  id = id << 6 | static_cast<std::uint64_t>(call.op);
  id = id << 1 | static_cast<std::uint64_t>(call.reproducible);
  return id << 32 | static_cast<std::uint32_t>(call.root);
}

bool PlanCache::mayBeKind(const Call& call) const {
  return tuning_.tries && call.counts.empty() && call.algorithm.empty();
}

PlanCache::Kind* PlanCache::knownKind(const Call& call) const {
  if (!mayBeKind(call)) return nullptr;
  const auto there = kinds_.find(kindOf(call));
  return there != kinds_.end() ? there->second.get() : nullptr;
}

// The first call of a kind makes it, also if there is nothing to try: so all ranks hold the same, though
// their plans make room at different times.
PlanCache::Kind* PlanCache::newKind(const Call& call, Forms forms) {
  if (!mayBeKind(call) || kinds_.size() == kMostKinds) return nullptr;
  const bool share = tuning_.ranks > tuning_.costs.cores;
  const auto cores = share ? Trial::Cores::Shared : Trial::Cores::OfTheirOwn;
  const Trial any(forms.any.size(), cores, false, Trial::runsOf(forms.anyNs));
  const Trial shared(forms.shared.size(), cores, true, Trial::runsOf(forms.sharedNs));
  const std::lock_guard lock(judgingMutex_);
  std::unique_ptr<Kind>& made = kinds_[kindOf(call)];
  made = std::make_unique<Kind>(Kind{std::move(forms), {any, shared}});
  return made.get();
}

const Form* PlanCache::Kind::form() const {
  const std::vector<Form>& all = forms.of(areShared);
  return all.empty() ? nullptr : &all[trial().form()];
}

std::optional<Form> PlanCache::Kind::next() const {
  if (form() == nullptr) return {};
  Form next = *form();
  if (variant().isProbe) next.shared = forms.asked;
  return next;
}

void PlanCache::judge(Trial& trial) {
  const std::lock_guard lock(judgingMutex_);
  trial.judge();
}

void PlanCache::enter(Kind& kind, bool areShared) {
  const std::lock_guard lock(judgingMutex_);
  kind.areShared = areShared;
}

std::optional<PlanCache::Findings> PlanCache::findings(const Call& call) const {
  const std::lock_guard lock(judgingMutex_);
  const Kind* const kind = knownKind(call);
  if (kind == nullptr || kind->trial().ns(0) == 0) return {};
  const std::vector<Form>& forms = kind->forms.of(kind->areShared);
  const Trial& trial = kind->trial();
  Findings found{{}, forms[trial.chosen()]};
  for (std::uint8_t form = 0; form < trial.forms(); ++form)
    found.ns.emplace_back(forms[form], trial.ns(form));
  return found;
}

Status PlanCache::make(const Call& call, Kind* kind, std::unique_ptr<Entry>* out) {
  Decision decision;
  const std::optional<Form> tried = kind == nullptr ? std::nullopt : kind->next();
  WEFT_TRY(decide(call, tuning_, &decision, tried ? &*tried : nullptr));
  std::unique_ptr<Plan> plan;
  WEFT_TRY(bindDecision(decision, call, tuning_, target_, &plan));
  *out = entryOf(call, std::move(plan));
  if (kind == nullptr) kind = newKind(call, std::move(decision.forms));
  if (kind != nullptr && kind->tries()) {
    (*out)->kind = kind;
    (*out)->variant = kind->variant();
  }
  if ((*out)->plan->otherwise) (*out)->asking = &askings_[mixed(call) % kAskings];
  return {};
}

// Another call than the last one.
Status PlanCache::look(const Call& call) {
  last_ = nullptr;
  Bucket& bucket = buckets_[bucketOf(call)];
  if (bucket.empty() || !bucket.front()->isOf(call)) WEFT_TRY(bringToFront(call, bucket));
  last_ = bucket.front().get();
  return {};
}

Status PlanCache::bringToFront(const Call& call, Bucket& bucket) {
  const auto known = std::ranges::find_if(
      bucket, [&](const std::unique_ptr<Entry>& entry) { return entry->isOf(call); });
  if (known != bucket.end()) {
    std::rotate(bucket.begin(), known, known + 1);
    return {};
  }
  std::unique_ptr<Entry> entry;
  WEFT_TRY(make(call, knownKind(call), &entry));
  makeRoom(entry->bytes());
  bytes_ += entry->bytes();
  ++made_;
  bucket.insert(bucket.begin(), std::move(entry));
  return {};
}

// One plan may be larger than all there is room for.
void PlanCache::makeRoom(std::size_t bytes) {
  while (bytes_ != 0 && bytes_ + bytes > mostBytes(target_.ranks)) {
    Bucket* bucket = nullptr;
    Bucket::iterator oldest;
    for (Bucket& other : buckets_)
      for (auto entry = other.begin(); entry != other.end(); ++entry)
        if (bucket == nullptr || (*entry)->used < (*oldest)->used) {
          bucket = &other;
          oldest = entry;
        }
    bytes_ -= (*oldest)->bytes();
    bucket->erase(oldest);
  }
}

}  // namespace weft::plan
