// SPDX-License-Identifier: Apache-2.0
// Two ranks as threads of one program, through weft.hpp.
#include <thread>
#include <vector>
#include <weft/weft.hpp>

int main() {
  std::vector<weft::Communicator> ranks = weft::Communicator::all(2);
  std::vector<double> values = {1, 2};
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    threads.emplace_back([&, r] { ranks[r].allReduce(&values[r], 1); });
  for (std::thread& thread : threads) thread.join();
  return values == std::vector<double>{3, 3} ? 0 : 1;
}
