// SPDX-License-Identifier: Apache-2.0
#include "reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

namespace weft::testing {
namespace {

bool isSigned(weftDataType_t t) { return t != weftUint8 && t != weftUint32 && t != weftUint64; }
bool isFloat(weftDataType_t t) {
  return t == weftHalf || t == weftBfloat16 || t == weftFloat || t == weftDouble;
}

// Whole numbers below 2048 are exact in both 16-bit formats' fields used here.
std::uint16_t halfBits(float value) {
  if (value == 0) return 0;
  int exponent = 0;
  const float fraction = std::frexp(std::fabs(value), &exponent);  // [0.5, 1)
  const int mantissa = static_cast<int>(std::lround((fraction * 2 - 1) * 1024));
  const int sign = value < 0 ? 1 << 15 : 0;
  return static_cast<std::uint16_t>(sign | (exponent + 14) << 10 | mantissa);
}
float fromHalf(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                   : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  return bits >> 15 ? -size : size;
}

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}
template <class T>
T get(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

std::size_t sum(const std::vector<std::size_t>& counts, int end) {
  std::size_t total = 0;
  for (int r = 0; r < end; ++r) total += counts[static_cast<std::size_t>(r)];
  return total;
}
std::size_t blockAt(const Case& c, int r) {
  return c.displs.empty() ? sum(c.counts, r) : c.displs[static_cast<std::size_t>(r)];
}
std::size_t extentOf(const Case& c) {
  std::size_t extent = 0;
  for (int r = 0; r < c.ranks; ++r)
    extent = std::max(extent, blockAt(c, r) + c.counts[static_cast<std::size_t>(r)]);
  return extent;
}

// From the rank-th on, and around.
std::vector<std::size_t> turned(const std::vector<std::size_t>& all, int rank) {
  std::vector<std::size_t> these = all;
  if (!all.empty()) std::rotate(these.begin(), these.begin() + rank, these.end());
  return these;
}
// Where AlltoAllV has on one rank the block for, or from, another.
std::size_t exchangedAt(const Case& c, int rank, int other) {
  if (!c.displs.empty()) return c.displsOf(rank)[static_cast<std::size_t>(other)];
  return sum(c.countsOf(rank), other);
}

double combine(weftRedOp_t op, double a, double b) {
  switch (op) {
    case weftProd:
      return a * b;
    case weftMax:
      return std::max(a, b);
    case weftMin:
      return std::min(a, b);
    case weftBand:
      return static_cast<double>(static_cast<std::int64_t>(a) & static_cast<std::int64_t>(b));
    case weftBor:
      return static_cast<double>(static_cast<std::int64_t>(a) | static_cast<std::int64_t>(b));
    case weftBxor:
      return static_cast<double>(static_cast<std::int64_t>(a) ^ static_cast<std::int64_t>(b));
    default:
      return a + b;
  }
}

double reducedAt(const Case& c, std::size_t i) {
  const weftRedOp_t op = c.preMul ? weftSum : c.op;
  const auto term = [&](int r) { return inputAt(c, r, i) * (c.preMul ? scalarOf(r) : 1); };
  double all = term(0);
  for (int r = 1; r < c.ranks; ++r) all = combine(op, all, term(r));
  if (op != weftAvg) return all;
  return isFloat(c.type) ? all / c.ranks : std::trunc(all / c.ranks);
}

std::optional<double> gatheredAt(const Case& c, std::size_t i) {
  for (int b = 0; b < c.ranks; ++b) {
    const std::size_t from = blockAt(c, b);
    if (i >= from && i < from + c.counts[static_cast<std::size_t>(b)])
      return inputAt(c, b, i - from);
  }
  return std::nullopt;
}

std::optional<double> exchangedValue(const Case& c, int r, std::size_t i) {
  const std::vector<std::size_t> counts = c.countsOf(r);
  for (int s = 0; s < c.ranks; ++s) {
    const std::size_t from = exchangedAt(c, r, s);
    if (i >= from && i < from + counts[static_cast<std::size_t>(s)])
      return inputAt(c, s, exchangedAt(c, s, r) + i - from);
  }
  return std::nullopt;
}

std::size_t randomCount(std::mt19937_64& random, std::size_t most) {
  switch (random() % 8) {
    case 0:
      return random() % 2;
    case 1:
      return std::min<std::size_t>(most, random() % 64);
    case 2:
    case 3: {  // around powers of two, where chunks and segments end
      const std::size_t power = std::size_t{1} << random() % 21;
      return std::min(most, power + random() % 3 - 1);
    }
    case 4:
      return random() % (most + 1);
    default:
      return std::min<std::size_t>(most, random() % 5000);
  }
}

void randomBlocks(std::mt19937_64& random, Case* c, std::size_t most) {
  for (int r = 0; r < c->ranks; ++r)
    c->counts.push_back(random() % 4 == 0 ? 0 : randomCount(random, most));
  if (random() % 2) return;
  // In reverse order, with gaps.
  c->displs.assign(c->counts.size(), 0);
  std::size_t at = random() % 3;
  for (std::size_t r = c->counts.size(); r-- > 0;) {
    c->displs[r] = at;
    at += c->counts[r] + random() % 3;
  }
}

bool isBitwise(weftRedOp_t op) { return op == weftBand || op == weftBor || op == weftBxor; }

std::string randomAlgorithm(std::mt19937_64& random, Form form) {
  if (random() % 2) return "";
  if (exchanges(form)) return "direct";
  std::vector<std::string> names;
  std::istringstream list(weftAlgorithms(nameOf(form)));
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  const char* protocols[] = {"", ":staged", ":staged-large", ":direct"};
  const std::string& name = names[random() % names.size()];
  if (name.starts_with("shared")) return name;
  return name + protocols[random() % std::size(protocols)];
}

}  // namespace

const char* nameOf(Form form) {
  static constexpr const char* kNames[] = {
      "all_reduce", "all_gather", "reduce_scatter", "broadcast",  "reduce",
      "gather",     "scatter",    "alltoall",       "all_gather", "reduce_scatter",
      "gather_v",   "scatter_v",  "alltoallv",      "barrier",    "shift"};
  return kNames[static_cast<int>(form)];
}

bool isUneven(Form form) {
  return form == Form::AllGatherV || form == Form::ReduceScatterV || exchanges(form);
}
bool exchanges(Form form) {
  return form == Form::GatherV || form == Form::ScatterV || form == Form::AlltoAllV;
}

std::vector<std::size_t> Case::countsOf(int rank) const { return turned(counts, rank); }
std::vector<std::size_t> Case::displsOf(int rank) const { return turned(displs, rank); }

bool Case::isRooted() const {
  return form == Form::Broadcast || form == Form::Reduce || form == Form::Gather ||
         form == Form::Scatter || form == Form::GatherV || form == Form::ScatterV;
}
bool Case::reduces() const {
  return form == Form::AllReduce || form == Form::ReduceScatter || form == Form::Reduce ||
         form == Form::ReduceScatterV;
}

weftRedOp_t opFor(weftDataType_t type, std::uint64_t number) {
  const auto op = static_cast<weftRedOp_t>(number % weftNumOps);
  return isBitwise(op) && isFloat(type) ? weftSum : op;
}

Case randomCase(std::mt19937_64& random, int ranks, std::size_t maxBytes) {
  Case c;
  c.ranks = ranks;
  c.form = static_cast<Form>(random() % kFormsWithData);
  c.type = static_cast<weftDataType_t>(random() % weftNumTypes);
  c.op = opFor(c.type, random());
  c.preMul = random() % 6 == 0;
  c.root = static_cast<int>(random() % static_cast<unsigned>(ranks));
  c.inPlace = random() % 2 != 0 && c.form != Form::AlltoAll && c.form != Form::AlltoAllV;
  const bool blocks =
      c.form != Form::AllReduce && c.form != Form::Broadcast && c.form != Form::Reduce;
  const std::size_t most =
      maxBytes / sizeOf(c.type) / (blocks ? static_cast<std::size_t>(ranks) : 1);
  if (isUneven(c.form))
    randomBlocks(random, &c, most);
  else
    c.count = randomCount(random, most);
  c.algorithm = randomAlgorithm(random, c.form);
  c.seed = random();
  return c;
}

std::string describe(const Case& c) {
  std::ostringstream line;
  line << nameOf(c.form) << " count " << c.count << " type " << c.type << " op " << c.op
       << (c.preMul ? " preMul" : "") << " root " << c.root << (c.inPlace ? " in place" : "")
       << " ranks " << c.ranks << " algorithm '" << c.algorithm << "' memory "
       << static_cast<int>(c.memory);
  for (const std::size_t n : c.counts) line << " c" << n;
  for (const std::size_t n : c.displs) line << " d" << n;
  return line.str();
}

std::size_t sizeOf(weftDataType_t type) {
  static constexpr std::size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return kSizes[type];
}

std::size_t sendCount(const Case& c, int r) {
  const std::size_t all = c.count * static_cast<std::size_t>(c.ranks);
  switch (c.form) {
    case Form::ReduceScatter:
    case Form::AlltoAll:
      return all;
    case Form::Broadcast:
      return r == c.root ? c.count : 0;
    case Form::Scatter:
      return r == c.root ? all : 0;
    case Form::AllGatherV:
    case Form::GatherV:
      return c.counts[static_cast<std::size_t>(r)];
    case Form::ReduceScatterV:
    case Form::AlltoAllV:
      return extentOf(c);
    case Form::ScatterV:
      return r == c.root ? extentOf(c) : 0;
    default:
      return c.count;
  }
}

std::size_t recvCount(const Case& c, int r) {
  const std::size_t all = c.count * static_cast<std::size_t>(c.ranks);
  switch (c.form) {
    case Form::AllGather:
    case Form::AlltoAll:
      return all;
    case Form::Reduce:
      return r == c.root ? c.count : 0;
    case Form::Gather:
      return r == c.root ? all : 0;
    case Form::AllGatherV:
    case Form::AlltoAllV:
      return extentOf(c);
    case Form::GatherV:
      return r == c.root ? extentOf(c) : 0;
    case Form::ReduceScatterV:
    case Form::ScatterV:
      return c.counts[static_cast<std::size_t>(r)];
    default:
      return c.count;
  }
}

std::size_t ownOffset(const Case& c, int r) {
  switch (c.form) {
    case Form::AllGather:
    case Form::ReduceScatter:
    case Form::Gather:
    case Form::Scatter:
      return static_cast<std::size_t>(r) * c.count;
    case Form::AllGatherV:
    case Form::ReduceScatterV:
    case Form::GatherV:
    case Form::ScatterV:
      return blockAt(c, r);
    default:
      return 0;
  }
}

double scalarOf(int r) { return r % 3 + 1; }

double inputAt(const Case& c, int r, std::size_t i) {
  const std::uint64_t mixed = c.seed + static_cast<std::uint64_t>(r) * 31 + i * 7 + (i >> 8) * 13;
  if (!c.reduces()) return static_cast<double>(mixed % 101);
  if (c.op == weftProd && !c.preMul) return r < 6 && mixed % 3 == 0 ? 2 : 1;
  if (isBitwise(c.op) && !c.preMul) return static_cast<double>(mixed % 128);
  const double value = static_cast<double>(mixed % 5) - (isSigned(c.type) ? 2 : 0);
  // A mean of floats must be exact as well.
  return c.op == weftAvg && !c.preMul && isFloat(c.type) ? value * c.ranks : value;
}

std::optional<double> expectedAt(const Case& c, int r, std::size_t i) {
  const std::size_t mine = static_cast<std::size_t>(r) * c.count;
  switch (c.form) {
    case Form::AllReduce:
    case Form::Reduce:
      return reducedAt(c, i);
    case Form::ReduceScatter:
      return reducedAt(c, mine + i);
    case Form::ReduceScatterV:
      return reducedAt(c, blockAt(c, r) + i);
    case Form::Broadcast:
      return inputAt(c, c.root, i);
    case Form::Shift:
      return inputAt(c, (r + c.ranks - c.root) % c.ranks, i);
    case Form::Scatter:
      return inputAt(c, c.root, mine + i);
    case Form::AlltoAll:
      return inputAt(c, static_cast<int>(i / c.count), mine + i % c.count);
    case Form::AllGatherV:
    case Form::GatherV:
      return gatheredAt(c, i);
    case Form::ScatterV:
      return inputAt(c, c.root, blockAt(c, r) + i);
    case Form::AlltoAllV:
      return exchangedValue(c, r, i);
    default:
      return inputAt(c, static_cast<int>(i / c.count), i % c.count);
  }
}

void store(std::byte* at, weftDataType_t type, double v) {
  switch (type) {
    case weftInt8:
      return put(at, static_cast<std::int8_t>(v));
    case weftUint8:
      return put(at, static_cast<std::uint8_t>(v));
    case weftInt32:
      return put(at, static_cast<std::int32_t>(v));
    case weftUint32:
      return put(at, static_cast<std::uint32_t>(v));
    case weftInt64:
      return put(at, static_cast<std::int64_t>(v));
    case weftUint64:
      return put(at, static_cast<std::uint64_t>(v));
    case weftHalf:
      return put(at, halfBits(static_cast<float>(v)));
    case weftFloat:
      return put(at, static_cast<float>(v));
    case weftDouble:
      return put(at, v);
    default: {
      const float single = static_cast<float>(v);
      std::uint32_t bits;
      std::memcpy(&bits, &single, sizeof(bits));
      return put(at, static_cast<std::uint16_t>(bits >> 16));
    }
  }
}

double load(const std::byte* at, weftDataType_t type) {
  switch (type) {
    case weftInt8:
      return get<std::int8_t>(at);
    case weftUint8:
      return get<std::uint8_t>(at);
    case weftInt32:
      return get<std::int32_t>(at);
    case weftUint32:
      return get<std::uint32_t>(at);
    case weftInt64:
      return static_cast<double>(get<std::int64_t>(at));
    case weftUint64:
      return static_cast<double>(get<std::uint64_t>(at));
    case weftHalf:
      return static_cast<double>(fromHalf(get<std::uint16_t>(at)));
    case weftFloat:
      return static_cast<double>(get<float>(at));
    case weftDouble:
      return get<double>(at);
    default: {
      const std::uint32_t bits = std::uint32_t{get<std::uint16_t>(at)} << 16;
      float single;
      std::memcpy(&single, &bits, sizeof(single));
      return static_cast<double>(single);
    }
  }
}

}  // namespace weft::testing
