// Passes: functions that rewrite a graph into a faster one that computes the same. Each is a row of passes(). A pass is
// idempotent. An exact pass keeps the bits of every result, including NaN, -0 and rounding; a bounded pass changes them
// by at most the bound in its row.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/export.h"
#include "core/graph/graph.h"

namespace tenon::graph {

struct RecomputeOptions;

// Constants that passes computed from other constants, shared by the graphs of one model. Threads: any.
class TENON_API FoldedConstants {
 public:
  // Returns the result of `make` for `key` and these constants; calls it at most once.
  template <class F>
  TensorList get(uint64_t key, const TensorList& from, F make) {
    const std::lock_guard lock(mutex_);
    std::vector<uint64_t> words{key};
    for (const Tensor& tensor : from) words.push_back(reinterpret_cast<uintptr_t>(tensor.impl()));
    const auto found = made_.find(words);
    if (found != made_.end()) return found->second.made;
    return made_.emplace(std::move(words), Folded{from, make()}).first->second.made;
  }

 private:
  struct Folded {
    TensorList from;  // kept alive so that their addresses are not reused
    TensorList made;
  };
  std::mutex mutex_;
  std::map<std::vector<uint64_t>, Folded> made_;
};

struct PassOptions {
  bool exact = false;                 // run only exact passes
  FoldedConstants* folded = nullptr;  // null: shares nothing with other graphs
  std::optional<bool> fuse = {};      // fuses nodes into kernels; default: the setting TENON_FUSE
  std::string* decisions = nullptr;   // receives one line per decision of the pass `fuse`
  // Options of the passes `order` and `recompute` (recompute.h). Null: all inputs count as held, and nothing is
  // computed again.
  const RecomputeOptions* recompute = nullptr;
};

struct Pass {
  std::string_view name;   // "epilogues"
  std::string_view about;  // one sentence on what the pass does
  std::string_view bound;  // how far it may change a result; empty: it is exact
  void (*run)(Graph* graph, const PassOptions& options) = nullptr;
};

// All passes, in the order in which optimise() runs them.
TENON_API std::span<const Pass> passes();
// Errors: not_found, with the most similar name.
TENON_API const Pass& find_pass(std::string_view name);
// Runs all passes that `options` allow.
TENON_API void optimise(Graph* graph, const PassOptions& options = {});

// True if optimise() fuses nodes into kernels.
bool fuses(const PassOptions& options);

// Runs remove_dead_code on `graph` and all its regions.
void remove_dead_code_everywhere(Graph* graph);

// The passes. All except the first look at the nodes of one graph, not into their regions.
void simplify_regions(Graph* graph, const PassOptions& options);
void compute_on_numbers(Graph* graph, const PassOptions& options);
void fold_constants(Graph* graph, const PassOptions& options);
void remove_redundant(Graph* graph, const PassOptions& options);
void merge_common(Graph* graph, const PassOptions& options);
void find_slices(Graph* graph, const PassOptions& options);
void find_layer_norms(Graph* graph, const PassOptions& options);
void find_attention(Graph* graph, const PassOptions& options);
void find_gelus(Graph* graph, const PassOptions& options);
void find_picked(Graph* graph, const PassOptions& options);
void find_cheaper_ops(Graph* graph, const PassOptions& options);
void fold_batch_norms(Graph* graph, const PassOptions& options);
void join_groups(Graph* graph, const PassOptions& options);
void merge_products(Graph* graph, const PassOptions& options);
void take_epilogues(Graph* graph, const PassOptions& options);
void remove_dead_code(Graph* graph, const PassOptions& options = {});
void choose_orders(Graph* graph, const PassOptions& options = {});
void fuse(Graph* graph, const PassOptions& options);
void order_nodes(Graph* graph, const PassOptions& options);
void recompute(Graph* graph, const PassOptions& options);

}  // namespace tenon::graph
