// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace weft {

// How many forks lie between this process and the first one: what was made before a fork belongs to
// the parent.
std::uint32_t forkCount();

// What callers hold instead of pointers: a number that says which table, which place and which
// generation, so that a null, foreign, destroyed or made-up handle is an error and never a crash.
// Looking one up is a load and a comparison, without a lock. Any thread.
template <class Object, std::uint8_t kTable>
class Handles {
 public:
  static constexpr std::size_t kCapacity = 4096;

  // 0 if kCapacity are alive.
  std::uintptr_t add(std::shared_ptr<Object> object) {
    std::uintptr_t handle = 0;
    addAll(std::span(&object, std::size_t{1}), &handle);
    return handle;
  }
  // All or, if that makes more than kCapacity, none.
  bool addAll(std::span<std::shared_ptr<Object>> objects, std::uintptr_t* handles) {
    const std::lock_guard lock(mutex_);
    if (objects.size() > kCapacity - used_ + free_.size()) return false;
    for (std::shared_ptr<Object>& object : objects) *handles++ = fill(takePlace(), object);
    return true;
  }

  // nullptr if there is no such object (any more).
  Object* find(const void* handle) const {
    const Slot* slot = slotOf(handle);
    return slot ? slot->object.get() : nullptr;
  }
  std::shared_ptr<Object> share(const void* handle) const {
    const Slot* slot = slotOf(handle);
    return slot ? slot->object : nullptr;
  }

  // Was it made by the process that this one was forked from?
  bool isParents(const void* handle) const {
    const Slot& slot = slots_[placeOf(reinterpret_cast<std::uintptr_t>(handle))];
    return handle != nullptr &&
           slot.handle.load(std::memory_order_acquire) ==
               reinterpret_cast<std::uintptr_t>(handle) &&
           slot.forks != forkCount();
  }

  // Forgets the handle and gives its object back.
  std::shared_ptr<Object> remove(const void* handle) {
    const std::lock_guard lock(mutex_);
    const Slot* found = slotOf(handle);
    if (found == nullptr) return nullptr;
    const std::size_t place = placeOf(reinterpret_cast<std::uintptr_t>(handle));
    slots_[place].handle.store(0, std::memory_order_release);
    free_.push_back(place);
    return std::move(slots_[place].object);
  }

 private:
  struct Slot {
    std::atomic<std::uintptr_t> handle{0};
    std::uint32_t generation = 0;
    std::uint32_t forks = 0;
    std::shared_ptr<Object> object;
  };

  std::size_t takePlace() {
    if (free_.empty()) return used_++;
    const std::size_t place = free_.back();
    free_.pop_back();
    return place;
  }
  std::uintptr_t fill(std::size_t place, std::shared_ptr<Object>& object) {
    Slot& slot = slots_[place];
    slot.object = std::move(object);
    slot.forks = forkCount();
    const std::uintptr_t handle = encode(place, ++slot.generation);
    slot.handle.store(handle, std::memory_order_release);
    return handle;
  }

  static std::uintptr_t encode(std::size_t place, std::uint32_t generation) {
    return std::uintptr_t{kTable} << 56 | std::uintptr_t{generation} << 16 | place << 4 | 1;
  }
  static std::size_t placeOf(std::uintptr_t handle) { return handle >> 4 & (kCapacity - 1); }
  const Slot* slotOf(const void* handle) const {
    const std::uintptr_t value = reinterpret_cast<std::uintptr_t>(handle);
    const Slot& slot = slots_[placeOf(value)];
    if (value == 0 || slot.handle.load(std::memory_order_acquire) != value) return nullptr;
    return slot.forks == forkCount() ? &slot : nullptr;
  }

  std::array<Slot, kCapacity> slots_;
  std::mutex mutex_;
  std::vector<std::size_t> free_;
  std::size_t used_ = 0;
};

}  // namespace weft
