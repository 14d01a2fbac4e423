// SPDX-License-Identifier: Apache-2.0
#include "launch/launcher.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <deque>
#include <fstream>

#include "bootstrap/secret.h"
#include "launch/launcher_source.h"
#include "launch/pmi_wire.h"
#include "tests/command.h"
#include "tests/temporary_folder.h"
#include "tests/unit/base/scoped_env.h"
#include "tests/unit/bootstrap/helpers.h"

namespace weft::launch {
namespace {

using namespace weft::test;

// An environment without any launcher, plus what a test sets.
class Environment {
 public:
  explicit Environment(std::initializer_list<std::pair<const char*, const char*>> variables) {
    for (const char* name : {"WEFT_RANK",
                             "WEFT_SIZE",
                             "WEFT_ROOT",
                             "WEFT_LOCAL_RANK",
                             "WEFT_LOCAL_SIZE",
                             "WEFT_SECRET",
                             "WEFT_AUTH",
                             "RANK",
                             "WORLD_SIZE",
                             "LOCAL_RANK",
                             "LOCAL_WORLD_SIZE",
                             "MASTER_ADDR",
                             "MASTER_PORT",
                             "TORCHELASTIC_RUN_ID",
                             "TORCHELASTIC_RESTART_COUNT",
                             "PMIX_RANK",
                             "PMIX_NAMESPACE",
                             "OMPI_COMM_WORLD_SIZE",
                             "PMI_FD",
                             "PMI_RANK",
                             "PMI_SIZE",
                             "OMPI_COMM_WORLD_RANK",
                             "SLURM_NTASKS",
                             "FLUX_TASK_RANK",
                             "FLUX_JOB_SIZE",
                             "MV2_COMM_WORLD_RANK",
                             "MV2_COMM_WORLD_SIZE",
                             "SLURM_PROCID",
                             "SLURM_LOCALID",
                             "SLURM_STEP_NUM_TASKS",
                             "SLURM_STEP_NODELIST",
                             "SLURM_JOB_ID",
                             "SLURM_STEP_ID",
                             "AWS_BATCH_JOB_ID",
                             "AWS_BATCH_JOB_NODE_INDEX",
                             "AWS_BATCH_JOB_NUM_NODES",
                             "AWS_BATCH_JOB_MAIN_NODE_INDEX",
                             "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS"}) {
      saved_.emplace_back(name, nullptr);
    }
    for (const auto& [name, value] : variables) saved_.emplace_back(name, value);
  }
  ~Environment() {
    while (!saved_.empty()) saved_.pop_back();
  }

 private:
  std::deque<ScopedEnv> saved_;
};

Identity identified() {
  Identity identity;
  const Status status = identify(&identity);
  EXPECT_TRUE(status.ok()) << status.text();
  return identity;
}

TEST(Launcher, NoneIsOneRankAlone) {
  const Environment environment({});
  const Identity identity = identified();
  EXPECT_EQ(identity.rank, 0);
  EXPECT_EQ(identity.size, 1);
  EXPECT_EQ(identity.source, "none (one rank alone)");
  bootstrap::UniqueId id;
  ASSERT_TRUE(rendezvousId(identity, &id, Deadline::in(1000)).ok());
  expectAllJoined(joinAll(id, healthyParts(1)));
}

TEST(Launcher, TorchrunBeforeSlurmAndTheConflictIsNamed) {
  const Environment environment({{"RANK", "3"},
                                 {"WORLD_SIZE", "8"},
                                 {"LOCAL_RANK", "1"},
                                 {"LOCAL_WORLD_SIZE", "2"},
                                 {"MASTER_ADDR", "localhost"},
                                 {"MASTER_PORT", "29500"},
                                 {"SLURM_PROCID", "1"},
                                 {"SLURM_STEP_NUM_TASKS", "4"},
                                 {"SLURM_STEP_NODELIST", "n[1-4]"}});
  const Identity identity = identified();
  EXPECT_EQ(identity.source, "torchrun");
  EXPECT_EQ(identity.rank, 3);
  EXPECT_EQ(identity.size, 8);
  EXPECT_EQ(identity.localRank, 1);
  EXPECT_EQ(identity.localSize, 2);
  EXPECT_EQ(identity.conflicts, "Slurm says rank 1 of 4");
}

TEST(Launcher, WeftsOwnBeforeAllOthers) {
  const Environment environment({{"WEFT_RANK", "0"},
                                 {"WEFT_SIZE", "2"},
                                 {"RANK", "3"},
                                 {"WORLD_SIZE", "8"},
                                 {"MASTER_ADDR", "localhost"},
                                 {"MASTER_PORT", "29500"}});
  const Identity identity = identified();
  EXPECT_EQ(identity.source, "WEFT_RANK");
  EXPECT_EQ(identity.size, 2);
  EXPECT_EQ(identity.localRank, -1);
  EXPECT_EQ(identity.conflicts, "torchrun says rank 3 of 8");
}

// A job whose ranks each believe to be alone ends well and is wrong.
TEST(Launcher, ASizeThatCannotBeBelievedIsAnError) {
  for (const auto& [rank, size] : {std::pair("RANK", "WORLD_SIZE"),
                                   {"PMI_RANK", "PMI_SIZE"},
                                   {"SLURM_PROCID", "SLURM_NTASKS"},
                                   {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
                                   {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"}}) {
    const Environment environment({{rank, "3"}, {size, "8"}});
    Identity identity;
    const Status status = identify(&identity);
    EXPECT_EQ(status.code(), Code::InvalidUsage) << status.text();
    expectHas(status.text(), text(rank, "=3 and ", size, "=8"));
  }
}

TEST(Launcher, OneOfSeveralMayBeToldToBeAlone) {
  const Environment environment(
      {{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"WEFT_RANK", "0"}, {"WEFT_SIZE", "1"}});
  EXPECT_EQ(identified().size, 1);
}

TEST(Launcher, ABatchScriptOfSlurmIsNoRank) {
  const Environment environment({{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}});
  EXPECT_EQ(identified().size, 1);
}

TEST(Launcher, NonsenseIsAnErrorThatNamesTheVariable) {
  for (const char* rank : {"8", "-1", "x", "", "1 "}) {
    const Environment environment({{"WEFT_RANK", rank}, {"WEFT_SIZE", "8"}});
    Identity identity;
    const Status status = identify(&identity);
    EXPECT_EQ(status.code(), Code::InvalidArgument) << rank;
    expectHas(status.text(), std::string("WEFT_RANK=") + rank + " is not a number from 0 to 7");
    EXPECT_EQ(status.data().variable, "WEFT_RANK");
  }
  const Environment environment({{"WEFT_RANK", "0"}});
  Identity identity;
  expectHas(identify(&identity).text(), "WEFT_SIZE= is not a number");
}

TEST(Launcher, AwsBatchsMainNodeIsRankZero) {
  const Environment environment({{"AWS_BATCH_JOB_NODE_INDEX", "1"},
                                 {"AWS_BATCH_JOB_NUM_NODES", "4"},
                                 {"AWS_BATCH_JOB_MAIN_NODE_INDEX", "2"},
                                 {"AWS_BATCH_JOB_ID", "j#1"}});
  const Identity identity = identified();
  EXPECT_EQ(identity.source, "AWS Batch");
  EXPECT_EQ(identity.rank, 3);
  EXPECT_EQ(identity.localSize, 1);
  bootstrap::UniqueId id;
  expectHas(rendezvousId(identity, &id, Deadline::in(100)).text(),
            "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS");
}

// The ids that `size` ranks make of an environment, which `set` gives each rank, then all join.
void expectMeet(
    int size,
    const std::function<std::vector<std::pair<const char*, std::string>>(int rank)>& variablesOf) {
  std::vector<bootstrap::UniqueId> ids(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    std::deque<ScopedEnv> variables;
    for (const auto& [name, value] : variablesOf(rank)) variables.emplace_back(name, value.c_str());
    const Identity identity = identified();
    ASSERT_EQ(identity.rank, rank);
    ASSERT_EQ(identity.size, size);
    const Status status =
        rendezvousId(identity, &ids[static_cast<std::size_t>(rank)], Deadline::in(5000));
    ASSERT_TRUE(status.ok()) << status.text();
  }
  std::vector<Joined> results(ids.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    threads.emplace_back([&, i, rank] { results[i] = join(ids[i], {.rank = rank, .size = size}); });
  }
  for (std::thread& thread : threads) thread.join();
  expectAllJoined(results);
}

std::string number(int value) { return std::to_string(value); }

TEST(Launcher, RanksOfWeftRootMeet) {
  const std::string root = "127.0.0.1:" + number(freePort());
  const Environment environment(
      {{"WEFT_ROOT", root.c_str()}, {"WEFT_SECRET", "s"}, {"WEFT_SIZE", "3"}});
  expectMeet(3, [](int rank) {
    return std::vector<std::pair<const char*, std::string>>{{"WEFT_RANK", number(rank)}};
  });
}

TEST(Launcher, RanksOfTorchrunMeet) {
  const std::string port = number(freePort() - 1);
  const Environment environment({{"WORLD_SIZE", "3"},
                                 {"MASTER_ADDR", "localhost"},
                                 {"MASTER_PORT", port.c_str()},
                                 {"TORCHELASTIC_RUN_ID", "r"},
                                 {"WEFT_AUTH", "off"}});
  expectMeet(3, [](int rank) {
    return std::vector<std::pair<const char*, std::string>>{{"RANK", number(rank)}};
  });
}

// A name and the number that it stands for are one address.
TEST(Launcher, RanksMayWriteTheAddressInTheirOwnWays) {
  const std::string port = number(freePort() - 1);
  const Environment torchrun(
      {{"WORLD_SIZE", "2"}, {"MASTER_PORT", port.c_str()}, {"WEFT_AUTH", "off"}});
  expectMeet(2, [](int rank) {
    return std::vector<std::pair<const char*, std::string>>{
        {"RANK", number(rank)}, {"MASTER_ADDR", rank == 0 ? "localhost" : "127.0.0.1"}};
  });
}

TEST(Launcher, RanksMayWriteTheRootInTheirOwnWays) {
  const std::string port = number(freePort());
  const Environment environment({{"WEFT_AUTH", "off"}, {"WEFT_SIZE", "2"}});
  expectMeet(2, [&](int rank) {
    return std::vector<std::pair<const char*, std::string>>{
        {"WEFT_RANK", number(rank)},
        {"WEFT_ROOT", (rank == 0 ? "127.0.0.1:" : "localhost:") + port}};
  });
}

TEST(Launcher, EachGenerationOfTorchrunIsItsOwnJob) {
  const Environment environment({{"RANK", "0"},
                                 {"WORLD_SIZE", "3"},
                                 {"MASTER_ADDR", "localhost"},
                                 {"MASTER_PORT", "29500"},
                                 {"TORCHELASTIC_RUN_ID", "r"},
                                 {"WEFT_AUTH", "off"}});
  bootstrap::UniqueId ids[2];
  for (int generation : {0, 1}) {
    ScopedEnv count("TORCHELASTIC_RESTART_COUNT", number(generation).c_str());
    ASSERT_TRUE(rendezvousId(identified(), &ids[generation], Deadline::in(1000)).ok());
  }
  EXPECT_NE(contentOf(ids[0]).secret, contentOf(ids[1]).secret);
}

TEST(Launcher, RanksOfSlurmMeet) {
  const std::string job = number(getpid());
  const Environment environment({{"SLURM_STEP_NUM_TASKS", "3"},
                                 {"SLURM_STEP_NODELIST", "localhost,n[07-09]"},
                                 {"SLURM_JOB_ID", job.c_str()},
                                 {"SLURM_STEP_ID", "2"},
                                 {"WEFT_AUTH", "off"}});
  expectMeet(3, [](int rank) {
    return std::vector<std::pair<const char*, std::string>>{{"SLURM_PROCID", number(rank)}};
  });
}

TEST(Launcher, NodesOfAwsBatchMeet) {
  const Environment environment({{"AWS_BATCH_JOB_NUM_NODES", "3"},
                                 {"AWS_BATCH_JOB_MAIN_NODE_INDEX", "0"},
                                 {"WEFT_AUTH", "off"}});
  const bootstrap::IdContent here = [] {
    bootstrap::UniqueId id;
    bootstrap::RootOptions options;
    options.unusedMs = 1;
    EXPECT_TRUE(bootstrap::createUniqueId(&id, bootstrap::IdScope::Network, options).ok());
    return contentOf(id);
  }();
  const std::string address = here.addresses.front().text();
  if (here.addresses.front().v6) GTEST_SKIP() << "AWS Batch hands over IPv4 addresses only";
  expectMeet(3, [&](int rank) {
    std::vector<std::pair<const char*, std::string>> variables = {
        {"AWS_BATCH_JOB_NODE_INDEX", number(rank)},
        {"AWS_BATCH_JOB_ID", "job" + number(getpid()) + "#" + number(rank)}};
    if (rank > 0)
      variables.emplace_back("AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS",
                             address.substr(0, address.find(':')));
    return variables;
  });
}

// ---- secrets ----

TEST(Secret, RequireWithoutOneIsAnError) {
  const Environment environment({{"WEFT_AUTH", "require"}});
  std::string secret;
  bool warn = false;
  const Status status = bootstrap::secretForJob("j", &secret, &warn);
  expectHas(status.text(), "WEFT_AUTH=require, but there is no secret");
  EXPECT_EQ(status.data().variable, "WEFT_AUTH");
  ScopedEnv set("WEFT_SECRET", "s3");
  ASSERT_TRUE(bootstrap::secretForJob("j", &secret, &warn).ok());
  EXPECT_EQ(secret, "s3");
}

TEST(Secret, OffDerivesItFromTheJob) {
  const Environment environment({{"WEFT_AUTH", "off"}});
  std::string one, other;
  bool warn = false;
  ASSERT_TRUE(bootstrap::secretForJob("j", &one, &warn).ok());
  ASSERT_TRUE(bootstrap::secretForJob("k", &other, &warn).ok());
  EXPECT_NE(one, other);
  EXPECT_FALSE(warn);
}

TEST(Secret, FilesMustBeClosedToOthers) {
  const Environment environment({});
  const std::string path = testing::TempDir() + "weft_secret_" + std::to_string(getpid());
  std::ofstream(path) << "from file\n";
  ScopedEnv file("WEFT_SECRET_FILE", path.c_str());
  std::string secret;
  chmod(path.c_str(), 0640);
  expectHas(bootstrap::readSecret(&secret).text(), "fix: chmod 600 it");
  chmod(path.c_str(), 0600);
  ASSERT_TRUE(bootstrap::readSecret(&secret).ok());
  EXPECT_EQ(secret, "from file");
  std::ofstream(path) << std::string(5000, 'x');
  expectHas(bootstrap::readSecret(&secret).text(), "longer than 4 KiB");
  std::ofstream(path) << "\n";
  expectHas(bootstrap::readSecret(&secret).text(), "is empty");
  std::filesystem::remove(path);
  expectHas(bootstrap::readSecret(&secret).text(), "No such file");
  ScopedEnv folder("WEFT_SECRET_FILE", "/tmp");
  const Status status = bootstrap::readSecret(&secret);
  expectHas(status.text(), "not a regular file");
  EXPECT_EQ(status.data().variable, "WEFT_SECRET_FILE");
}

// ---- ids as text, PMI's lines ----

TEST(IdText, HexAndBack) {
  bootstrap::UniqueId id;
  ASSERT_TRUE(net::randomBytes(id.bytes).ok());
  bootstrap::UniqueId back;
  ASSERT_TRUE(idFromHex(idToHex(id), &back).ok());
  EXPECT_EQ(back.bytes, id.bytes);
  std::string wrong = idToHex(id);
  wrong[17] = 'g';
  EXPECT_FALSE(idFromHex(wrong, &back).ok());
  EXPECT_FALSE(idFromHex(idToHex(id).substr(1), &back).ok());
  EXPECT_FALSE(idFromHex("", &back).ok());
}

TEST(PmiWire, ValuesOfALine) {
  std::string value;
  EXPECT_TRUE(pmiValue("cmd=get_result rc=0 msg=success value=a=b", "value", &value));
  EXPECT_EQ(value, "a=b");
  EXPECT_TRUE(pmiValue("cmd=x", "cmd", &value));
  EXPECT_FALSE(pmiValue("cmd=x ", "rc", &value));
  EXPECT_FALSE(pmiValue("", "cmd", &value));
}

// A server that answers each line with the next of `answers`.
Status askPmi(const std::vector<std::string>& answers) {
  int fds[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  for (const std::string& answer : answers)
    EXPECT_GT(send(fds[1], answer.data(), answer.size(), 0), 0);
  PmiClient client(fds[0]);
  Status status = client.initialize(Deadline::in(50));
  if (status.ok()) status = client.barrier(Deadline::in(50));
  close(fds[0]);
  close(fds[1]);
  return status;
}

TEST(PmiWire, OddServersAreErrorsNotHangs) {
  const std::string init = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
  const std::string name = "cmd=my_kvsname kvsname=kvs_1\n";
  EXPECT_TRUE(askPmi({init, name, "cmd=barrier_out rc=0\n"}).ok());
  EXPECT_EQ(askPmi({init, name}).code(), Code::Timeout);
  expectHas(askPmi({init, name, "cmd=barrier_out rc=-1\n"}).text(), "mpiexec refused");
  expectHas(askPmi({"cmd=response_to_init rc=0\ncmd=my_kvsname\n"}).text(),
            "no name of the key-value space");
  expectHas(askPmi({"what?\n"}).text(), "expected response_to_init");
  expectHas(askPmi({std::string(20000, 'x')}).text(), "without end");
}

TEST(PmiWire, AServerThatIsGoneIsNamed) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  shutdown(ends[1], SHUT_WR);
  expectHas(PmiClient(ends[0]).initialize(Deadline::in(5000)).text(), "mpiexec closed PMI_FD");
  close(ends[1]);
  expectHas(PmiClient(ends[0]).initialize(Deadline::in(5000)).text(), "cannot write to PMI_FD");
  close(ends[0]);
}

// As a kernel answers where the server has gone without reading all.
TEST(PmiWire, AConnectionThatBreaksIsNamed) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  std::thread server([&] {
    char request = 0;
    EXPECT_EQ(recv(ends[1], &request, 1, 0), 1);
    close(ends[1]);
  });
  expectHas(PmiClient(ends[0]).initialize(Deadline::in(5000)).text(), "cannot read from PMI_FD: ");
  server.join();
  close(ends[0]);
}

TEST(PmiWire, AnAnswerWithoutItsValueIsNamed) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const std::string answer = "cmd=get_result rc=0 msg=success\n";
  ASSERT_GT(send(ends[1], answer.data(), answer.size(), 0), 0);
  std::string value;
  const Status got = PmiClient(ends[0]).get("weft-id", &value, Deadline::in(5000));
  EXPECT_EQ(got.code(), Code::SystemError);
  expectHas(got.text(), "PMI: no value for weft-id. fix: ");
  close(ends[0]);
  close(ends[1]);
}

// Once a job, and not where nobody else comes by.
TEST(Launcher, NoSecretIsWarnedOfWhereOthersMayComeBy) {
  const Environment environment({});
  const auto warned = [](int rank, const char* address) {
    bootstrap::UniqueId id;
    testing::internal::CaptureStderr();
    Identity me;
    me.rank = rank;
    me.size = 2;
    EXPECT_TRUE(idForJob(me, address, "job", Deadline::in(5000), &id).ok());
    return testing::internal::GetCapturedStderr();
  };
  expectHas(
      warned(0, "192.0.2.1:4711"),
      "no WEFT_SECRET or WEFT_SECRET_FILE, so whoever reaches rank 0 and knows the job's name "
      "may join (WEFT_AUTH=off silences this, WEFT_AUTH=require forbids it)");
  EXPECT_EQ(warned(1, "192.0.2.1:4711"), "");
  EXPECT_EQ(warned(0, "127.0.0.1:4711"), "");
}

TEST(Launcher, WithoutARootNobodyMeets) {
  const Environment environment({{"WEFT_RANK", "0"}, {"WEFT_SIZE", "2"}});
  bootstrap::UniqueId id;
  const Status status = rendezvousId(identified(), &id, Deadline::in(5000));
  expectHas(status.text(), "WEFT_ROOT is not");
  EXPECT_EQ(status.data().variable, "WEFT_ROOT");
}

TEST(Launcher, AnAddressThatIsNoneNamesItsVariable) {
  const auto variableOf = [](const Environment&) {
    bootstrap::UniqueId id;
    return rendezvousId(identified(), &id, Deadline::in(5000)).data().variable;
  };
  EXPECT_EQ(variableOf(Environment({{"WEFT_RANK", "0"}, {"WEFT_SIZE", "2"}, {"WEFT_ROOT", "x"}})),
            "WEFT_ROOT");
  EXPECT_EQ(
      variableOf(Environment(
          {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_NODELIST", "a["}})),
      "SLURM_STEP_NODELIST");
}

TEST(Launcher, APmiThatIsNoSocketIsNamed) {
  const Environment environment({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"PMI_FD", "9999"}});
  bootstrap::UniqueId id;
  const Status status = rendezvousId(identified(), &id, Deadline::in(5000));
  expectHas(status.text(), "PMI_FD=9999 is not an open socket");
  EXPECT_EQ(status.data().variable, "PMI_FD");
}

// ---- under real launchers ----

// Whatever started this process: it meets all others, twice. By itself that is one rank alone; the
// tests below run it under mpirun and mpiexec.
TEST(AsLaunched, MeetsAllRanksOfItsJob) {
  const Identity identity = identified();
  if (const char* expected = std::getenv("EXPECTED_LAUNCH")) {
    EXPECT_EQ(identity.source + " " + std::to_string(identity.size), expected);
  }
  for (int round = 0; round < 2; ++round) {
    bootstrap::UniqueId id;
    const Status met = rendezvousId(identity, &id, Deadline::in(20000));
    ASSERT_TRUE(met.ok()) << met.text();
    const Joined joined =
        join(id, {.rank = identity.rank, .size = identity.size, .timeoutMs = 20000});
    ASSERT_TRUE(joined.status.ok()) << joined.status.text();
    std::vector<net::Bytes> all;
    const net::Bytes mine(3, static_cast<std::byte>(identity.rank));
    const Status gathered = joined.bootstrap->allGather(mine, &all, Deadline::in(20000));
    ASSERT_TRUE(gathered.ok()) << gathered.text();
    for (int rank = 0; rank < identity.size; ++rank) {
      EXPECT_EQ(all[static_cast<std::size_t>(rank)], net::Bytes(3, static_cast<std::byte>(rank)));
    }
  }
  std::printf("met as %d of %d\n", identity.rank, identity.size);
}

// Runs the test above under `command`; every rank must say that it met.
void expectLaunched(const std::string& command, const std::string& expected, int ranks) {
  const std::string program = command.substr(0, command.find(' '));
  if (std::system(("command -v " + program + " > /dev/null").c_str()) != 0)
    GTEST_SKIP() << program << " is not here";
  // libpmix itself leaves a few bytes behind. Of two mpiruns that share a folder, one that ends can
  // take it from the other that begins.
  const TemporaryFolder folder;
  const Environment environment({{"EXPECTED_LAUNCH", expected.c_str()},
                                 {"ASAN_OPTIONS", "detect_leaks=0"},
                                 {"TMPDIR", folder.path().c_str()}});
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string line =
      "timeout 60 " + command + " " + self + " --gtest_filter=AsLaunched.* 2>&1 < /dev/null";
  const auto [exitCode, output] = runCommand(line);
  EXPECT_EQ(exitCode, 0) << output;
  for (int rank = 0; rank < ranks; ++rank) {
    expectHas(output, "met as " + std::to_string(rank) + " of " + std::to_string(ranks));
  }
}

TEST(RealLauncher, OpenMpi) {
  expectLaunched("mpirun.openmpi --allow-run-as-root --oversubscribe -n 4", "PMIx 4", 4);
}

TEST(RealLauncher, PmixWithoutOpenMpisVariables) {
  expectLaunched(
      "mpirun.openmpi --allow-run-as-root --oversubscribe -n 3 env -u OMPI_COMM_WORLD_SIZE",
      "PMIx 3", 3);
}

TEST(RealLauncher, Mpich) { expectLaunched("mpiexec.mpich -n 4", "PMI 4", 4); }

}  // namespace
}  // namespace weft::launch
