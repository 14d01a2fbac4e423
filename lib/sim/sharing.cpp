// SPDX-License-Identifier: Apache-2.0
#include "sim/sharing.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weft::sim {
namespace {

constexpr double kNothing = 1e-9;  // of a weight: rounding

// Of 27 bits: so many of them add up without an error that what is left of a resource does not depend
// on their order, nor on whether one stands for several.
double rounded(double rate) {
  int exponent = 0;
  const double mantissa = std::frexp(rate, &exponent);
  return std::ldexp(std::floor(std::ldexp(mantissa, 27)), exponent - 27);
}

}  // namespace

Sharing::Sharing(std::vector<double> rates) : resources_(rates.size()) {
  for (std::size_t i = 0; i < rates.size(); ++i) resources_[i].rate = rates[i];
}

std::uint32_t Sharing::addChannel(std::span<const Use> uses) {
  channels_.emplace_back();
  const auto channel = static_cast<std::uint32_t>(channels_.size() - 1);
  setUses(channel, uses);
  return channel;
}

void Sharing::setUses(std::uint32_t channel, std::span<const Use> uses) {
  channels_[channel].uses.assign(uses.begin(), uses.end());
  channels_[channel].places.resize(uses.size());
}

void Sharing::mark(const Channel& channel) {
  for (const Use& use : channel.uses) {
    if (std::exchange(resources_[use.resource].isChanged, true)) continue;
    changed_.push_back(use.resource);
  }
}

void Sharing::enter(std::uint32_t number) {
  Channel& channel = channels_[number];
  for (std::size_t i = 0; i < channel.uses.size(); ++i) {
    std::vector<std::uint32_t>& list = resources_[channel.uses[i].resource].channels;
    channel.places[i] = static_cast<std::uint32_t>(list.size());
    list.push_back(number);
  }
}

// The last of each list takes its place.
void Sharing::leave(std::uint32_t number) {
  Channel& channel = channels_[number];
  for (std::size_t i = 0; i < channel.uses.size(); ++i) {
    const std::uint32_t resource = channel.uses[i].resource;
    std::vector<std::uint32_t>& list = resources_[resource].channels;
    Channel& last = channels_[list.back()];
    for (std::size_t k = 0; k < last.uses.size(); ++k)
      if (last.uses[k].resource == resource) last.places[k] = channel.places[i];
    list[channel.places[i]] = list.back();
    list.pop_back();
  }
}

double Sharing::servedBy(const Channel& channel, Time now) const {
  return channel.served + channel.rate * nsOf(now - channel.since);
}

void Sharing::begin(Channel& channel, std::uint64_t queue, const Waiting& what, double served) {
  channel.endings.push({served + what.amount, what.cookie, queue});
}

void Sharing::startInQueue(std::uint32_t number, std::uint64_t queue, double amount,
                           std::uint64_t cookie, Time now) {
  Channel& channel = channels_[number];
  for (const Use& use : channel.uses) resources_[use.resource].carried += amount * use.weight;
  const auto [waiting, isFirst] = channel.queues.try_emplace(queue);
  if (!isFirst) {
    waiting->second.push({amount, cookie});
    return;
  }
  if (channel.endings.empty()) {
    channel.served = channel.rate = 0;
    channel.since = now;
    enter(number);
  }
  begin(channel, queue, {amount, cookie}, servedBy(channel, now));
  mark(channel);
}

// All channels and resources that share with a changed one, or with one that does.
void Sharing::findReach() {
  metResources_.clear();
  metChannels_.clear();
  for (const std::uint32_t r : changed_) {
    resources_[r].isChanged = false;
    resources_[r].isMet = true;
    metResources_.push_back(r);
  }
  changed_.clear();
  for (std::size_t next = 0; next < metResources_.size(); ++next) {
    for (const std::uint32_t c : resources_[metResources_[next]].channels) {
      Channel& channel = channels_[c];
      if (std::exchange(channel.isMet, true)) continue;
      channel.isFixed = false;
      metChannels_.push_back(c);
      for (const Use& use : channel.uses)
        if (!std::exchange(resources_[use.resource].isMet, true))
          metResources_.push_back(use.resource);
    }
  }
}

void Sharing::settle(Time now) {
  if (changed_.empty()) return;
  ++fillings_;
  findReach();
  for (const std::uint32_t r : metResources_) {
    resources_[r].left = resources_[r].rate;
    resources_[r].weight = 0;
    resources_[r].isMet = false;
  }
  for (const std::uint32_t c : metChannels_) {
    channels_[c].isMet = false;
    for (const Use& use : channels_[c].uses)
      resources_[use.resource].weight += channels_[c].count() * use.weight;
  }
  fill(now);
}

// The rates of all rise together. Where a resource is full, those that use it stay where they are.
void Sharing::fill(Time now) {
  struct Level {
    double at = 0;
    std::uint32_t resource = 0;
    bool operator>(const Level& other) const {
      return at != other.at ? at > other.at : resource > other.resource;
    }
  };
  const auto levelOf = [&](std::uint32_t r) {
    return rounded(resources_[r].left / resources_[r].weight);
  };
  std::priority_queue<Level, std::vector<Level>, std::greater<>> levels;
  for (const std::uint32_t r : metResources_)
    if (resources_[r].weight > kNothing) levels.push({levelOf(r), r});
  while (!levels.empty()) {
    const Level lowest = levels.top();
    levels.pop();
    const Resource& full = resources_[lowest.resource];
    if (full.weight <= kNothing) continue;
    const double level = levelOf(lowest.resource);
    if (level > lowest.at) {  // others have stopped meanwhile
      levels.push({level, lowest.resource});
      continue;
    }
    for (const std::uint32_t c : full.channels)
      if (!channels_[c].isFixed) fix(c, lowest.at, now);
  }
}

void Sharing::fix(std::uint32_t number, double rate, Time now) {
  Channel& channel = channels_[number];
  channel.isFixed = true;
  for (const Use& use : channel.uses) {
    const double weight = channel.count() * use.weight;
    resources_[use.resource].left = std::max(0.0, resources_[use.resource].left - weight * rate);
    resources_[use.resource].weight -= weight;
  }
  channel.served = servedBy(channel, now);
  channel.since = now;
  channel.rate = rate;
  schedule(number);
}

void Sharing::schedule(std::uint32_t number) {
  Channel& channel = channels_[number];
  ++channel.version;
  const double left = std::max(0.0, channel.endings.top().served - channel.served);
  constexpr double kRounding = 1e-6;  // of a picosecond
  const auto picoseconds = static_cast<Time>(std::ceil(left / channel.rate * 1e3 - kRounding));
  ends_.push({channel.since + std::max<Time>(picoseconds, 0), number, channel.version});
}

Time Sharing::nextEnd() {
  while (!ends_.empty() && ends_.top().version != channels_[ends_.top().channel].version)
    ends_.pop();
  return ends_.empty() ? kNever : ends_.top().at;
}

std::vector<std::uint64_t> Sharing::finish(Time now) {
  std::vector<std::uint64_t> ended;
  while (nextEnd() <= now) {
    const std::uint32_t number = ends_.top().channel;
    ends_.pop();
    Channel& channel = channels_[number];
    ++channel.version;
    const double served = servedBy(channel, now);
    const double due = served + std::max(channel.rate * 1e-3, served * 1e-12);
    while (!channel.endings.empty() && channel.endings.top().served <= due) {
      const Ending one = channel.endings.top();
      channel.endings.pop();
      ended.push_back(one.cookie);
      const auto queue = channel.queues.find(one.queue);
      if (queue->second.empty()) {
        channel.queues.erase(queue);
        continue;
      }
      begin(channel, one.queue, queue->second.front(), one.served);
      queue->second.pop();
    }
    if (channel.endings.empty()) leave(number);
    mark(channel);
  }
  return ended;
}

}  // namespace weft::sim
