// Recent: a map of bounded size that drops the least recently used entry. Recordings, and the programs prepared from
// them, are kept in such maps, whose sizes are listed here.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <utility>

namespace tenon::graph {

// The most recordings that a caller keeps of one function, model or pattern. For other sizes a compiled function runs
// eagerly and a pattern runs on another rung, since each may be given new sizes forever; a model drops a recording,
// since it has no other way to run as one graph.
constexpr size_t kMostRecordings = 8;
constexpr size_t kMostExecutables = 256;  // per recording of a compiled function, one per set of sizes
constexpr size_t kMostPatterns = 1024;    // in the process: calls that kernels compute
constexpr size_t kMostCounted = 16384;    // in the process: patterns whose calls are counted
constexpr size_t kMostKernels = 1024;     // in the process: regions with their kernels

// Threads: one at a time.
template <class Key, class Value>
class Recent {
 public:
  using Entry = std::pair<const Key, Value>;

  // Keeps at most `most` entries, and at least one.
  explicit Recent(size_t most) : most_(most == 0 ? 1 : most) {}
  Recent(const Recent&) = delete;
  Recent& operator=(const Recent&) = delete;
  Recent(Recent&&) noexcept = default;
  Recent& operator=(Recent&&) noexcept = default;

  // The value of `key`, which becomes the most recently used; null if there is none. The pointer is valid until the
  // entry is dropped.
  Value* find(const Key& key) {
    if (!entries_.empty() && entries_.front().first == key) return &entries_.front().second;
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    use(found->second);
    return &found->second->second;
  }
  bool contains(const Key& key) const { return places_.count(key) != 0; }

  // Adds `key`, or replaces its value. It becomes the most recently used. Returns the entry that this drops.
  std::optional<Entry> keep(Key key, Value value) {
    if (const auto found = places_.find(key); found != places_.end()) {
      found->second->second = std::move(value);
      use(found->second);
      return std::nullopt;
    }
    std::optional<Entry> dropped;
    if (entries_.size() == most_) {
      places_.erase(entries_.back().first);
      dropped.emplace(std::move(entries_.back()));
      entries_.pop_back();
    }
    entries_.emplace_front(std::move(key), std::move(value));
    places_.emplace(entries_.front().first, entries_.begin());
    return dropped;
  }

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  // The most recently used entry comes first.
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  using Entries = std::list<Entry>;

  void use(typename Entries::iterator entry) {
    if (entry != entries_.begin()) entries_.splice(entries_.begin(), entries_, entry);
  }

  size_t most_;
  Entries entries_;
  // The keys are those of the entries, which do not move.
  std::map<std::reference_wrapper<const Key>, typename Entries::iterator, std::less<Key>> places_;
};

}  // namespace tenon::graph
