// A thread's tables: decisions of the interpreter, found by key. An op takes no lock and touches no shared counter. A
// table's mutex is locked only to change an entry, and by reports. Internal.
//
// There are two tables. Primitives of element-wise ops are found by layout class: two words (op, dtypes, device, rank
// and strides after folding) that serve every shape of the class; this table is direct-mapped and verified. Everything
// else is found by its exact signature: a table with open addressing that grows up to a limit in bytes and then drops
// entries that were unused for long. Threads share the entries (prepared_index.h).
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/interpreter/prepared.h"

namespace tenon {

// Written only by the owning thread, read by reports: relaxed loads and stores.
struct Counters {
  uint64_t launches = 0;
  uint64_t bytes_copied = 0;

  static void add(uint64_t& counter, uint64_t amount) {
    std::atomic_ref<uint64_t> shared(counter);
    shared.store(shared.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
};

// A native element-wise primitive that serves every shape of one layout class.
struct ElementwiseChoice {
  uint64_t key[2] = {};
  Primitive* primitive = nullptr;  // holds one reference
  const OpInfo* op = nullptr;
  Counters counters;
};

// One signature that the thread has met.
struct PreparedEntry {
  uint64_t hash = 0;
  std::shared_ptr<const Prepared> prepared;  // null: the entry is free
  Counters counters;
  bool used = false;  // since the last sweep
};

class Tables {
 public:
  static constexpr size_t kElementwise = 1024;                    // a power of two
  static constexpr uint64_t kPreparedBytes = uint64_t{16} << 20;  // the most bytes for the signatures of one thread

  Tables();
  ~Tables();
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;

  // The entry for `key`. It matches if its key is equal and its primitive is set.
  ElementwiseChoice& elementwise(const uint64_t key[2]) {
    const uint64_t mixed = (key[0] ^ key[1] * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    return elementwise_[mixed >> (64 - std::countr_zero(kElementwise))];
  }
  void set(ElementwiseChoice& entry, const uint64_t key[2], Primitive* primitive, const OpInfo* op);

  // The entry of the signature `key`, or null. Valid until the next insert.
  PreparedEntry* find(uint64_t hash, const uint64_t* key, size_t words);
  // Drops the entry of `key`, if there is one; its counters stay in the report.
  void drop(uint64_t hash, const uint64_t* key, size_t words);
  // Stores `prepared` (its key is set), and returns its entry.
  PreparedEntry* insert(uint64_t hash, std::shared_ptr<const Prepared> prepared);

  // The bytes held for the signatures of this thread.
  uint64_t prepared_bytes() const { return bytes_; }
  void report(std::vector<ExecutionEntry>* entries);

 private:
  void grow();
  size_t free_place(uint64_t hash) const;
  void remove(size_t place);

  std::mutex mutex_;
  std::array<ElementwiseChoice, kElementwise> elementwise_{};
  std::vector<PreparedEntry> entries_;  // the size is a power of two; at most three quarters are used
  size_t taken_ = 0;
  size_t sweep_ = 0;
  uint64_t bytes_ = 0;
};

uint64_t hash_of(const uint64_t* key, size_t words);

// The calling thread's tables, or null before make_tables().
inline thread_local constinit Tables* own_tables = nullptr;
Tables& make_tables();

// The calling thread's tables. They are made at its first op and end with the thread.
inline Tables& tables() { return own_tables != nullptr ? *own_tables : make_tables(); }

}  // namespace tenon
