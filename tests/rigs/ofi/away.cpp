// SPDX-License-Identifier: Apache-2.0
// What calls cost when a peer leaves them first and then stays away. Rounds of one operation, after
// each of which the last rank does not call weft for a while; the others say how long their calls
// took, and end with 2 if one of them waited for the absence. Ranks by the environment: WEFT_RANK,
// WEFT_SIZE, ...
//
//   ofi_away all_reduce|broadcast|take|give BYTES ROUNDS AWAY_MS
//
// broadcast: of the last rank; take: rank 0 receives from it; give: rank 0 sends to it, in a call
// that the last rank joins after its absence only.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
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
  std::chrono::milliseconds away{};
};

class Rank {
 public:
  explicit Rank(const Plan& plan)
      : plan_(plan), comm_(weft::Communicator::fromEnvironment()), data_(plan.bytes / 4 + 1) {}

  // False: this rank has no part in it.
  bool call() {
    float* const data = data_.data();
    const std::size_t count = plan_.bytes / 4;
    if (plan_.operation == "all_reduce") return comm_.allReduce(data, count), true;
    if (plan_.operation == "broadcast") return comm_.broadcast(data, data, count, last()), true;
    const bool takes = plan_.operation == "take";
    if (comm_.rank() == (takes ? last() : 0))
      return comm_.send(data, count, takes ? 0 : last()), true;
    if (comm_.rank() == (takes ? 0 : last()))
      return comm_.recv(data, count, takes ? last() : 0), true;
    return false;
  }

  // False: calls were held up by who was away.
  bool run() {
    const bool late = plan_.operation == "give";
    std::vector<double> times;
    for (int round = 0; round < plan_.rounds; ++round) {
      comm_.barrier();
      if (late) rest();
      const Clock::time_point start = Clock::now();
      const bool took = call();
      times.push_back(took ? std::chrono::duration<double, std::milli>(Clock::now() - start).count()
                           : 0);
      if (!late) rest();
    }
    std::sort(times.begin(), times.end());
    const auto slow = std::count_if(times.begin(), times.end(), [&](double t) {
      return t > static_cast<double>(plan_.away.count()) / 2;
    });
    if (comm_.rank() == last()) return true;
    std::printf("%s %zu bytes, rank %d: median %.2f ms, most %.2f ms, %d of %d held up\n",
                plan_.operation.c_str(), plan_.bytes, comm_.rank(), times[times.size() / 2],
                times.back(), static_cast<int>(slow), plan_.rounds);
    return slow == 0;
  }

 private:
  int last() const { return comm_.size() - 1; }
  void rest() const {
    if (comm_.rank() == last()) std::this_thread::sleep_for(plan_.away);
  }

  const Plan plan_;
  weft::Communicator comm_;
  std::vector<float> data_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return std::fputs("ofi_away OPERATION BYTES ROUNDS AWAY_MS\n", stderr), 64;
  try {
    const Plan plan{argv[1], std::strtoull(argv[2], nullptr, 10), std::atoi(argv[3]),
                    std::chrono::milliseconds(std::atoi(argv[4]))};
    return Rank(plan).run() ? 0 : 2;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "ofi_away: %s\n", problem.what());
    return 1;
  }
}
