// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/asymmetric_fence.h"
#include "base/biased_flag.h"
#include "base/cache_aligned.h"
#include "base/no_fork.h"

namespace weft::api {

// How many forks lie between this process and the first one: what was made before a fork belongs to
// the parent.
extern std::atomic<std::uint32_t> forks;
inline std::uint32_t forkCount() { return forks.load(std::memory_order_relaxed); }

// What callers hold instead of pointers: a number that says which table, which place and which
// generation, so that a null, foreign, destroyed or made-up handle is an error and never a crash.
// Whoever looks one up pins its object, which lives until the last pin is gone, also if the handle
// is destroyed meanwhile. That takes no lock. Any thread.
template <class Object, std::uint8_t kTable>
class Handles {
  struct Slot;

 public:
  // An object in use; or none. Moves only.
  class Pin {
   public:
    Pin() = default;
    Pin(Handles* table, Slot* slot) : table_(table), slot_(slot) {}
    Pin(Pin&& other) noexcept : table_(other.table_), slot_(std::exchange(other.slot_, nullptr)) {}
    Pin& operator=(Pin&& other) noexcept {
      std::swap(table_, other.table_);
      std::swap(slot_, other.slot_);
      return *this;
    }
    ~Pin() {
      if (slot_ != nullptr) table_->unpin(*slot_);
    }
    explicit operator bool() const { return slot_ != nullptr; }
    Object& operator*() const { return *slot_->object; }
    Object* operator->() const { return slot_->object.get(); }
    const std::shared_ptr<Object>& shared() const { return slot_->object; }

   private:
    Handles* table_ = nullptr;
    Slot* slot_ = nullptr;
  };

  // The same by the thread that the place belongs to: without a locked instruction.
  class OwnPin {
   public:
    OwnPin(Handles* table, Slot* slot) : table_(table), slot_(slot) {}
    OwnPin(const OwnPin&) = delete;
    OwnPin& operator=(const OwnPin&) = delete;
    ~OwnPin() {
      if (slot_ != nullptr) table_->unpinOwn(*slot_);
    }
    explicit operator bool() const { return slot_ != nullptr; }
    Object& operator*() const { return *slot_->object; }

   private:
    Handles* table_;
    Slot* slot_;
  };

  static constexpr std::size_t kCapacity = 4096;

  Handles() { free_.reserve(kCapacity); }

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

  // None if there is no such object (any more).
  [[gnu::always_inline]] Pin find(const void* handle) {
    Slot& slot = slots_[placeOf(handle)];
    Pin pin = pinned(slot);
    if (!holds(slot, handle) || slot.forks != forkCount()) pin = Pin();
    return pin;
  }

  // None also for all threads but the first that asks so of the handle's place, whose it is for good.
  [[gnu::always_inline]] OwnPin findOwn(const void* handle) {
    Slot& slot = slots_[placeOf(handle)];
    if (slot.owner.load(std::memory_order_relaxed) != thisThread() && !claim(slot, handle))
      return {this, nullptr};
    slot.ownPins.store(slot.ownPins.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    lightFence();
    if (holds(slot, handle) && slot.forks == forkCount()) [[likely]]
      return {this, &slot};
    unpinOwn(slot);
    return {this, nullptr};
  }

  // Was it made by the process that this one was forked from?
  bool isParents(const void* handle) {
    Slot& slot = slots_[placeOf(handle)];
    const Pin pin = pinned(slot);
    return holds(slot, handle) && slot.forks != forkCount();
  }

  // Forgets the handle, whose object goes with its last pin. False if there is no such object.
  bool remove(const void* handle) {
    const Pin pin = find(handle);  // goes after the lock
    if (!pin) return false;
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[placeOf(handle)];
    const bool removed = slot.handle.exchange(0) == reinterpret_cast<std::uintptr_t>(handle);
    if (slot.owner.load() != nullptr) heavyFence();
    return removed;
  }

 private:
  // The object changes only while the handle is 0 and there is no pin. A pin is set before the
  // handle is read, and the handle is cleared before the pins are read, so one sees the other: of own
  // pins by the fence of whoever clears it, who has another pin till then.
  // Every call writes the pins of its communicator, which is one thread's: no two share a line.
  struct alignas(base::kCacheAligned) Slot {
    std::atomic<std::uintptr_t> handle{0};
    std::atomic<std::uint32_t> pins{0};
    std::atomic<std::uint32_t> ownPins{0};  // the owner's alone
    std::atomic<const void*> owner{nullptr};
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
    slot.handle.store(handle);
    return handle;
  }

  Pin pinned(Slot& slot) {
    slot.pins.fetch_add(1);
    return Pin(this, &slot);
  }
  void unpin(Slot& slot) {
    if (slot.pins.fetch_sub(1) == 1 && slot.handle.load() == 0) collect(slot);
  }
  bool claim(Slot& slot, const void* handle) {
    const void* nobody = nullptr;
    return slot.owner.load(std::memory_order_relaxed) == nullptr && holds(slot, handle) &&
           hasHeavyFences() && slot.owner.compare_exchange_strong(nobody, thisThread());
  }
  void unpinOwn(Slot& slot) {
    const std::uint32_t pins = slot.ownPins.load(std::memory_order_relaxed) - 1;
    slot.ownPins.store(pins, std::memory_order_release);
    lightFence();
    if (slot.handle.load(std::memory_order_relaxed) == 0) [[unlikely]]
      collect(slot);
  }
  // Ends an object without a handle, unless it is pinned again by whoever has a stale one.
  void collect(Slot& slot) {
    std::shared_ptr<Object> ended;
    const std::lock_guard lock(mutex_);
    if (slot.pins.load() != 0 || slot.ownPins.load() != 0 || slot.handle.load() != 0 ||
        !slot.object)
      return;
    ended = std::move(slot.object);
    free_.push_back(static_cast<std::size_t>(&slot - slots_.data()));
  }

  static std::uintptr_t encode(std::size_t place, std::uint32_t generation) {
    return std::uintptr_t{kTable} << 56 | std::uintptr_t{generation} << 16 | place << 4 | 1;
  }
  static std::size_t placeOf(const void* handle) {
    return reinterpret_cast<std::uintptr_t>(handle) >> 4 & (kCapacity - 1);
  }
  static bool holds(const Slot& slot, const void* handle) {
    return handle != nullptr && slot.handle.load() == reinterpret_cast<std::uintptr_t>(handle);
  }

  std::array<Slot, kCapacity> slots_;
  ForkSafeMutex mutex_;
  std::vector<std::size_t> free_;
  std::size_t used_ = 0;
};

}  // namespace weft::api
