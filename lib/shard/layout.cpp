// SPDX-License-Identifier: Apache-2.0
#include "shard/layout.h"

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "base/invalid.h"
#include "base/text.h"
#include "reduce/optimizer.h"

namespace weft::shard {
namespace {

std::uint64_t roundUp(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

Status wrong(std::size_t index, const ParameterSpec& p, std::string_view why) {
  return invalid("parameter ", index, " ('", p.name, "') ", why);
}

Status checkTie(const std::vector<ParameterSpec>& all, std::size_t i) {
  const ParameterSpec& p = all[i];
  if (!p.isTied()) return {};
  if (static_cast<std::size_t>(p.tiedTo) >= i)
    return wrong(i, p, text("is tied to parameter ", p.tiedTo, "; fix: tie it to an earlier one"));
  const ParameterSpec& other = all[static_cast<std::size_t>(p.tiedTo)];
  if (other.elements != p.elements || other.frozen != p.frozen)
    return wrong(i, p,
                 text("is tied to '", other.name,
                      "', which has another length or is frozen where it is not"));
  if (other.isTied()) return wrong(i, p, "is tied to a tied one; fix: tie it to the first");
  return {};
}

Status check(const std::vector<ParameterSpec>& all) {
  std::set<std::string_view> names;
  std::uint64_t trained = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].name.empty()) return wrong(i, all[i], "has no name");
    if (!names.insert(all[i].name).second) return wrong(i, all[i], "has the name of another");
    if (all[i].elements == 0) return wrong(i, all[i], "has no elements");
    if (all[i].elements > (std::uint64_t{1} << 48)) return wrong(i, all[i], "is too long");
    WEFT_TRY(checkTie(all, i));
    std::uint64_t volume = 1;
    for (const std::uint64_t extent : all[i].shape)
      volume = extent != 0 && volume <= all[i].elements / extent ? volume * extent : 0;
    if (!all[i].shape.empty() && volume != all[i].elements)
      return wrong(i, all[i], "has a shape of another number of elements");
    if (!all[i].frozen) trained += all[i].elements;
  }
  return trained != 0 ? Status() : invalid("no parameter is to be trained");
}

}  // namespace

Status Layout::make(std::vector<ParameterSpec> parameters, std::uint64_t bucketElements,
                    std::uint32_t ranks, Layout* out) {
  WEFT_TRY(check(parameters));
  Layout made;
  made.parameters_ = std::move(parameters);
  made.place(std::max<std::uint64_t>(bucketElements, 1), std::uint64_t{ranks} * reduce::kGrid);
  *out = std::move(made);
  return {};
}

void Layout::closeBucket(std::uint64_t grain) {
  if (buckets_.empty()) return;
  Bucket& last = buckets_.back();
  last.elements = roundUp(last.elements, grain);
  bucketed_ = last.offset + last.elements;
}

void Layout::place(std::uint64_t bucketElements, std::uint64_t grain) {
  slots_.resize(parameters_.size());
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    const ParameterSpec& p = parameters_[i];
    slots_[i] = {0, p.elements, logical_, kNoBucket, i};
    if (!p.isTied()) logical_ += roundUp(p.elements, reduce::kGrid);
  }
  for (std::size_t i = slots_.size(); i-- > 0;) {
    if (!parameters_[i].isTrained()) continue;
    if (buckets_.empty() || buckets_.back().elements >= bucketElements) {
      closeBucket(grain);
      buckets_.push_back({bucketed_, 0, {}});
    }
    Bucket& b = buckets_.back();
    slots_[i].offset = b.offset + b.elements;
    slots_[i].bucket = static_cast<std::uint32_t>(buckets_.size() - 1);
    b.elements += roundUp(slots_[i].elements, reduce::kGrid);
    b.parameters.push_back(static_cast<std::uint32_t>(i));
    trained_ += slots_[i].elements;
  }
  closeBucket(grain);
  flat_ = bucketed_;
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (parameters_[i].isTied()) {
      slots_[i] = slots_[static_cast<std::size_t>(parameters_[i].tiedTo)];
    } else if (parameters_[i].frozen) {
      frozen_.push_back(i);
      slots_[i].offset = flat_;
      flat_ += roundUp(slots_[i].elements, reduce::kGrid);
    }
  }
}

std::uint32_t Layout::parameterAt(std::uint64_t logical) const {
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < slots_.size(); ++i)
    if (!parameters_[i].isTied() && slots_[i].first <= logical) found = i;
  return found;
}

std::uint64_t Layout::fingerprint(std::uint32_t parameter) const {
  const ParameterSpec& p = parameters_[parameter];
  return Hash()
      .add(std::string_view(p.name))
      .add(p.elements)
      .add(p.frozen ? 1u : 0u)
      .add((p.noDecay ? 1u : 0u) | (p.copy ? 2u : 0u) | (p.split ? 4u : 0u))
      .add(static_cast<std::uint64_t>(p.tiedTo) + 1)
      .value();
}

std::uint64_t Layout::fingerprint() const {
  Hash hash;
  for (std::uint32_t p = 0; p < parameters_.size(); ++p) hash.add(fingerprint(p));
  return hash.value();
}

}  // namespace weft::shard
