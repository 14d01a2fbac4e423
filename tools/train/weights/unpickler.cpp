// SPDX-License-Identifier: Apache-2.0
#include "tools/train/weights/unpickler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <set>
#include <string_view>
#include <unordered_map>

#include "tools/train/weights/stored_tensor.h"

namespace weft::train {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMakeDict = "collections.OrderedDict",
                           kMakeTensor = "torch._utils._rebuild_tensor_v2",
                           kMakeParameter = "torch._utils._rebuild_parameter",
                           kMakeSize = "torch.Size";
// All names that a state dict has.
constexpr std::array kNames{
    kMakeDict,
    kMakeTensor,
    kMakeParameter,
    kMakeSize,
    "torch.DoubleStorage"sv,
    "torch.FloatStorage"sv,
    "torch.HalfStorage"sv,
    "torch.BFloat16Storage"sv,
    "torch.LongStorage"sv,
    "torch.IntStorage"sv,
    "torch.ShortStorage"sv,
    "torch.CharStorage"sv,
    "torch.ByteStorage"sv,
    "torch.BoolStorage"sv,
};
constexpr std::string_view kStoragePrefix = "torch.";
constexpr size_t kMostDimensions = 64;  // torch's own limit

// Values live until the end of the reading, and refer to each other in any way, cycles included.
struct Value {
  enum class Kind { kNone, kNumber, kFloat, kText, kTuple, kList, kDict, kName, kStorage, kTensor };
  Kind kind = Kind::kNone;
  int64_t number = 0;
  std::string text;  // of a text or a name
  std::vector<const Value*>
      items;  // a dict's keys and values in turn; a tensor's storage, offset, shape and strides
};
using Kind = Value::Kind;

class Unpickler {
 public:
  Unpickler(std::span<const uint8_t> pickle, const std::string& file, uint64_t at)
      : pickle_(pickle), file_(file), start_(at) {}

  const Value& read() {
    for (;;) {
      opcodeAt_ = next_;
      const uint8_t opcode = take(1)[0];
      if (opcode == '.') return *pop();
      if (!pushes(opcode) && !remembers(opcode) && !builds(opcode))
        wrong(
            fmt::format("opcode 0x{:02x}, which no state dict of torch.save's protocol 2 has; "
                        "nothing of the pickle was executed",
                        opcode));
    }
  }

  [[noreturn]] void wrong(const std::string& why) const { refuse(file_, start_ + opcodeAt_, why); }

 private:
  std::span<const uint8_t> take(size_t bytes) {
    if (bytes > pickle_.size() - next_) {
      opcodeAt_ = pickle_.size();
      wrong("the pickle ends early; is the file truncated?");
    }
    const auto taken = pickle_.subspan(next_, bytes);
    next_ += bytes;
    return taken;
  }

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::string text(size_t bytes) {
    const auto taken = take(bytes);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

  std::string line() {
    const auto rest = pickle_.subspan(next_);
    const auto end = std::ranges::find(rest, '\n');
    std::string taken = text(static_cast<size_t>(end - rest.begin()));
    take(1);
    return taken;
  }

  Value* make(Kind kind, int64_t value = 0, std::string words = {}) {
    values_.push_back({kind, value, std::move(words), {}});
    return &values_.back();
  }
  void push(Value* value) { stack_.push_back(value); }

  Value* pop() {
    if (stack_.empty() || stack_.back() == nullptr) wrong("the pickle takes what is not there");
    Value* const value = stack_.back();
    stack_.pop_back();
    return value;
  }

  Value* pop(Kind kind, const char* what) {
    Value* const value = pop();
    if (value->kind != kind) wrong(fmt::format("here should be {}", what));
    return value;
  }

  // What is above the last mark, in order.
  std::vector<const Value*> popToMark() {
    const auto mark = std::find(stack_.rbegin(), stack_.rend(), nullptr);
    if (mark == stack_.rend()) wrong("the pickle takes what is not there");
    std::vector<const Value*> items(mark.base(), stack_.end());
    stack_.erase(mark.base() - 1, stack_.end());
    return items;
  }

  void pushTuple(std::vector<const Value*> items) {
    push(make(Kind::kTuple));
    stack_.back()->items = std::move(items);
  }

  // Opcodes that push a value, or a mark. False: it is none of them; so for those below.
  bool pushes(uint8_t opcode) {
    switch (opcode) {
      case '(':
        push(nullptr);
        return true;
      case 'N':
        push(make(Kind::kNone));
        return true;
      case 0x88:
      case 0x89:
        push(make(Kind::kNumber, opcode == 0x88));
        return true;
      case 'K':
        push(make(Kind::kNumber, number<uint8_t>()));
        return true;
      case 'M':
        push(make(Kind::kNumber, number<uint16_t>()));
        return true;
      case 'J':
        push(make(Kind::kNumber, number<int32_t>()));
        return true;
      case 0x8a:
        pushLong();
        return true;
      case 'G':
        take(sizeof(double));
        push(make(Kind::kFloat));
        return true;
      case 'X':
        push(make(Kind::kText, 0, text(number<uint32_t>())));
        return true;
      case 'c':
        pushName();
        return true;
      default:
        return false;
    }
  }

  void pushLong() {
    const auto bytes = take(number<uint8_t>());
    if (bytes.size() > sizeof(int64_t)) wrong("a number of more than 64 bits");
    uint64_t value = !bytes.empty() && bytes.back() > 127 ? ~uint64_t{0} : 0;
    for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
    push(make(Kind::kNumber, static_cast<int64_t>(value)));
  }

  void pushName() {
    std::string name = line() + ".";
    name += line();
    if (std::ranges::find(kNames, name) == kNames.end())
      wrong(
          fmt::format("the pickle names {}, which no state dict of tensors has; it was not called",
                      name.substr(0, 100)));
    push(make(Kind::kName, 0, std::move(name)));
  }

  bool remembers(uint8_t opcode) {
    switch (opcode) {
      case 0x80: {
        const uint8_t protocol = number<uint8_t>();
        if (protocol < 2 || protocol > 3)
          wrong(fmt::format("pickle protocol {}; torch.save writes 2 unless it is told otherwise",
                            protocol));
        return true;
      }
      case 'q':
        remember(number<uint8_t>());
        return true;
      case 'r':
        remember(number<uint32_t>());
        return true;
      case 'h':
        recall(number<uint8_t>());
        return true;
      case 'j':
        recall(number<uint32_t>());
        return true;
      default:
        return false;
    }
  }

  void remember(uint32_t place) {
    Value* const value = pop();
    memo_[place] = value;
    push(value);
  }

  void recall(uint32_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) wrong("the pickle recalls what it has not kept");
    push(found->second);
  }

  bool builds(uint8_t opcode) {
    switch (opcode) {
      case ')':
        pushTuple({});
        return true;
      case 't':
        pushTuple(popToMark());
        return true;
      case 0x85:
      case 0x86:
      case 0x87:
        pushTuple(popSome(opcode - size_t{0x84}));
        return true;
      case ']':
        push(make(Kind::kList));
        return true;
      case '}':
        push(make(Kind::kDict));
        return true;
      case 'a':
        add(Kind::kList, popSome(1));
        return true;
      case 'e':
        add(Kind::kList, popToMark());
        return true;
      case 's':
        add(Kind::kDict, popSome(2));
        return true;
      case 'u':
        add(Kind::kDict, popToMark());
        return true;
      case 'b':  // attributes of a dict, such as the versions of modules: of no use here
        pop();
        push(pop(Kind::kDict, "a dict that is given attributes"));
        return true;
      case 'Q':
        pushStorage();
        return true;
      case 'R':
        reduce();
        return true;
      default:
        return false;
    }
  }

  std::vector<const Value*> popSome(size_t count) {
    std::vector<const Value*> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }

  void add(Kind kind, const std::vector<const Value*>& items) {
    Value* const target = pop(kind, kind == Kind::kList ? "a list" : "a dict");
    if (kind == Kind::kDict && items.size() % 2 != 0) wrong("a dict's key has no value");
    target->items.insert(target->items.end(), items.begin(), items.end());
    push(target);
  }

  // ('storage', its type, its entry's name, the device, elements)
  void pushStorage() {
    Value* const id = pop(Kind::kTuple, "a storage's tuple");
    const auto& items = id->items;
    const bool known = items.size() == 5 && items[0]->kind == Kind::kText &&
                       items[0]->text == "storage" && items[1]->kind == Kind::kName &&
                       items[1]->text.ends_with("Storage") && items[2]->kind == Kind::kText &&
                       items[4]->kind == Kind::kNumber && items[4]->number >= 0;
    if (!known) wrong("this is no storage of a tensor");
    push(make(Kind::kStorage));
    stack_.back()->items = items;
  }

  // Makes what a call of one of the known names would.
  void reduce() {
    Value* const arguments = pop(Kind::kTuple, "a call's arguments");
    const std::string name = pop(Kind::kName, "the name that is called")->text;
    const auto& items = arguments->items;
    if (name == kMakeDict && items.empty()) {
      push(make(Kind::kDict));
    } else if (name == kMakeSize && items.size() == 1 && items[0]->kind == Kind::kTuple) {
      pushTuple(items[0]->items);
    } else if (name == kMakeParameter && !items.empty() && items[0]->kind == Kind::kTensor) {
      push(make(Kind::kTensor));
      stack_.back()->items = items[0]->items;
    } else if (name == kMakeTensor && isTensor(items)) {
      push(make(Kind::kTensor));
      stack_.back()->items.assign(items.begin(), items.begin() + 4);
    } else {
      wrong(fmt::format("a call of {} with other arguments than torch.save's", name));
    }
  }

  static bool areNumbers(const Value& tuple) {
    const auto isLength = [](const Value* v) { return v->kind == Kind::kNumber && v->number >= 0; };
    return tuple.kind == Kind::kTuple && tuple.items.size() <= kMostDimensions &&
           std::ranges::all_of(tuple.items, isLength);
  }

  static bool isTensor(const std::vector<const Value*>& items) {
    return items.size() >= 6 && items[0]->kind == Kind::kStorage &&
           items[1]->kind == Kind::kNumber && items[1]->number >= 0 && areNumbers(*items[2]) &&
           areNumbers(*items[3]) && items[2]->items.size() == items[3]->items.size();
  }

  std::span<const uint8_t> pickle_;
  const std::string& file_;
  uint64_t start_;
  size_t next_ = 0, opcodeAt_ = 0;
  std::deque<Value> values_;
  std::vector<Value*> stack_;  // nullptr: a mark
  std::unordered_map<uint32_t, Value*> memo_;
};

std::vector<int64_t> numbersOf(const Value& tuple) {
  std::vector<int64_t> numbers;
  for (const Value* const item : tuple.items) numbers.push_back(item->number);
  return numbers;
}

PickledTensor tensorOf(const std::string& name, const Value& value) {
  const auto& storage = value.items[0]->items;
  return {name,
          storage[1]->text.substr(kStoragePrefix.size()),
          storage[2]->text,
          storage[4]->number,
          value.items[1]->number,
          numbersOf(*value.items[2]),
          numbersOf(*value.items[3])};
}

// The dict of tensors: the whole, or the one value of it that programs keep theirs under.
const Value* stateDictOf(const Value& whole) {
  constexpr std::array<std::string_view, 3> kUsual{"model", "module", "state_dict"};
  if (whole.kind != Kind::kDict) return nullptr;
  const Value* inner = nullptr;
  for (size_t i = 0; i < whole.items.size(); i += 2) {
    const Value &key = *whole.items[i], *value = whole.items[i + 1];
    if (value->kind == Kind::kTensor) return &whole;
    if (key.kind != Kind::kText || value->kind != Kind::kDict) continue;
    if (std::ranges::find(kUsual, key.text) != kUsual.end()) inner = value;
  }
  return inner;
}

}  // namespace

std::vector<PickledTensor> tensorsOfPickle(std::span<const uint8_t> pickle, const std::string& file,
                                           uint64_t at) {
  Unpickler unpickler(pickle, file, at);
  const Value* const dict = stateDictOf(unpickler.read());
  if (dict == nullptr) unpickler.wrong("the pickle is no dict of tensors, as state_dict() gives");
  std::vector<PickledTensor> tensors;
  std::set<std::string> names;
  for (size_t i = 0; i < dict->items.size(); i += 2) {
    const Value &key = *dict->items[i], &value = *dict->items[i + 1];
    if (key.kind != Kind::kText || value.kind != Kind::kTensor) continue;
    if (!names.insert(key.text).second)
      unpickler.wrong(fmt::format("tensor {} is there twice", key.text));
    tensors.push_back(tensorOf(key.text, value));
  }
  return tensors;
}

}  // namespace weft::train
