// FreeList<T>: freed objects of one type, kept per thread for reuse, so that making and dropping an object needs no
// heap call. A thread may free an object that another thread made: a full list moves half of its objects to a shared
// list, and an empty list takes a batch from there. Threads: every function is thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>
#include <utility>

#include "ep_api/ep_api.h"

namespace tenon::memory {

template <class T, int kKept = 256>
class FreeList {
 public:
  template <class... Args>
  static T* make(Args&&... args) {
    void* memory = head_;
    if (memory != nullptr) [[likely]] {
      head_ = head_->next;
      --size_;
    } else {
      memory = refill_or_allocate();
    }
    if constexpr (sizeof...(Args) == 0) {
      return new (memory) T;  // braces would zero the members that T leaves uninitialised
    } else {
      return new (memory) T{std::forward<Args>(args)...};
    }
  }

  static void destroy(T* object) {
    object->~T();
    if (kHeapOnly) return release(object);
    if (size_ >= limit_) [[unlikely]] {
      if (!make_room()) return release(object);
    }
    Node* node = new (object) Node;
    node->next = head_;
    head_ = node;
    ++size_;
  }

 private:
  struct Node {
    Node* next;
    Node* next_batch;  // in the first object of a shared batch
  };
  static_assert(sizeof(T) >= sizeof(Node));

  // Empties the list when its thread ends. Objects that the thread frees afterwards are returned to the heap directly.
  struct Guard {
    ~Guard() {
      limit_ = -1;
      while (head_ != nullptr) release(std::exchange(head_, head_->next));
      size_ = 0;
    }
  };

  // True under the address sanitizer, so that it sees the life of every object.
  static constexpr bool kHeapOnly = EP_SANITIZER_OF_THIS_BUILD == EP_SANITIZER_ADDRESS;

  static void release(void* memory) { ::operator delete(memory, std::align_val_t(alignof(T))); }

  static constexpr int kBatch = kKept / 2;
  static constexpr int kMostBatches = 16;

  // The list that all threads share: batches of kBatch objects.
  struct Shared {
    std::mutex mutex;
    Node* first = nullptr;
    std::atomic<int> count{0};
  };

  // Memory for one object, for a thread whose list is empty: takes a shared batch if there is one, else allocates.
  [[gnu::noinline]] static void* refill_or_allocate() {
    if (shared_.count.load(std::memory_order_relaxed) != 0 && limit_ >= 0) {
      arm();
      std::lock_guard lock(shared_.mutex);
      if (shared_.first != nullptr) {
        Node* const memory = std::exchange(shared_.first, shared_.first->next_batch);
        shared_.count.store(shared_.count.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
        head_ = memory->next;
        size_ = kBatch - 1;
        return memory;
      }
    }
    return ::operator new(sizeof(T), std::align_val_t(alignof(T)));
  }

  // Makes room for one more object in a list that is full or not armed. Returns false if there is none.
  [[gnu::noinline]] static bool make_room() { return arm() || spill(); }

  // Moves a batch from a full list to the shared list. False: the shared list is full, or the thread is ending.
  static bool spill() {
    if (limit_ < 0 || shared_.count.load(std::memory_order_relaxed) >= kMostBatches) return false;
    Node* const first = head_;
    Node* last = first;
    for (int i = 1; i < kBatch; ++i) last = last->next;
    head_ = std::exchange(last->next, nullptr);
    size_ -= kBatch;
    std::lock_guard lock(shared_.mutex);
    first->next_batch = std::exchange(shared_.first, first);
    shared_.count.store(shared_.count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return true;
  }

  // The first free on a thread arms the guard. False: the list is full or its thread is ending.
  static bool arm() {
    if (limit_ != 0) return false;
    static thread_local Guard guard;
    static_cast<void>(guard);
    limit_ = kKept;
    return true;
  }

  static inline constinit Shared shared_{};
  static inline thread_local constinit Node* head_ = nullptr;
  static inline thread_local constinit int size_ = 0;
  static inline thread_local constinit int limit_ = 0;  // 0: not armed yet, -1: the thread is ending
};

}  // namespace tenon::memory
