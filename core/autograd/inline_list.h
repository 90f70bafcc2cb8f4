// InlineList<T, N>: a list whose length is set once. Up to N items are stored in the object, more on the heap.
// Internal.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace tenon::autograd {

template <class T, size_t N>
class InlineList {
 public:
  InlineList() = default;
  InlineList(const InlineList&) = delete;
  InlineList& operator=(const InlineList&) = delete;

  // Makes room for `size` items, once, while the list is empty.
  void set_size(size_t size) {
    if (size > N) many_ = std::make_unique<T[]>(size);
    size_ = static_cast<uint32_t>(size);
  }
  size_t size() const { return size_; }
  T* data() { return size_ > N ? many_.get() : few_; }
  const T* data() const { return size_ > N ? many_.get() : few_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  std::span<T> items() { return {data(), size_}; }
  std::span<const T> items() const { return {data(), size_}; }

 private:
  T few_[N];
  std::unique_ptr<T[]> many_;
  uint32_t size_ = 0;
};

}  // namespace tenon::autograd
