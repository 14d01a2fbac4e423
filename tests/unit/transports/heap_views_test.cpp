// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/heap_views.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "transports/shm/heap.h"
#include "transports/shm/memory.h"

namespace weft::shm {
namespace {

constexpr std::size_t kBytes = 4 * kHugePage;
using Views = std::vector<std::shared_ptr<mapped::PeerHeap>>;

Token processOf(int which) { return {std::byte(which)}; }

// As another process's.
OthersHeap offer(int which, const Heap& heap) {
  return {processOf(which), Fd(::fcntl(heap.descriptor().get(), F_DUPFD_CLOEXEC, 0)), kBytes};
}

Views viewsOf(std::vector<OthersHeap> heaps) {
  Views views;
  const Status made = viewHeaps(std::move(heaps), &views);
  EXPECT_TRUE(made.ok()) << made.text();
  return views;
}

template <class... Heaps>
std::vector<OthersHeap> listOf(Heaps&&... heaps) {
  std::vector<OthersHeap> list;
  (list.push_back(std::move(heaps)), ...);
  return list;
}

int mappings() {
  int count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    count += line.find("memfd:weft") != std::string::npos;
  return count;
}

class HeapViews : public testing::Test {
 protected:
  void SetUp() override {
    for (auto* heap : {&first_, &second_}) ASSERT_TRUE(Heap::create(kBytes, heap).ok());
    before_ = mappings();
  }
  int more() const { return mappings() - before_; }

  std::unique_ptr<Heap> first_, second_;
  int before_ = 0;
};

TEST_F(HeapViews, AreMappedWhenSomebodyAsks) {
  Views views = viewsOf(listOf(offer(1, *first_), offer(2, *second_)));
  EXPECT_EQ(more(), 0);
  void* memory = nullptr;
  ASSERT_TRUE(second_->allocate(4096, &memory).ok() && memory != nullptr);
  *static_cast<std::byte*>(memory) = std::byte{7};
  const auto offset = static_cast<std::byte*>(memory) - second_->memory().data();
  const std::span<std::byte> there = views[1]->memory();
  EXPECT_EQ(more(), 1);
  ASSERT_EQ(there.size(), kBytes);
  EXPECT_EQ(there[static_cast<std::size_t>(offset)], std::byte{7});
  EXPECT_NE(views[0]->memory().data(), there.data());
  EXPECT_EQ(more(), 2);
  views[1].reset();
  EXPECT_EQ(more(), 1);
  EXPECT_EQ(views[0]->memory().size(), kBytes);
  views.clear();
  EXPECT_EQ(more(), 0);
}

TEST_F(HeapViews, AreOneForAProcess) {
  const Views one = viewsOf(listOf(offer(1, *first_)));
  const Views both = viewsOf(listOf(offer(2, *second_), offer(1, *first_)));
  EXPECT_EQ(both[1], one[0]);
  EXPECT_NE(both[0], one[0]);
  EXPECT_EQ(both[1]->memory().data(), one[0]->memory().data());
}

// What another process says of its heap may be anything.
TEST_F(HeapViews, OfAnotherSizeIsNone) {
  OthersHeap wrong = offer(1, *first_);
  wrong.bytes *= 2;
  const Views views = viewsOf(listOf(std::move(wrong)));
  EXPECT_TRUE(views[0]->memory().empty());
  EXPECT_TRUE(views[0]->memory().empty());
  EXPECT_EQ(more(), 0);
}

TEST_F(HeapViews, OfMoreThanThereIsRoomForAreRefused) {
  std::vector<OthersHeap> heaps = listOf(offer(1, *first_), offer(2, *second_));
  for (OthersHeap& heap : heaps) heap.bytes = ~std::size_t{0};
  Views views;
  const Status made = viewHeaps(std::move(heaps), &views);
  EXPECT_EQ(made.code(), Code::OutOfMemory);
  EXPECT_TRUE(views.empty());
}

TEST_F(HeapViews, AreNotAChilds) {
  const Views views = viewsOf(listOf(offer(1, *first_), offer(2, *second_)));
  EXPECT_FALSE(views[0]->memory().empty());
  const pid_t child = ::fork();
  if (child == 0) {
    const bool none = views[1]->memory().empty();
    const Views own = viewsOf(listOf(offer(1, *first_)));
    ::_exit(none && own[0] != views[0] && !own[0]->memory().empty() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace weft::shm
