#include "core/graph/passes/passes.h"

#include "core/graph/passes/dump.h"
#include "core/graph/regions/regions.h"
#include "loader/settings/settings.h"
#include "primitives/text/format.h"
#include "primitives/text/nearest.h"

namespace tenon::graph {
namespace {

constexpr std::string_view kRounding = "a few roundings of the result's dtype";
constexpr std::string_view kOrder = "kernels may add in another order: a few roundings of the result's dtype";
constexpr std::string_view kAttention =
    "a few roundings of the result's dtype; a query all of whose scores are -inf gives 0 instead of NaN";

// Runs the pass in the regions of a graph, the innermost first, and then in the graph.
template <auto run>
void everywhere(Graph* graph, const PassOptions& options) {
  for_each_region(*graph, [&](Graph& region) { everywhere<run>(&region, options); });
  run(graph, options);
}

constexpr std::string_view kStep = "one step of a quantised result, if its value lies between two steps";

constexpr Pass kPasses[] = {
    {"quantised", "computes products and sums of quantised tensors on integers", kStep, everywhere<compute_on_numbers>},
    {"fold_constants", "computes nodes whose inputs are all constants", "", everywhere<fold_constants>},
    {"slices", "turns gathers of one known position, or of consecutive ones, into views", kOrder,
     everywhere<find_slices>},
    {"groups", "multiplies keys and values that heads share without repeating them", kRounding,
     everywhere<join_groups>},
    {"redundant", "removes nodes that change nothing, and joins views of views", "", everywhere<remove_redundant>},
    {"common", "computes equal nodes once", "", everywhere<merge_common>},
    {"regions", "moves constants into regions, removes inputs that they do not read, and inlines known branches", "",
     simplify_regions},
    {"attention", "replaces the products and the softmax of an attention by one op", kAttention,
     everywhere<find_attention>},
    {"layer_norm", "replaces the nine nodes of a layer norm by one", kRounding, everywhere<find_layer_norms>},
    {"gelu", "replaces the five nodes of a gelu by one", kRounding, everywhere<find_gelus>},
    {"cheaper", "replaces squares, inverse roots and silu that are written in expensive ops", kRounding,
     everywhere<find_cheaper_ops>},
    {"picked", "computes a classification loss and its gradient without a tensor of all logarithms", kRounding,
     everywhere<find_picked>},
    {"batch_norm", "folds batch norms into the weights of the convolution before", kRounding,
     everywhere<fold_batch_norms>},
    {"merge", "merges products of one row by several constant matrices", kRounding, everywhere<merge_products>},
    {"epilogues", "adds the ops after a product to its launch, if the device has a fast kernel for both", kRounding,
     everywhere<take_epilogues>},
    {"dead_code", "removes nodes that no output needs", "", everywhere<remove_dead_code>},
    {"layout", "makes values channels-last where that costs least", kOrder, everywhere<choose_orders>},
    {"fuse", "fuses nodes that one kernel can compute into one node", kOrder, fuse},
    {"order", "orders nodes so that fewer bytes live at once", "", order_nodes},
    {"recompute", "computes values again so that they need not be kept", "", recompute},
};

}  // namespace

bool fuses(const PassOptions& options) {
  return !options.exact && options.fuse.value_or(loader::settings().fuse != loader::Fuse::off);
}

void remove_dead_code_everywhere(Graph* graph) { everywhere<remove_dead_code>(graph, {}); }

std::span<const Pass> passes() { return kPasses; }

const Pass& find_pass(std::string_view name) {
  std::vector<std::string> names;
  std::string all;
  for (const Pass& pass : kPasses) {
    if (pass.name == name) return pass;
    names.emplace_back(pass.name);
    all += (all.empty() ? "" : ", ") + names.back();
  }
  const std::string nearest = nearest_word(name, names);
  throw Error(Code::not_found, fmt::format("There is no pass '{}'{}; the passes are {}.", name,
                                           nearest.empty() ? "" : fmt::format(", perhaps '{}'", nearest), all));
}

void optimise(Graph* graph, const PassOptions& options) {
  Dump dump(loader::settings().dump, *graph);
  std::string decisions;
  PassOptions given = options;
  if (given.decisions == nullptr && !dump.folder().empty()) given.decisions = &decisions;
  for (size_t i = 0; i < std::size(kPasses); ++i) {
    if (options.exact && !kPasses[i].bound.empty()) continue;
    if (kPasses[i].run == fuse && !fuses(options)) continue;
    kPasses[i].run(graph, given);
    dump.stage(i + 1, kPasses[i].name, *graph);
    if (kPasses[i].run == fuse) dump.note(i + 1, kPasses[i].name, decisions);
  }
}

}  // namespace tenon::graph
