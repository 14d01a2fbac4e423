// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/step/model.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "base/invalid.h"
#include "base/number.h"

namespace weft::simulator {
namespace {

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 48, kMostRepeats = 1 << 16;
constexpr std::size_t kMostParameters = std::size_t{1} << 17;
constexpr double kMostUs = 1e12;

// The words of a line, taken from the front.
class Words {
 public:
  explicit Words(const std::string& line) {
    std::istringstream in(line.substr(0, line.find('#')));
    words_.assign(std::istream_iterator<std::string>(in), {});
  }
  bool empty() const { return next_ == words_.size(); }
  std::string take() { return empty() ? std::string() : words_[next_++]; }
  bool takeIf(std::string_view word) {
    if (empty() || words_[next_] != word) return false;
    ++next_;
    return true;
  }
  Status takeWord(const char* what, std::string* word) {
    *word = take();
    return word->empty() ? invalid(what, " is expected") : Status();
  }
  template <class Number>
  Status takeNumber(const char* what, Number least, Number most, Number* number) {
    const std::string word = take();
    if (parseNumber(word, number) && *number >= least && *number <= most) return {};
    return invalid(fmt::format("'{}' is no {}: a number from {} to {}", word, what, least, most));
  }
  Status expect(std::string_view word) {
    return takeIf(word) ? Status() : invalid("'", word, "' is expected");
  }
  Status expectEnd() { return empty() ? Status() : invalid("'", words_[next_], "' is too much"); }

 private:
  std::vector<std::string> words_;
  std::size_t next_ = 0;
};

class ModelParser {
 public:
  explicit ModelParser(StepModel* model) : model_(*model) {}

  Status line(const std::string& whole) {
    Words words(whole);
    if (words.empty()) return {};
    const std::string keyword = words.take();
    if (!begun_) return header(keyword, &words);
    if (keyword == "name") return name(&words);
    if (keyword == "update") return update(&words);
    if (keyword == "layer") return layer(&words);
    if (keyword == "parameter") return parameter(&words);
    return invalid("'", keyword, "' is none of name, update, layer, parameter");
  }

  Status end() {
    if (!begun_) return invalid("it is empty; the first line is 'weft-model 1'");
    if (model_.layers.empty()) return invalid("it has no layer");
    WEFT_TRY(closeLayer());
    if (model_.forwardNs() + model_.backwardNs() <= 0) return invalid("its layers take no time");
    return checkElements();
  }

 private:
  Status checkElements() const {
    std::uint64_t all = 0;
    bool trains = false;
    for (const shard::ParameterSpec& p : model_.parameters) {
      if (p.isTied()) continue;
      all += p.elements;
      trains |= p.isTrained();
      if (all > kMostElements) return invalid("it has more than ", kMostElements, " elements");
    }
    return trains ? Status() : invalid("no parameter of it is to be trained");
  }

  Status header(const std::string& keyword, Words* words) {
    if (keyword != "weft-model")
      return invalid("'", keyword, "': the first line is 'weft-model 1'");
    begun_ = true;
    WEFT_TRY(words->expect("1"));
    return words->expectEnd();
  }

  Status name(Words* words) {
    WEFT_TRY(words->takeWord("a name", &model_.name));
    return words->expectEnd();
  }

  Status update(Words* words) {
    WEFT_TRY(words->expect("ns-per-element"));
    WEFT_TRY(words->takeNumber("time in ns", 0.0, 1e6, &model_.updateNsPerElement));
    return words->expectEnd();
  }

  Status layer(Words* words) {
    WEFT_TRY(closeLayer());
    StepLayer layer;
    layer.first = model_.parameters.size();
    repeats_ = 1;
    WEFT_TRY(words->takeWord("a name of the layer", &layer.name));
    WEFT_TRY(words->expect("forward-us"));
    WEFT_TRY(words->takeNumber("time in microseconds", 0.0, kMostUs, &layer.forwardNs));
    WEFT_TRY(words->expect("backward-us"));
    WEFT_TRY(words->takeNumber("time in microseconds", 0.0, kMostUs, &layer.backwardNs));
    layer.forwardNs *= 1e3;
    layer.backwardNs *= 1e3;
    if (words->takeIf("tensor-bytes"))
      WEFT_TRY(
          words->takeNumber("size in bytes", std::uint64_t{0}, kMostElements, &layer.tensorBytes));
    if (words->takeIf("repeat"))
      WEFT_TRY(words->takeNumber("count", std::uint64_t{1}, kMostRepeats, &repeats_));
    model_.layers.push_back(layer);
    return words->expectEnd();
  }

  Status parameter(Words* words) {
    if (model_.layers.empty()) return invalid("'parameter' stands before the first 'layer'");
    shard::ParameterSpec spec;
    std::string tie;
    WEFT_TRY(words->takeWord("a name of the parameter", &spec.name));
    WEFT_TRY(
        words->takeNumber("number of elements", std::uint64_t{1}, kMostElements, &spec.elements));
    spec.frozen = words->takeIf("frozen");
    spec.noDecay = words->takeIf("no-decay");
    if (words->takeIf("tied-to")) WEFT_TRY(this->tie(words->take(), &spec));
    WEFT_TRY(words->expectEnd());
    if (repeats_ > 1 && spec.isTied()) return invalid("a repeated parameter is tied to none");
    if (!names_.try_emplace(spec.name, static_cast<int>(model_.parameters.size())).second)
      return invalid("parameter '", spec.name, "' stands twice");
    if (model_.parameters.size() == kMostParameters) return invalid("it has too many parameters");
    model_.parameters.push_back(std::move(spec));
    ++model_.layers.back().count;
    return {};
  }

  Status tie(const std::string& other, shard::ParameterSpec* spec) const {
    const auto found = names_.find(other);
    if (found == names_.end()) return invalid("'", other, "' is no parameter above this line");
    const shard::ParameterSpec& first = model_.parameters[static_cast<std::size_t>(found->second)];
    if (first.elements != spec->elements || first.frozen != spec->frozen || first.isTied())
      return invalid("'", other, "' has another length, is tied, or frozen where this is not");
    spec->tiedTo = found->second;
    return {};
  }

  // Repeats the layer that ends here, and names its parameters after it.
  Status closeLayer() {
    if (model_.layers.empty() || repeats_ == 1) return {};
    const StepLayer pattern = model_.layers.back();
    const auto from = model_.parameters.begin() + static_cast<std::ptrdiff_t>(pattern.first);
    const std::vector<shard::ParameterSpec> specs(from, model_.parameters.end());
    if (pattern.first + specs.size() * repeats_ > kMostParameters)
      return invalid("it has too many parameters");
    model_.layers.pop_back();
    model_.parameters.erase(from, model_.parameters.end());
    for (const shard::ParameterSpec& spec : specs) names_.erase(spec.name);
    for (std::uint64_t i = 0; i < repeats_; ++i) {
      StepLayer layer = pattern;
      layer.name += fmt::format("{}", i);
      layer.first = model_.parameters.size();
      for (shard::ParameterSpec spec : specs) {
        spec.name = layer.name + "." + spec.name;
        if (!names_.try_emplace(spec.name, static_cast<int>(model_.parameters.size())).second)
          return invalid("parameter '", spec.name, "' stands twice");
        model_.parameters.push_back(std::move(spec));
      }
      model_.layers.push_back(std::move(layer));
    }
    repeats_ = 1;
    return {};
  }

  StepModel& model_;
  bool begun_ = false;
  std::uint64_t repeats_ = 1;
  std::map<std::string, int> names_;
};

}  // namespace

double StepModel::forwardNs() const {
  double ns = 0;
  for (const StepLayer& layer : layers) ns += layer.forwardNs;
  return ns;
}

double StepModel::backwardNs() const {
  double ns = 0;
  for (const StepLayer& layer : layers) ns += layer.backwardNs;
  return ns;
}

std::uint64_t StepModel::elements() const {
  std::uint64_t sum = 0;
  for (const shard::ParameterSpec& p : parameters) sum += p.isTied() ? 0 : p.elements;
  return sum;
}

Status parseModel(std::string_view lines, const std::string& file, StepModel* out) {
  StepModel model;
  ModelParser parser(&model);
  std::istringstream in{std::string(lines)};
  std::size_t number = 0;
  Status status;
  for (std::string line; status.ok() && std::getline(in, line); ++number)
    status = parser.line(line);
  if (status.ok()) status = parser.end();
  if (!status.ok()) return invalid(file, ":", number, ": ", status.text());
  *out = std::move(model);
  return {};
}

Status readModel(const std::string& file, StepModel* model) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  if (in) content << in.rdbuf();
  if (!in) return invalid("cannot read the model file ", file, ": ", std::strerror(errno));
  return parseModel(content.str(), file, model);
}

std::string textOf(const StepModel& model) {
  std::string text = "weft-model 1\n";
  if (!model.name.empty()) text += fmt::format("name {}\n", model.name);
  text += fmt::format("update ns-per-element {:.6g}\n", model.updateNsPerElement);
  for (const StepLayer& layer : model.layers) {
    text += fmt::format("layer {} forward-us {:.6g} backward-us {:.6g}", layer.name,
                        layer.forwardNs / 1e3, layer.backwardNs / 1e3);
    if (layer.tensorBytes > 0) text += fmt::format(" tensor-bytes {}", layer.tensorBytes);
    text += "\n";
    for (std::size_t i = layer.first; i < layer.first + layer.count; ++i) {
      const shard::ParameterSpec& p = model.parameters[i];
      text += fmt::format("parameter {} {}{}{}", p.name, p.elements, p.frozen ? " frozen" : "",
                          p.noDecay ? " no-decay" : "");
      if (p.isTied())
        text += " tied-to " + model.parameters[static_cast<std::size_t>(p.tiedTo)].name;
      text += "\n";
    }
  }
  return text;
}

}  // namespace weft::simulator
