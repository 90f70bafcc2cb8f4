// Passes: functions that rewrite a graph into one that computes the same, faster. Each is a row of passes(). A pass is
// idempotent. An exact pass keeps the bits of every result, NaN, -0 and rounding included; a bounded pass moves them by
// no more than its row says.
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

// Constants that passes have made of other constants, so that several graphs of one model share them. Threads: any.
class TENON_API FoldedConstants {
 public:
  // What `make` gave for `key` and these constants before, or gives now.
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
    TensorList from;  // kept, so that no other tensor gets their addresses
    TensorList made;
  };
  std::mutex mutex_;
  std::map<std::vector<uint64_t>, Folded> made_;
};

struct PassOptions {
  bool exact = false;                 // only exact passes
  FoldedConstants* folded = nullptr;  // null: nothing is shared with other graphs
  std::optional<bool> fuse = {};      // whether nodes become kernels; as TENON_FUSE says, if it is not given
  std::string* decisions = nullptr;   // gets a line for each decision of the pass `fuse`
  // Of the passes `order` and `recompute` (recompute.h); null: inputs are held, and nothing is computed again.
  const RecomputeOptions* recompute = nullptr;
};

struct Pass {
  std::string_view name;   // "epilogues"
  std::string_view about;  // what it does, in a sentence
  std::string_view bound;  // by how much it may move a result; empty: it is exact
  void (*run)(Graph* graph, const PassOptions& options) = nullptr;
};

// All passes, in the order in which optimise() runs them.
TENON_API std::span<const Pass> passes();
// Errors: not_found, with the nearest name.
TENON_API const Pass& find_pass(std::string_view name);
// Runs all passes that `options` allow.
TENON_API void optimise(Graph* graph, const PassOptions& options = {});

// Whether optimise() makes nodes kernels.
bool fuses(const PassOptions& options);

// remove_dead_code in `graph` and in all regions.
void remove_dead_code_everywhere(Graph* graph);

// The passes themselves: but for the first one, each looks at the nodes of one graph, not into their regions.
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
