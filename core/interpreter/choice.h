// The per-thread kernel-choice tables: what the interpreter has decided, found again by key. No locks, no shared
// counters on the way of an op; a table's mutex is taken when an entry changes and by reports.
//
// Two tables. Elementwise choices are keyed by two words (op, dtypes, device, rank and layout class after folding), so
// one entry serves every shape of its class. Plans are keyed by the exact signature. Both are direct-mapped and
// verified.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/interpreter/plan.h"

namespace tenon {

// A native elementwise kernel that serves every shape of one layout class.
struct ElementwiseChoice {
  uint64_t key[2] = {};
  Kernel* kernel = nullptr;  // one reference
  const OpInfo* op = nullptr;
  Counters counters;
};

class ChoiceTables {
 public:
  static constexpr size_t kElementwise = 256;
  static constexpr size_t kPlans = 512;
  static constexpr uint64_t kPlanBytes = uint64_t{2} << 20;  // bound of what the plans of one thread hold

  ChoiceTables();
  ~ChoiceTables();
  ChoiceTables(const ChoiceTables&) = delete;
  ChoiceTables& operator=(const ChoiceTables&) = delete;

  // The entry where `key` belongs; it matches if its key is equal and its kernel is set.
  ElementwiseChoice& elementwise(const uint64_t key[2]) {
    const uint64_t mixed = (key[0] ^ key[1] * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    return elementwise_[mixed >> 56];
  }
  void set(ElementwiseChoice& entry, const uint64_t key[2], Kernel* kernel, const OpInfo* op);

  // The plan of `key`, or null.
  Plan* find(const uint64_t* key, size_t words);
  // Keeps `plan` (its key is set), in place of what stood there.
  Plan* insert(std::unique_ptr<Plan> plan);

  void report(std::vector<ExecutionEntry>* entries);

 private:
  static size_t slot_of(const uint64_t* key, size_t words);
  void retire(const ElementwiseChoice& entry);
  void retire(const Plan& plan);

  std::mutex mutex_;
  std::array<ElementwiseChoice, kElementwise> elementwise_{};
  std::array<std::unique_ptr<Plan>, kPlans> plans_{};
  std::vector<std::unique_ptr<Plan>> replaced_;  // while they run
  uint64_t plan_bytes_ = 0;
  size_t sweep_ = 0;
};

// The calling thread's tables; made at its first op, gone with it.
ChoiceTables& choice_tables();

}  // namespace tenon
