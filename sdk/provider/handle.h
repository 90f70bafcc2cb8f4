// Memory for the structs behind handles. It comes from the host, which counts it and can report a leak.
#pragma once

#include <new>
#include <utility>

#include "ep_api/ep_api.h"

namespace tenon::provider {

// Makes a T and sets its member `host`. Throws std::bad_alloc.
template <class T, class... Args>
T* make(const ep_host* host, Args&&... args) {
  void* memory = host->allocate(host, sizeof(T), alignof(T));
  if (memory == nullptr) throw std::bad_alloc();
  try {
    T* object = new (memory) T{std::forward<Args>(args)...};
    object->host = host;
    return object;
  } catch (...) {
    host->release(host, memory, sizeof(T));
    throw;
  }
}

// Destroys an object that make<T> made, with the same T. NULL is allowed.
template <class T>
void destroy(T* object) noexcept {
  if (object == nullptr) return;
  const ep_host* host = object->host;
  object->~T();
  host->release(host, object, sizeof(T));
}

}  // namespace tenon::provider
