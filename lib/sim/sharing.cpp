// SPDX-License-Identifier: Apache-2.0
#include "sim/sharing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace weft::sim {
namespace {

constexpr double kNothing = 1e-9;  // of a weight: rounding

// Of 27 bits: so many of them add up without an error that what is left of a resource does not depend
// on their order, nor on whether one stands for several.
double rounded(double rate) {
  constexpr std::uint64_t kOthers = (std::uint64_t{1} << 26) - 1;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(rate) & ~kOthers);
}

}  // namespace

Sharing::Sharing(std::vector<double> rates) : resources_(rates.size()) {
  for (std::size_t i = 0; i < rates.size(); ++i) resources_[i].rate = rates[i];
}

std::uint32_t Sharing::addChannel(std::span<const Use> uses) {
  channels_.emplace_back();
  endings_.emplace_back();
  metIn_.push_back(0);
  fixedIn_.push_back(0);
  const auto channel = static_cast<std::uint32_t>(channels_.size() - 1);
  setUses(channel, uses);
  return channel;
}

void Sharing::setUses(std::uint32_t number, std::span<const Use> uses) {
  Channel& channel = channels_[number];
  channel.uses = static_cast<std::uint32_t>(uses.size());
  if (channel.uses > channel.room) {  // more than ever before: behind those of all channels
    channel.firstUse = static_cast<std::uint32_t>(uses_.size());
    channel.room = channel.uses;
    uses_.resize(uses_.size() + uses.size());
    places_.resize(uses_.size());
  }
  std::ranges::copy(uses, usesOf(channel).begin());
}

void Sharing::mark(const Channel& channel) {
  for (const Use& use : usesOf(channel)) {
    if (std::exchange(resources_[use.resource].isChanged, true)) continue;
    changed_.push_back(use.resource);
  }
}

void Sharing::enter(std::uint32_t number) {
  const std::span<const Use> uses = usesOf(channels_[number]);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    std::vector<std::uint32_t>& list = resources_[uses[i].resource].channels;
    placesOf(channels_[number])[i] = static_cast<std::uint32_t>(list.size());
    list.push_back(number);
  }
}

// The last of each list takes its place.
void Sharing::leave(std::uint32_t number) {
  const std::span<const Use> uses = usesOf(channels_[number]);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const std::uint32_t resource = uses[i].resource, place = placesOf(channels_[number])[i];
    std::vector<std::uint32_t>& list = resources_[resource].channels;
    const std::uint32_t last = list.back();
    const std::span<const Use> theirs = usesOf(channels_[last]);
    for (std::size_t k = 0; k < theirs.size(); ++k)
      if (theirs[k].resource == resource) placesOf(channels_[last])[k] = place;
    list[place] = last;
    list.pop_back();
  }
}

double Sharing::servedBy(const Channel& channel, Time now) const {
  return channel.served + channel.rate * nsOf(now - channel.since);
}

void Sharing::begin(std::uint32_t number, const Ending& one) {
  std::vector<Ending>& endings = endings_[number];
  endings.push_back(one);
  std::ranges::push_heap(endings, std::greater());
  channels_[number].firstDone = endings.front().served;
  ++channels_[number].count;
}

// The first one, after which the next in its queue begins: its cookie.
std::uint64_t Sharing::end(std::uint32_t number) {
  Channel& channel = channels_[number];
  std::vector<Ending>& endings = endings_[number];
  std::ranges::pop_heap(endings, std::greater());
  const Ending one = endings.back();
  endings.pop_back();
  --channel.count;
  if (one.line != kNobody && lines_[one.line].next != kNobody) {
    begin(number, nextInLine(one));
  } else {
    closeLine(number, one);
    if (channel.count != 0) channel.firstDone = endings.front().served;
  }
  return one.cookie;
}

// kNobody: nothing of that queue is on its way.
std::uint32_t Sharing::findLine(std::uint32_t channel, std::uint64_t queue) const {
  if ((queue & kNoQueue) != 0) return kNobody;
  if (channels_[channel].isIndexed) {
    const auto known = lineOf_.find(queue);
    return known == lineOf_.end() ? kNobody : known->second;
  }
  const auto head = std::ranges::find(endings_[channel], queue, &Ending::queue);
  return head == endings_[channel].end() ? kNobody : head->line;
}

std::uint32_t Sharing::openLine(std::uint32_t number, std::uint64_t queue) {
  if ((queue & kNoQueue) != 0) return kNobody;
  if (freeLine_ == kNobody) {
    freeLine_ = static_cast<std::uint32_t>(lines_.size());
    lines_.emplace_back();
  }
  const std::uint32_t line = std::exchange(freeLine_, lines_[freeLine_].next);
  lines_[line] = {};
  Channel& channel = channels_[number];
  if (channel.count >= kFew && !std::exchange(channel.isIndexed, true))
    for (const Ending& one : endings_[number])
      if (one.line != kNobody) lineOf_.emplace(one.queue, one.line);
  if (channel.isIndexed) lineOf_.emplace(queue, line);
  return line;
}

void Sharing::closeLine(std::uint32_t number, const Ending& last) {
  if (last.line == kNobody) return;
  lines_[last.line].next = std::exchange(freeLine_, last.line);
  Channel& channel = channels_[number];
  if (channel.isIndexed) lineOf_.erase(last.queue);
  if (channel.count == 0) channel.isIndexed = false;
}

void Sharing::wait(Line* line, double amount, std::uint64_t cookie) {
  if (freeWaiting_ == kNobody) {
    freeWaiting_ = static_cast<std::uint32_t>(waiting_.size());
    waiting_.emplace_back();
  }
  const std::uint32_t number = std::exchange(freeWaiting_, waiting_[freeWaiting_].next);
  waiting_[number] = {amount, cookie, kNobody};
  if (line->next == kNobody)
    line->next = number;
  else
    waiting_[line->last].next = number;
  line->last = number;
}

Sharing::Ending Sharing::nextInLine(const Ending& before) {
  Line& line = lines_[before.line];
  const std::uint32_t number = line.next;
  const Waiting what = waiting_[number];
  waiting_[number].next = std::exchange(freeWaiting_, number);
  line.next = what.next;
  return {before.served + what.amount, what.cookie, before.queue, before.line};
}

void Sharing::startInQueue(std::uint32_t number, std::uint64_t queue, double amount,
                           std::uint64_t cookie, Time now) {
  Channel& channel = channels_[number];
  for (const Use& use : usesOf(channel)) resources_[use.resource].carried += amount * use.weight;
  if (const std::uint32_t line = findLine(number, queue); line != kNobody)
    return wait(&lines_[line], amount, cookie);
  if (channel.count == 0) {
    channel.served = channel.rate = 0;
    channel.since = now;
    enter(number);
  }
  begin(number, {servedBy(channel, now) + amount, cookie, queue, openLine(number, queue)});
  mark(channel);
}

void Sharing::settle(Time now) {
  if (changed_.empty() && later_.empty()) return;
  ++fillings_;
  for (const std::uint32_t r : changed_) {
    resources_[r].isChanged = false;
    if (resources_[r].metIn == fillings_) continue;
    findReach(r);
    fill(now);
  }
  for (const std::uint32_t r : later_) {
    if (resources_[r].metIn == fillings_) continue;
    for (const std::uint32_t c : resources_[r].channels)
      if (channels_[c].holder == r) consider(c);
    noteFirstEnds();
  }
  changed_.clear();
  later_.clear();
}

void Sharing::meet(std::uint32_t number) {
  Resource& resource = resources_[number];
  resource.metIn = fillings_;
  resource.left = resource.rate;
  resource.weight = 0;
  met_.push_back(number);
}

// All channels and resources that share with this one, or with one that does.
void Sharing::findReach(std::uint32_t resource) {
  const std::uint64_t filling = fillings_;
  met_.clear();
  meet(resource);
  for (std::size_t next = 0; next < met_.size(); ++next) {
    for (const std::uint32_t c : resources_[met_[next]].channels) {
      if (std::exchange(metIn_[c], filling) == filling) continue;
      const Channel& channel = channels_[c];
      for (const Use& use : usesOf(channel)) {
        if (resources_[use.resource].metIn != filling) meet(use.resource);
        resources_[use.resource].weight += channel.count * use.weight;
      }
    }
  }
}

// The rates of all rise together. Where a resource is full, those that use it stay where they are.
void Sharing::fill(Time now) {
  const auto levelOf = [&](std::uint32_t r) {
    return rounded(resources_[r].left / resources_[r].weight);
  };
  std::vector<Level>& levels = levels_;  // a heap
  const auto push = [&](const Level& level) {
    levels.push_back(level);
    std::ranges::push_heap(levels, std::greater());
  };
  for (const std::uint32_t r : met_)
    if (resources_[r].weight > kNothing) push({levelOf(r), r});
  while (!levels.empty()) {
    std::ranges::pop_heap(levels, std::greater());
    Level lowest = levels.back();
    levels.pop_back();
    if (resources_[lowest.resource].weight <= kNothing) continue;
    const double level = levelOf(lowest.resource);
    if (level > lowest.at) {  // others have stopped meanwhile
      lowest.at = level;
      if (!levels.empty() && lowest > levels.front()) {
        push(lowest);
        continue;
      }
    }
    stop(lowest.resource, lowest.at, now);
  }
}

// Of what a full resource holds.
void Sharing::stop(std::uint32_t holder, double rate, Time now) {
  for (const std::uint32_t c : resources_[holder].channels) {
    if (std::exchange(fixedIn_[c], fillings_) == fillings_) continue;
    fix(channels_[c], rate, holder, now);
    consider(c);
  }
  resources_[holder].weight = 0;
  noteFirstEnds();
}

void Sharing::fix(Channel& channel, double rate, std::uint32_t holder, Time now) {
  for (const Use& use : usesOf(channel)) {
    if (use.resource == holder) continue;  // full, and looked at no more
    const double weight = channel.count * use.weight;
    resources_[use.resource].left = std::max(0.0, resources_[use.resource].left - weight * rate);
    resources_[use.resource].weight -= weight;
  }
  channel.served = servedBy(channel, now);
  channel.since = now;
  channel.rate = rate;
  channel.holder = holder;
  ++channel.version;
  channel.isNoted = false;
}

Time Sharing::endOf(const Channel& channel) {
  constexpr double kRounding = 1e-6;  // of a picosecond
  const double left = std::max(0.0, channel.firstDone - channel.served);
  const auto picoseconds = static_cast<Time>(std::ceil(left / channel.rate * 1e3 - kRounding));
  return channel.since + std::max<Time>(picoseconds, 0);
}

// What one resource holds has the same rate since the same time. When one ends, it changes what the others
// have, or is looked at again: later ends need not be known yet.
void Sharing::consider(std::uint32_t number) {
  const Channel& channel = channels_[number];
  const double left = channel.firstDone - channel.served;
  const double alike = 2e-3 * channel.rate;  // as they may be of the same picosecond
  if (!firsts_.empty() && left > least_ + alike) return;
  if (!firsts_.empty() && left < least_ - alike) firsts_.clear();
  least_ = firsts_.empty() ? left : std::min(left, least_);
  firsts_.push_back(number);
}

void Sharing::noteFirstEnds() {
  Time end = kNever;
  for (const std::uint32_t c : firsts_) end = std::min(end, endOf(channels_[c]));
  for (const std::uint32_t c : firsts_)
    if (!channels_[c].isNoted && endOf(channels_[c]) == end) {
      channels_[c].isNoted = true;
      ends_.add(end, {c, channels_[c].version});
    }
  firsts_.clear();
}

Time Sharing::nextEnd() {
  while (!ends_.empty() && isOutOfDate(ends_.first())) ends_.take();
  return ends_.next();
}

std::vector<std::uint64_t> Sharing::finish(Time now) {
  std::vector<std::uint64_t> ended;
  while (nextEnd() <= now) finish(ends_.take().channel, now, &ended);
  return ended;
}

void Sharing::finish(std::uint32_t number, Time now, std::vector<std::uint64_t>* ended) {
  Channel& channel = channels_[number];
  const std::uint32_t before = channel.count;
  const double served = servedBy(channel, now);
  const double due = served + std::max(channel.rate * 1e-3, served * 1e-12);
  while (channel.count != 0 && channel.firstDone <= due) ended->push_back(end(number));
  ++channel.version;
  channel.isNoted = false;
  if (channel.count == before) {  // nobody else can tell
    later_.push_back(channel.holder);
    return;
  }
  if (channel.count == 0) leave(number);
  mark(channel);
}

}  // namespace weft::sim
