#include "core/interpreter/choice.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "core/device/device_state.h"

namespace tenon {
namespace {

using ExecutionKey = std::tuple<std::string, std::string, std::string, Rung, std::string>;
struct ExecutionCounts {
  uint64_t launches = 0;
  uint64_t bytes_copied = 0;
};

// Every thread's tables, and the counts of entries that are gone.
struct Registry {
  std::mutex mutex;
  std::vector<ChoiceTables*> tables;
  std::map<ExecutionKey, ExecutionCounts> retired;
};

Registry& registry() {
  static auto* registry = new Registry;
  return *registry;
}

ExecutionEntry entry_of(const ElementwiseChoice& choice) {
  return {std::string(choice.op->name),
          choice.kernel->device->opened->spelling,
          choice.kernel->implementation,
          Rung::native,
          "",
          choice.counters.launches.load(std::memory_order_relaxed),
          0};
}

ExecutionEntry entry_of(const Plan& plan) {
  return {std::string(plan.op->name),
          plan.device->opened->spelling,
          plan.kernel ? plan.kernel->implementation : "",
          plan.rung,
          plan.reason,
          plan.counters.launches.load(std::memory_order_relaxed),
          plan.counters.bytes_copied.load(std::memory_order_relaxed)};
}

void add_retired(const ExecutionEntry& entry) {
  if (entry.launches == 0) return;
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  ExecutionCounts& counts = all.retired[{entry.op, entry.device, entry.implementation, entry.rung, entry.reason}];
  counts.launches += entry.launches;
  counts.bytes_copied += entry.bytes_copied;
}

}  // namespace

ChoiceTables::ChoiceTables() {
  std::lock_guard lock(registry().mutex);
  registry().tables.push_back(this);
}

ChoiceTables::~ChoiceTables() {
  {
    std::lock_guard lock(registry().mutex);
    std::erase(registry().tables, this);
  }
  for (ElementwiseChoice& entry : elementwise_) {
    if (entry.kernel == nullptr) continue;
    retire(entry);
    entry.kernel->release();
  }
  for (const std::unique_ptr<Plan>& plan : plans_) {
    if (plan != nullptr) retire(*plan);
  }
}

void ChoiceTables::retire(const ElementwiseChoice& entry) { add_retired(entry_of(entry)); }
void ChoiceTables::retire(const Plan& plan) { add_retired(entry_of(plan)); }

void ChoiceTables::set(ElementwiseChoice& entry, const uint64_t key[2], Kernel* kernel, const OpInfo* op) {
  ExecutionEntry old;
  Kernel* dropped = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (entry.kernel != nullptr) old = entry_of(entry);
    dropped = entry.kernel;
    entry.key[0] = key[0];
    entry.key[1] = key[1];
    entry.kernel = kernel;
    entry.op = op;
    entry.counters.launches.store(0, std::memory_order_relaxed);
  }
  if (dropped == nullptr) return;
  add_retired(old);
  dropped->release();
}

size_t ChoiceTables::slot_of(const uint64_t* key, size_t words) {
  uint64_t hash = words;
  for (size_t i = 0; i < words; ++i) {
    hash = (hash ^ key[i]) * 0x9fb21c651e98df25u;
    hash ^= hash >> 32;
  }
  return hash % kPlans;
}

Plan* ChoiceTables::find(const uint64_t* key, size_t words) {
  Plan* plan = plans_[slot_of(key, words)].get();
  if (plan == nullptr || plan->key.size() != words) return nullptr;
  return std::equal(key, key + words, plan->key.begin()) ? plan : nullptr;
}

Plan* ChoiceTables::insert(std::unique_ptr<Plan> plan) {
  std::vector<std::unique_ptr<Plan>> dropped;
  Plan* kept = plan.get();
  {
    std::lock_guard lock(mutex_);
    std::unique_ptr<Plan>& slot = plans_[slot_of(plan->key.data(), plan->key.size())];
    if (slot != nullptr) {
      plan_bytes_ -= slot->bytes();
      dropped.push_back(std::move(slot));
    }
    plan_bytes_ += plan->bytes();
    slot = std::move(plan);
    for (size_t looked = 0; plan_bytes_ > kPlanBytes && looked < kPlans; ++looked) {
      std::unique_ptr<Plan>& victim = plans_[sweep_++ % kPlans];
      if (victim == nullptr || victim.get() == kept) continue;
      plan_bytes_ -= victim->bytes();
      dropped.push_back(std::move(victim));
    }
  }
  for (std::unique_ptr<Plan>& old : dropped) retire(*old);
  for (std::unique_ptr<Plan>& old : dropped) {
    if (old->running > 0) replaced_.push_back(std::move(old));
  }
  std::erase_if(replaced_, [](const std::unique_ptr<Plan>& plan) { return plan->running == 0; });
  return kept;
}

void ChoiceTables::report(std::vector<ExecutionEntry>* entries) {
  std::lock_guard lock(mutex_);
  for (const ElementwiseChoice& entry : elementwise_) {
    if (entry.kernel != nullptr) entries->push_back(entry_of(entry));
  }
  for (const std::unique_ptr<Plan>& plan : plans_) {
    if (plan != nullptr) entries->push_back(entry_of(*plan));
  }
}

std::vector<ExecutionEntry> execution_report() {
  Registry& all = registry();
  std::map<ExecutionKey, ExecutionCounts> counts;
  {
    std::lock_guard lock(all.mutex);
    counts = all.retired;
    std::vector<ExecutionEntry> live;
    for (ChoiceTables* tables : all.tables) tables->report(&live);
    for (const ExecutionEntry& entry : live) {
      ExecutionCounts& sum = counts[{entry.op, entry.device, entry.implementation, entry.rung, entry.reason}];
      sum.launches += entry.launches;
      sum.bytes_copied += entry.bytes_copied;
    }
  }
  std::vector<ExecutionEntry> entries;
  for (const auto& [key, sum] : counts) {
    if (sum.launches == 0) continue;
    const auto& [op, device, implementation, rung, reason] = key;
    entries.push_back({op, device, implementation, rung, reason, sum.launches, sum.bytes_copied});
  }
  return entries;
}

namespace {

thread_local constinit ChoiceTables* own_tables = nullptr;

// Takes the tables away when their thread ends. An op that runs later still, in the destructor of some other
// thread-local object, makes new ones, which stay.
struct TablesGuard {
  ~TablesGuard() {
    delete own_tables;
    own_tables = nullptr;
  }
};

ChoiceTables& make_tables() {
  static thread_local TablesGuard guard;
  static_cast<void>(guard);
  own_tables = new ChoiceTables;
  return *own_tables;
}

}  // namespace

ChoiceTables& choice_tables() { return own_tables != nullptr ? *own_tables : make_tables(); }

}  // namespace tenon
