#include "core/interpreter/prepared_index.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tenon {
namespace {

// The entries by hash. Entries with equal hashes are rare and kept together.
struct Index {
  std::mutex mutex;
  std::unordered_multimap<uint64_t, std::weak_ptr<const Prepared>> all;
};

Index& index() {
  static auto* one = new Index;
  return *one;
}

bool has_key(const Prepared& prepared, const uint64_t* key, size_t words) {
  return prepared.key.size() == words && std::equal(key, key + words, prepared.key.begin());
}

using Held = std::vector<std::shared_ptr<const Prepared>>;

// The entry for `key`; the caller holds the mutex. `others` gets the other entries that were examined: they may be the
// last references, and the destructor of a Prepared locks the mutex.
std::shared_ptr<const Prepared> find_locked(uint64_t hash, const uint64_t* key, size_t words, Held* others) {
  const auto [first, last] = index().all.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    std::shared_ptr<const Prepared> prepared = at->second.lock();
    if (prepared == nullptr) continue;
    if (has_key(*prepared, key, words)) return prepared;
    others->push_back(std::move(prepared));
  }
  return nullptr;
}

// The deleter of a Prepared that is no longer used.
struct Forget {
  uint64_t hash;
  void operator()(const Prepared* prepared) const {
    {
      std::lock_guard lock(index().mutex);
      const auto [first, last] = index().all.equal_range(hash);
      for (auto at = first; at != last;) at = at->second.expired() ? index().all.erase(at) : std::next(at);
    }
    delete prepared;
  }
};

}  // namespace

std::shared_ptr<const Prepared> find_prepared(uint64_t hash, const uint64_t* key, size_t words) {
  Held others;
  std::lock_guard lock(index().mutex);
  return find_locked(hash, key, words, &others);
}

std::shared_ptr<const Prepared> share_prepared(uint64_t hash, std::unique_ptr<Prepared> prepared) {
  std::shared_ptr<const Prepared> mine(prepared.release(), Forget{hash});
  Held others;
  std::lock_guard lock(index().mutex);
  std::shared_ptr<const Prepared> shared = find_locked(hash, mine->key.data(), mine->key.size(), &others);
  if (shared != nullptr) return shared;
  index().all.emplace(hash, mine);
  return mine;
}

std::shared_ptr<const Prepared> share_instead(uint64_t hash, std::unique_ptr<Prepared> prepared) {
  std::shared_ptr<const Prepared> mine(prepared.release(), Forget{hash});
  Held others;
  std::shared_ptr<const Prepared> shared;  // released after the lock, like `others`
  std::lock_guard lock(index().mutex);
  shared = find_locked(hash, mine->key.data(), mine->key.size(), &others);
  if (shared != nullptr && shared->sizes == mine->sizes && !shared->outdated()) return shared;
  const auto [first, last] = index().all.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    if (shared == nullptr || at->second.owner_before(shared) || shared.owner_before(at->second)) continue;
    at->second = mine;
    return mine;
  }
  index().all.emplace(hash, mine);
  return mine;
}

}  // namespace tenon
