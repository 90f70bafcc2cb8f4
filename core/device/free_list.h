// FreeList<T>: freed objects of one type, kept per thread for reuse, so that making and dropping one costs no call of
// the heap. Objects may be freed by another thread than the one that made them.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "ep_api/ep_api.h"

namespace tenon::memory {

template <class T, int kKept = 256>
class FreeList {
 public:
  template <class... Args>
  static T* make(Args&&... args) {
    void* place = head_;
    if (place != nullptr) [[likely]] {
      head_ = head_->next;
      --size_;
    } else {
      place = ::operator new(sizeof(T), std::align_val_t(alignof(T)));
    }
    if constexpr (sizeof...(Args) == 0) {
      return new (place) T;  // braces would zero what T leaves as it is
    } else {
      return new (place) T{std::forward<Args>(args)...};
    }
  }

  static void destroy(T* object) {
    object->~T();
    if (kHeapOnly) return release(object);
    if (size_ >= limit_) [[unlikely]] {
      if (!arm()) return release(object);
    }
    head_ = new (object) Node{head_};
    ++size_;
  }

 private:
  struct Node {
    Node* next;
  };
  static_assert(sizeof(T) >= sizeof(Node));

  // Empties the list when its thread ends; what is freed on that thread afterwards goes straight to the heap.
  struct Guard {
    ~Guard() {
      limit_ = -1;
      while (head_ != nullptr) release(std::exchange(head_, head_->next));
      size_ = 0;
    }
  };

  // So that the address sanitizer sees every life.
  static constexpr bool kHeapOnly = EP_SANITIZER_OF_THIS_BUILD == EP_SANITIZER_ADDRESS;

  static void release(void* place) { ::operator delete(place, std::align_val_t(alignof(T))); }

  // The first free of a thread arms the guard. False: the list is full or its thread is ending.
  static bool arm() {
    if (limit_ != 0) return false;
    static thread_local Guard guard;
    static_cast<void>(guard);
    limit_ = kKept;
    return true;
  }

  static inline thread_local constinit Node* head_ = nullptr;
  static inline thread_local constinit int size_ = 0;
  static inline thread_local constinit int limit_ = 0;  // 0: not armed yet, -1: the thread is ending
};

}  // namespace tenon::memory
