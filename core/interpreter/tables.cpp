#include "core/interpreter/tables.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "core/device/device_state.h"
#include "core/interpreter/launch_counts.h"

namespace tenon {
namespace {

using ExecutionKey = std::tuple<std::string, std::string, std::string, Rung, std::string, std::string>;
ExecutionKey key_of(const ExecutionEntry& entry) {
  return {entry.op, entry.device, entry.implementation, entry.rung, entry.reason, entry.tier};
}
struct ExecutionCounts {
  uint64_t launches = 0;
  uint64_t bytes_copied = 0;
};

// The tables of all threads, the lists of prepared programs, and the counts of dropped entries and whole graphs.
struct Registry {
  std::mutex mutex;
  std::vector<Tables*> tables;
  std::vector<LaunchCounts*> lists;
  std::map<ExecutionKey, ExecutionCounts> apart;
};

Registry& registry() {
  static auto* registry = new Registry;
  return *registry;
}

// Reads a counter of another thread, which may still count.
uint64_t read(const uint64_t& counter) {
  return std::atomic_ref<uint64_t>(const_cast<uint64_t&>(counter)).load(std::memory_order_relaxed);
}

ExecutionEntry entry_of(const ElementwiseChoice& choice) {
  return {std::string(choice.op->name),
          choice.primitive->device->opened->spelling,
          choice.primitive->implementation,
          Rung::native,
          "",
          read(choice.counters.launches),
          0,
          std::string(tier_name(choice.primitive->tier))};
}

ExecutionEntry entry_of(const PreparedEntry& entry) {
  const Prepared& prepared = *entry.prepared;
  return {std::string(prepared.op->name),
          prepared.device->opened->spelling,
          prepared.primitive ? prepared.primitive->implementation : "",
          prepared.rung,
          prepared.reason,
          read(entry.counters.launches),
          read(entry.counters.bytes_copied),
          prepared.primitive ? std::string(tier_name(prepared.primitive->tier)) : ""};
}

// The caller holds the registry's mutex.
void add(const ExecutionEntry& entry, std::map<ExecutionKey, ExecutionCounts>* counts) {
  if (entry.launches == 0) return;
  ExecutionCounts& sum = (*counts)[key_of(entry)];
  sum.launches += entry.launches;
  sum.bytes_copied += entry.bytes_copied;
}

void add_apart(const ExecutionEntry& entry) {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  add(entry, &all.apart);
}

}  // namespace

Tables::Tables() {
  std::lock_guard lock(registry().mutex);
  registry().tables.push_back(this);
}

Tables::~Tables() {
  {
    std::lock_guard lock(registry().mutex);
    std::erase(registry().tables, this);
  }
  for (ElementwiseChoice& entry : elementwise_) {
    if (entry.primitive == nullptr) continue;
    add_apart(entry_of(entry));
    entry.primitive->release();
  }
  for (const PreparedEntry& entry : entries_) {
    if (entry.prepared != nullptr) add_apart(entry_of(entry));
  }
}

void Tables::set(ElementwiseChoice& entry, const uint64_t key[2], Primitive* primitive, const OpInfo* op) {
  ExecutionEntry old;
  Primitive* dropped = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (entry.primitive != nullptr) old = entry_of(entry);
    dropped = entry.primitive;
    entry.key[0] = key[0];
    entry.key[1] = key[1];
    entry.primitive = primitive;
    entry.op = op;
    entry.counters = {};
  }
  if (dropped == nullptr) return;
  add_apart(old);
  dropped->release();
}

// Two words at a time, since each product depends on the previous one. Both halves of a product count.
uint64_t hash_of(const uint64_t* key, size_t words) {
  const auto mixed = [](uint64_t a, uint64_t b) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  constexpr uint64_t one = 0x9fb21c651e98df25u, other = 0xd6e8feb86659fd93u;
  uint64_t hash = words * one;
  size_t i = 0;
  for (; i + 1 < words; i += 2) hash = mixed(hash ^ key[i] ^ one, key[i + 1] ^ other);
  return i < words ? mixed(hash ^ key[i] ^ one, other) : hash;
}

PreparedEntry* Tables::find(uint64_t hash, const uint64_t* key, size_t words) {
  if (entries_.empty()) return nullptr;
  const size_t mask = entries_.size() - 1;
  for (size_t place = hash & mask;; place = (place + 1) & mask) {
    PreparedEntry& entry = entries_[place];
    if (entry.prepared == nullptr) return nullptr;
    if (entry.hash != hash || entry.prepared->key.size() != words) continue;
    if (!std::equal(key, key + words, entry.prepared->key.begin())) continue;
    entry.used = true;
    return &entry;
  }
}

size_t Tables::free_place(uint64_t hash) const {
  const size_t mask = entries_.size() - 1;
  size_t place = hash & mask;
  while (entries_[place].prepared != nullptr) place = (place + 1) & mask;
  return place;
}

void Tables::grow() {
  constexpr size_t kFirst = 64;
  if ((taken_ + 1) * 4 <= entries_.size() * 3) return;
  std::vector<PreparedEntry> old(std::max(kFirst, entries_.size() * 2));
  old.swap(entries_);
  bytes_ += (entries_.size() - old.size()) * sizeof(PreparedEntry);
  for (PreparedEntry& entry : old) {
    if (entry.prepared != nullptr) entries_[free_place(entry.hash)] = std::move(entry);
  }
}

// Linear probing without tombstones: a later entry moves into the gap unless the gap is before the entry's own
// position.
void Tables::remove(size_t place) {
  const size_t mask = entries_.size() - 1;
  bytes_ -= entries_[place].prepared->bytes();
  --taken_;
  for (size_t next = (place + 1) & mask; entries_[next].prepared != nullptr; next = (next + 1) & mask) {
    const size_t home = entries_[next].hash & mask;
    if (((next - home) & mask) < ((next - place) & mask)) continue;
    entries_[place] = std::move(entries_[next]);
    place = next;
  }
  entries_[place] = PreparedEntry();
}

void Tables::drop(uint64_t hash, const uint64_t* key, size_t words) {
  PreparedEntry* entry = find(hash, key, words);
  if (entry == nullptr) return;
  const PreparedEntry dropped = *entry;
  {
    std::lock_guard lock(mutex_);
    remove(static_cast<size_t>(entry - entries_.data()));
  }
  add_apart(entry_of(dropped));
}

PreparedEntry* Tables::insert(uint64_t hash, std::shared_ptr<const Prepared> prepared) {
  const Prepared& kept = *prepared;
  std::vector<PreparedEntry> dropped;
  {
    std::lock_guard lock(mutex_);
    grow();
    bytes_ += prepared->bytes();
    ++taken_;
    entries_[free_place(hash)] = {hash, std::move(prepared), {}, true};
    const size_t mask = entries_.size() - 1;
    // The sweep visits each entry at most twice: once to clear `used`, once to drop it.
    for (size_t looked = 0; bytes_ > kPreparedBytes && taken_ > 1 && looked < 2 * entries_.size(); ++looked) {
      PreparedEntry& entry = entries_[sweep_ & mask];
      if (entry.prepared == nullptr || entry.prepared.get() == &kept || std::exchange(entry.used, false)) {
        ++sweep_;
        continue;
      }
      dropped.push_back(entry);
      remove(sweep_ & mask);
    }
  }
  for (const PreparedEntry& entry : dropped) add_apart(entry_of(entry));
  return find(hash, kept.key.data(), kept.key.size());
}

void Tables::report(std::vector<ExecutionEntry>* entries) {
  std::lock_guard lock(mutex_);
  for (const ElementwiseChoice& entry : elementwise_) {
    if (entry.primitive != nullptr) entries->push_back(entry_of(entry));
  }
  for (const PreparedEntry& entry : entries_) {
    if (entry.prepared != nullptr) entries->push_back(entry_of(entry));
  }
}

void count_execution(const ExecutionEntry& entry) { add_apart(entry); }

LaunchCounts::LaunchCounts(std::vector<ExecutionEntry> launches) : launches_(std::move(launches)) {
  std::lock_guard lock(registry().mutex);
  registry().lists.push_back(this);
}

LaunchCounts::~LaunchCounts() {
  Registry& all = registry();
  std::vector<ExecutionEntry> entries;
  report(&entries);
  std::lock_guard lock(all.mutex);
  std::erase(all.lists, this);
  for (const ExecutionEntry& entry : entries) add(entry, &all.apart);
}

void LaunchCounts::report(std::vector<ExecutionEntry>* entries) const {
  const uint64_t runs = runs_.load(std::memory_order_relaxed);
  for (ExecutionEntry entry : launches_) {
    entry.launches *= runs;
    entry.bytes_copied *= runs;
    entries->push_back(std::move(entry));
  }
}

std::vector<ExecutionEntry> execution_report() {
  Registry& all = registry();
  std::map<ExecutionKey, ExecutionCounts> counts;
  {
    std::lock_guard lock(all.mutex);
    counts = all.apart;
    std::vector<ExecutionEntry> live;
    for (Tables* one : all.tables) one->report(&live);
    for (LaunchCounts* one : all.lists) one->report(&live);
    for (const ExecutionEntry& entry : live) add(entry, &counts);
  }
  std::vector<ExecutionEntry> entries;
  for (const auto& [key, sum] : counts) {
    if (sum.launches == 0) continue;
    const auto& [op, device, implementation, rung, reason, tier] = key;
    entries.push_back({op, device, implementation, rung, reason, sum.launches, sum.bytes_copied, tier});
  }
  return entries;
}

namespace {

// Drops the tables when their thread ends. An op that runs later, in the destructor of another thread-local object,
// makes new tables, which stay.
struct TablesGuard {
  ~TablesGuard() {
    delete own_tables;
    own_tables = nullptr;
  }
};

}  // namespace

Tables& make_tables() {
  static thread_local TablesGuard guard;
  static_cast<void>(guard);
  own_tables = new Tables;
  return *own_tables;
}

}  // namespace tenon
