// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/team.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <thread>

namespace weft::perf {
namespace {

weftConfig_t configOf(const Options& options) {
  weftConfig_t config = defaultConfig();
  if (options.timeoutSeconds > 0) config.timeoutMs = options.timeoutSeconds * 1000;
  if (!options.transport.empty()) config.transport = options.transport.c_str();
  if (options.reproducible) config.reproducible = 1;
  return config;
}

// An id that all processes know: made by the first one, handed on through their own communicator.
weftUniqueId sharedId(Communicator& processes) {
  weftUniqueId id{};
  if (processes.rank() == 0) check(weftGetUniqueId(&id));
  processes.broadcast(id.internal, id.internal, WEFT_UNIQUE_ID_BYTES);
  return id;
}

std::vector<Communicator> joinInOneGroup(const weftUniqueId& id, int ranks, int first, int count,
                                         const weftConfig_t& config) {
  std::vector<weftComm_t> comms(static_cast<std::size_t>(count));
  Group group;
  for (int i = 0; i < count; ++i) {
    check(
        weftCommInitRankConfig(&comms[static_cast<std::size_t>(i)], ranks, id, first + i, &config));
  }
  group.end();
  return std::vector<Communicator>(comms.begin(), comms.end());
}

std::vector<Communicator> joinInThreads(const weftUniqueId& id, int ranks, int first, int count,
                                        const weftConfig_t& config) {
  std::vector<Communicator> comms(static_cast<std::size_t>(count));
  std::vector<std::exception_ptr> errors(comms.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < comms.size(); ++i) {
    threads.emplace_back([&, i]() {
      try {
        comms[i] = Communicator::join(id, ranks, first + static_cast<int>(i), &config);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return comms;
}

std::vector<Communicator> single(Communicator comm) {
  std::vector<Communicator> comms;
  comms.push_back(std::move(comm));
  return comms;
}

int applySplit(const std::string& operation, int rank, int value) {
  const auto is = [&](const char* word, const char* sign) {
    return operation == word || operation == sign;
  };
  if (is("AND", "&")) return rank & value;
  if (is("OR", "|")) return rank | value;
  if (is("MOD", "%") && value > 0) return rank % value;
  if (is("DIV", "/") && value > 0) return rank / value;
  throw std::invalid_argument("'" + operation + "' with " + std::to_string(value));
}

int parseSplitValue(const std::string& text) {
  const bool binary = text.starts_with("0b");
  const char* digits = text.c_str() + (binary ? 2 : 0);
  char* end = nullptr;
  const long value = std::strtol(digits, &end, binary ? 2 : 0);
  if (end == digits || *end != '\0' || value < 0 || value > 0x7fffffff) {
    throw std::invalid_argument("'" + text + "' is not a number");
  }
  return static_cast<int>(value);
}

// NCCL_TESTS_SPLIT, or its older form NCCL_TESTS_SPLIT_MASK, which is hexadecimal.
std::string splitText() {
  if (const char* split = std::getenv("NCCL_TESTS_SPLIT")) return split;
  const char* mask = std::getenv("NCCL_TESTS_SPLIT_MASK");
  if (mask == nullptr) return {};
  const std::string digits = mask;
  return "AND " + (digits.starts_with("0x") ? digits : "0x" + digits);
}

}  // namespace

std::vector<Communicator> joinRanks(const Options& options) {
  const weftConfig_t config = configOf(options);
  const int each = options.ranksPerProcess();
  Communicator processes = Communicator::fromEnvironment(&config);
  const int count = processes.size();
  if (each == 1) return single(std::move(processes));
  if (count == 1 && !options.parallelInit) return Communicator::all(each, &config);
  const auto join = options.parallelInit ? joinInThreads : joinInOneGroup;
  return join(sharedId(processes), count * each, processes.rank() * each, each, config);
}

int splitColor(const std::string& text, int rank) {
  const std::size_t digits = text.find_first_of("0123456789");
  if (digits == std::string::npos) throw std::invalid_argument("'" + text + "' has no number");
  std::string operation = text.substr(0, digits);
  std::erase(operation, ' ');
  return applySplit(operation, rank, parseSplitValue(text.substr(digits)));
}

Team::Team(Communicator world) : world_(std::move(world)) {
  const std::string split = splitText();
  if (split.empty()) return;
  try {
    color_ = splitColor(split, world_.rank());
  } catch (const std::invalid_argument& error) {
    throw Error(weftInvalidArgument, std::string("NCCL_TESTS_SPLIT: ") + error.what() +
                                         "; write AND, OR, MOD or DIV and a number, as in MOD 2");
  }
  split_ = world_.split(color_, world_.rank());
}

Team::Team(Communicator world, int color, int key)
    : world_(std::move(world)), split_(world_.split(color, key)), color_(color) {}

void Team::abort() noexcept {
  if (split_) split_.abort();
  world_.abort();
}

void Team::gatherBytes(const void* mine, void* all, std::size_t bytes) {
  world_.allGather(static_cast<const std::uint8_t*>(mine), static_cast<std::uint8_t*>(all), bytes);
}

}  // namespace weft::perf
