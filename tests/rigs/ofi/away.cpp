// SPDX-License-Identifier: Apache-2.0
// Does a peer that leaves calls first and then stays away hold up the others? Rounds of one operation,
// after each of which the last rank does not call weft until all others are out of theirs, which
// they tell it through files. What it waits for in vain within a minute is held up: it ends with 2.
// Ranks by the environment: WEFT_RANK, WEFT_SIZE, ...
//
//   ofi_away all_reduce|broadcast|take|give BYTES ROUNDS FOLDER
//
// broadcast: of the last rank; take: rank 0 receives from it; give: rank 0 sends to it, in a call
// that the last rank joins after its absence only. FOLDER is empty and on a disk that all see.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>
#include <weft/weft.hpp>

namespace {

using Clock = std::chrono::steady_clock;

struct Plan {
  std::string operation;
  std::size_t bytes = 0;
  int rounds = 0;
  std::filesystem::path folder;
};

class Rank {
 public:
  explicit Rank(const Plan& plan)
      : plan_(plan), comm_(weft::Communicator::fromEnvironment()), data_(plan.bytes / 4 + 1) {}

  void call() {
    float* const data = data_.data();
    const std::size_t count = plan_.bytes / 4;
    if (plan_.operation == "all_reduce") return comm_.allReduce(data, count);
    if (plan_.operation == "broadcast") return comm_.broadcast(data, data, count, last());
    const bool takes = plan_.operation == "take";
    if (comm_.rank() == (takes ? last() : 0)) comm_.send(data, count, takes ? 0 : last());
    if (comm_.rank() == (takes ? 0 : last())) comm_.recv(data, count, takes ? last() : 0);
  }

  // False: calls were held up by who was away.
  bool run() {
    std::vector<double> times;
    int heldUp = 0;
    for (int round = 0; round < plan_.rounds; ++round) {
      comm_.barrier();
      if (isAway() && joinsLate()) heldUp += !stayAway(round);
      const Clock::time_point start = Clock::now();
      call();
      times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
      if (!isAway()) std::ofstream(sign(comm_.rank(), round));
      if (isAway() && !joinsLate()) heldUp += !stayAway(round);
    }
    std::sort(times.begin(), times.end());
    std::printf("%s %zu bytes, rank %d: median %.2f ms, most %.2f ms, %d of %d held up\n",
                plan_.operation.c_str(), plan_.bytes, comm_.rank(), times[times.size() / 2],
                times.back(), heldUp, plan_.rounds);
    return heldUp == 0;
  }

 private:
  int last() const { return comm_.size() - 1; }
  bool isAway() const { return comm_.rank() == last(); }
  bool joinsLate() const { return plan_.operation == "give"; }
  std::filesystem::path sign(int rank, int round) const {
    return plan_.folder / (std::to_string(round) + "." + std::to_string(rank));
  }
  // Until all others are out of their calls. False: they wait for this one.
  bool stayAway(int round) const {
    const Clock::time_point until = Clock::now() + std::chrono::minutes(1);
    for (int rank = 0; rank < last(); ++rank)
      while (!std::filesystem::exists(sign(rank, round))) {
        if (Clock::now() > until) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    return true;
  }

  const Plan plan_;
  weft::Communicator comm_;
  std::vector<float> data_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return std::fputs("ofi_away OPERATION BYTES ROUNDS FOLDER\n", stderr), 64;
  try {
    const Plan plan{argv[1], std::strtoull(argv[2], nullptr, 10), std::atoi(argv[3]), argv[4]};
    return Rank(plan).run() ? 0 : 2;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "ofi_away: %s\n", problem.what());
    return 1;
  }
}
