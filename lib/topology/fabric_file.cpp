// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric_file.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "base/invalid.h"
#include "base/knobs.h"
#include "base/number.h"
#include "base/text.h"

namespace weft::topology {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{16} << 20;

// One line's words, taken from the front.
class Words {
 public:
  explicit Words(const std::string& line) {
    std::istringstream in(line);
    words_.assign(std::istream_iterator<std::string>(in), {});
  }
  bool empty() const { return next_ == words_.size(); }
  std::string_view peek() const { return empty() ? std::string_view() : words_[next_]; }
  std::string take() { return empty() ? std::string() : words_[next_++]; }
  Status expect(std::string_view word) {
    if (peek() != word)
      return invalid("'", word, "' is expected", empty() ? "" : text(", not '", peek(), "'"));
    ++next_;
    return {};
  }
  Status expectEnd() const { return empty() ? Status() : invalid("'", peek(), "' is too much"); }

 private:
  std::vector<std::string> words_;
  std::size_t next_ = 0;
};

Status takeSpeed(Words* words, LinkSpeed* speed) {
  WEFT_TRY(words->expect("gbit"));
  const std::string gbit = words->take();
  if (!parseNumber(gbit, &speed->gbit) || !std::isfinite(speed->gbit) || speed->gbit <= 0)
    return invalid("'", gbit, "' is no rate in Gbit/s");
  WEFT_TRY(words->expect("us"));
  const std::string us = words->take();
  if (!parseNumber(us, &speed->us) || !std::isfinite(speed->us) || speed->us < 0)
    return invalid("'", us, "' is no latency in microseconds");
  return {};
}

// "0,2,4-6" or "all", of a node of `most` ranks at most.
Status parseRanks(std::string_view list, std::uint32_t most, std::vector<std::uint32_t>* ranks) {
  std::set<std::uint32_t> found;
  std::string all = text("0-", most - 1);
  if (list == "all") list = all;
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view part = list.substr(0, comma);
    const std::size_t dash = part.find('-');
    std::uint32_t first = 0, last = 0;
    const bool known = parseNumber(part.substr(0, dash), &first) &&
                       parseNumber(dash == part.npos ? part : part.substr(dash + 1), &last);
    if (!known || last < first) return invalid("'", part, "' names no ranks");
    if (last >= most)
      return invalid("rank ", last, " is on no node: the largest has ", most, " ranks");
    for (std::uint32_t r = first; r <= last; ++r)
      if (!found.insert(r).second) return invalid("rank ", r, " stands twice");
    if (comma == list.npos) break;
    list.remove_prefix(comma + 1);
  }
  ranks->assign(found.begin(), found.end());
  return {};
}

class Parser {
 public:
  explicit Parser(Fabric* fabric) : fabric_(*fabric) {}

  Status line(const std::string& whole) {
    Words words(whole.substr(0, whole.find('#')));
    if (words.empty()) return {};
    const std::string keyword = words.take();
    if (!begun_) return header(keyword, &words);
    if (keyword == "name") return name(&words);
    if (keyword == "nodes") return nodes(&words);
    if (keyword != "memory" && keyword != "mesh" && keyword != "rail")
      return invalid("'", keyword, "' is none of name, nodes, memory, mesh, rail");
    if (fabric_.nodes.empty()) return invalid("'", keyword, "' stands before 'nodes'");
    return keyword == "memory" ? memory(&words) : keyword == "mesh" ? mesh(&words) : rail(&words);
  }

  Status end() const {
    if (!begun_) return invalid("it is empty; the first line is 'weft-topology 1'");
    if (fabric_.nodes.empty()) return invalid("it has no 'nodes'");
    if (fabric_.nodes.size() == 1) return {};
    for (std::uint32_t r = 0; r < fabric_.mostRanksOfANode(); ++r)
      if (!fabric_.rails.empty() && !fabric_.outside(r))
        return invalid("rank ", r, " of a node is on no rail");
    return {};
  }

 private:
  Status header(const std::string& keyword, Words* words) {
    if (keyword != "weft-topology")
      return invalid("'", keyword, "': the first line is 'weft-topology 1'");
    const std::string version = words->take();
    if (version != "1")
      return invalid("version '", version, "' of the format is not known; this weft reads 1");
    begun_ = true;
    return words->expectEnd();
  }

  Status name(Words* words) {
    if (!fabric_.name.empty()) return invalid("a second name");
    while (!words->empty()) fabric_.name += text(fabric_.name.empty() ? "" : " ", words->take());
    return fabric_.name.empty() ? invalid("a name is expected") : Status();
  }

  Status nodes(Words* words) {
    if (fabric_.memory || !fabric_.mesh.empty() || !fabric_.rails.empty())
      return invalid("'nodes' stands after what joins them");
    std::vector<std::string> names;
    while (!words->empty() && words->peek() != "ranks") names.push_back(words->take());
    WEFT_TRY(words->expect("ranks"));
    const std::string count = words->take();
    std::uint32_t ranks = 0;
    if (!parseNumber(count, &ranks) || ranks < 1 || ranks > kMostRanksOfANode)
      return invalid("'", count, "' is no number of ranks from 1 to ", kMostRanksOfANode);
    WEFT_TRY(words->expectEnd());
    WEFT_TRY(expandCount(&names));
    for (const std::string& node : names) WEFT_TRY(add({node, ranks}));
    return {};
  }

  // "4" stands for four nodes without names of their own.
  Status expandCount(std::vector<std::string>* names) const {
    if (names->empty()) return invalid("names of nodes or their number are expected");
    std::uint32_t count = 0;
    if (names->size() != 1 || !parseNumber(names->front(), &count)) return {};
    if (count < 1 || count > kMostFabricNodes)
      return invalid(count, " nodes are not from 1 to ", kMostFabricNodes);
    names->clear();
    for (std::size_t i = 0; i < count; ++i)
      names->push_back(text("node", fabric_.nodes.size() + i));
    return {};
  }

  Status add(const FabricNode& node) {
    if (!names_.insert(node.name).second) return invalid("node '", node.name, "' stands twice");
    if (fabric_.nodes.size() == kMostFabricNodes)
      return invalid("more than ", kMostFabricNodes, " nodes");
    fabric_.nodes.push_back(node);
    mostRanks_ = std::max(mostRanks_, node.ranks);
    return {};
  }

  Status memory(Words* words) {
    if (fabric_.memory) return invalid("a second 'memory'");
    WEFT_TRY(takeSpeed(words, &fabric_.memory.emplace()));
    return words->expectEnd();
  }

  Status mesh(Words* words) {
    const std::string pair = words->take();
    std::vector<std::uint32_t> ranks;
    const std::size_t dash = pair.find('-');
    std::uint32_t a = 0, b = 0;
    if (pair == "all") {
      WEFT_TRY(parseRanks("all", mostRanks_, &ranks));
    } else if (dash == pair.npos || !parseNumber(std::string_view(pair).substr(0, dash), &a) ||
               !parseNumber(std::string_view(pair).substr(dash + 1), &b) || a == b) {
      return invalid("'", pair, "' is no pair of ranks, such as 0-1, and not 'all'");
    } else {
      WEFT_TRY(parseRanks(text(std::min(a, b), ",", std::max(a, b)), mostRanks_, &ranks));
    }
    LinkSpeed speed;
    WEFT_TRY(takeSpeed(words, &speed));
    WEFT_TRY(words->expectEnd());
    for (std::size_t i = 0; i < ranks.size(); ++i)
      for (std::size_t j = i + 1; j < ranks.size(); ++j)
        WEFT_TRY(add(MeshLink{ranks[i], ranks[j], speed}));
    return {};
  }

  Status add(const MeshLink& link) {
    if (!pairs_.insert({link.a, link.b}).second)
      return invalid("ranks ", link.a, " and ", link.b, " are joined twice");
    fabric_.mesh.push_back(link);
    return {};
  }

  Status rail(Words* words) {
    if (fabric_.rails.size() == kMostRails) return invalid("more than ", kMostRails, " rails");
    Rail rail;
    rail.name = words->take();
    if (rail.name.empty() || rail.name == "gbit") return invalid("a name for the rail is expected");
    for (const Rail& other : fabric_.rails)
      if (other.name == rail.name) return invalid("rail '", rail.name, "' stands twice");
    WEFT_TRY(takeSpeed(words, &rail.speed));
    WEFT_TRY(words->expect("ranks"));
    WEFT_TRY(parseRanks(words->take(), mostRanks_, &rail.ranks));
    WEFT_TRY(words->expectEnd());
    fabric_.rails.push_back(std::move(rail));
    return {};
  }

  Fabric& fabric_;
  bool begun_ = false;
  std::uint32_t mostRanks_ = 0;  // of a node
  std::set<std::string> names_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs_;
};

}  // namespace

Status parseFabric(std::string_view lines, const std::string& file, Fabric* out) {
  Fabric fabric;
  Parser parser(&fabric);
  std::istringstream in{std::string(lines)};
  std::size_t number = 0;
  Status status;
  for (std::string line; status.ok() && std::getline(in, line); ++number)
    status = parser.line(line);
  if (status.ok()) status = parser.end();
  if (!status.ok()) return invalid(file, ":", number, ": ", status.text());
  *out = std::move(fabric);
  return {};
}

Status readFabric(const std::string& file, Fabric* out) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return invalid("cannot read the topology file ", file, ": ", std::strerror(errno));
  std::string content(kMostFileBytes + 1, '\0');
  in.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (in.bad() || (in.fail() && !in.eof()))
    return invalid("cannot read the topology file ", file, "; fix: name a file");
  content.resize(static_cast<std::size_t>(in.gcount()));
  if (content.size() > kMostFileBytes)
    return invalid(file, " is larger than ", kMostFileBytes >> 20, " MiB");
  return parseFabric(content, file, out);
}

Status fabricFromKnob(std::optional<Fabric>* out) {
  out->reset();
  if (!isSet(Knob::TopoFile)) return {};
  std::string file;
  WEFT_TRY(readText(Knob::TopoFile, &file));
  return readFabric(file, &out->emplace());
}

}  // namespace weft::topology
