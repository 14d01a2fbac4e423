// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "scale.h"

namespace weft::scale {
namespace {

// Into the network and under the name of a host of net.sh.
bool enterHost(const Options& options, int host) {
  if (options.hosts == 1) return true;
  const std::string path = "/run/netns/" + options.net + "host" + std::to_string(host);
  const int net = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const std::string name = "node" + std::to_string(host);
  const bool there = net >= 0 && ::setns(net, CLONE_NEWNET) == 0 && ::unshare(CLONE_NEWUTS) == 0 &&
                     ::sethostname(name.data(), name.size()) == 0;
  if (!there) std::perror(path.c_str());
  ::close(net);
  return there;
}

}  // namespace

std::size_t Board::bytes() const {
  return sizeof(Note) * std::size(kSteps) * static_cast<std::size_t>(ranks_);
}

Board::Board(int ranks)
    : ranks_(ranks),
      notes_(static_cast<Note*>(
          ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
  if (notes_ == MAP_FAILED) throw std::runtime_error("no memory for the board");
}

Board::~Board() { ::munmap(notes_, bytes()); }

Note& Board::at(int rank, Step step) const {
  return notes_[static_cast<std::size_t>(rank) * std::size(kSteps) +
                static_cast<std::size_t>(step)];
}

IdPipe::IdPipe() {
  if (::pipe(ends_) != 0) throw std::runtime_error("no pipe");
}

IdPipe::~IdPipe() {
  ::close(ends_[0]);
  ::close(ends_[1]);
}

// Whole messages: they are shorter than PIPE_BUF, and all of one length.
void IdPipe::give(const void* id, std::size_t bytes, int times) const {
  for (int i = 0; i < times; ++i)
    if (::write(ends_[1], id, bytes) != static_cast<ssize_t>(bytes)) std::perror("an id");
}

bool IdPipe::take(void* id, std::size_t bytes) const {
  return ::read(ends_[0], id, bytes) == static_cast<ssize_t>(bytes);
}

std::vector<pid_t> forkRanks(const Options& options, const Board& board, const IdPipe& courier) {
  std::vector<pid_t> pids;
  std::fflush(nullptr);
  for (int rank = 0; rank < options.ranks(); ++rank) {
    const pid_t pid = ::fork();
    if (pid < 0) throw std::runtime_error("cannot fork rank " + std::to_string(rank));
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::exit(enterHost(options, rank / options.each) ? runRank(options, board, courier, rank)
                                                        : 71);
    }
    pids.push_back(pid);
  }
  return pids;
}

int awaitAll(const std::vector<pid_t>& ranks) {
  int lost = 0;
  for (const pid_t pid : ranks) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    lost += status != 0;
  }
  return lost;
}

}  // namespace weft::scale
