// SPDX-License-Identifier: Apache-2.0
#include "topology/numa.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/temporary_folder.h"
#include "topology/cores.h"
#include "topology/host.h"

namespace weft::topology {
namespace {

TEST(Numa, ReadsListsOfCores) {
  for (const char* list : {"0", "0-3", "0-1,4", "1,3,5-7"}) {
    const cpu_set_t set = coresOfList(list);
    EXPECT_EQ(coreList(set), list);
  }
  for (const char* list : {"", "a", "0-", "-3", "0,,1", "0-9999", "3-x"}) {
    const cpu_set_t set = coresOfList(list);
    EXPECT_EQ(CPU_COUNT(&set), 0) << list;
  }
}

// A machine of these nodes, by the lists of their cores; one without cores is memory alone.
class Machine {
 public:
  Machine(const char* withCores, const std::vector<const char*>& nodes) {
    folder_.write("has_cpu", withCores);
    for (std::size_t n = 0; n < nodes.size(); ++n)
      folder_.write("node" + std::to_string(n) + "/cpulist", nodes[n]);
  }
  int nodeOf(const char* cores) const { return numaNodeOf(coresOfList(cores), folder_.path()); }

 private:
  const test::TemporaryFolder folder_;
};

TEST(Numa, TellsTheNodeOfCores) {
  const Machine two("0-1", {"0-3,8-11", "4-7,12-15", ""});
  EXPECT_EQ(two.nodeOf("0-3"), 0);
  EXPECT_EQ(two.nodeOf("9"), 0);
  EXPECT_EQ(two.nodeOf("4,15"), 1);
  EXPECT_EQ(two.nodeOf("3-4"), -1) << "of both";
  EXPECT_EQ(two.nodeOf("99"), -1);
  const Machine one("0", {"0-3", ""});
  EXPECT_EQ(one.nodeOf("0-3"), -1) << "there is no other";
  EXPECT_EQ(numaNodeOf(allowedCores(), "/nowhere"), -1);
}

TEST(Numa, OfThisMachineIsOneThatItHas) {
  EXPECT_GE(numaNodes(), 1U);
  EXPECT_LT(numaNodeOf(allowedCores()), static_cast<int>(CPU_SETSIZE));
  EXPECT_TRUE(numaNodes() > 1 || numaNodeOf(allowedCores()) == -1);
}

}  // namespace
}  // namespace weft::topology
