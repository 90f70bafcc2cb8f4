// Kept: what translators build from the constants of one node (trees, tables, tensors on the device), for all its runs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <typeindex>
#include <utility>

namespace tenon::onnx {

// A copy begins empty, because the attributes of a copied node may still change. Threads: any.
class Kept {
 public:
  Kept() = default;
  Kept(const Kept&) {}
  Kept(Kept&& other) noexcept : values_(std::move(other.values_)) {}
  Kept& operator=(const Kept& other) {
    if (this != &other) values_.clear();
    return *this;
  }
  Kept& operator=(Kept&& other) noexcept {
    values_ = std::move(other.values_);
    return *this;
  }
  ~Kept() = default;

  // Returns the T called `name` that an earlier call for `place` made, or else keeps the result of `make()`. If `make`
  // throws, nothing is kept.
  template <class T, class Make>
  const T& get(std::string_view name, const void* place, Make make) {
    const Key key(typeid(T), std::string(name), place);
    if (const void* const found = find(key)) return *static_cast<const T*>(found);
    return *static_cast<const T*>(keep(key, std::make_shared<const T>(make())));
  }

 private:
  using Key = std::tuple<std::type_index, std::string, const void*>;

  const void* find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : found->second.get();
  }
  const void* keep(const Key& key, std::shared_ptr<const void> made) {
    const std::lock_guard lock(mutex_);
    return values_.emplace(key, std::move(made)).first->second.get();
  }

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const void>> values_;
};

}  // namespace tenon::onnx
