#include <algorithm>
#include <cstdio>
#include <iterator>

#include "core/codegen/driver/stages.h"
#include "core/codegen/emit/choose.h"
#include "core/graph/passes/passes.h"
#include "core/graph/text.h"
#include "primitives/text/format.h"
#include "sdk/cli/commands.h"
#include "sdk/cli/model_graph.h"

namespace tenon::cli {
namespace {

std::string ops_of(const graph::Graph& region) {
  std::string text;
  for (graph::NodeId id = region.first(); id != graph::kNoNode; id = region.next(id)) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", region.node(id).op->name);
  }
  return text;
}

// Returns the kernel of `region` at `stage`, after a line with its title.
std::string kernel_at(const KernelOptions& options, const std::string& title, const graph::Graph& region) {
  const std::string& stage = options.stage;
  const auto dialect = std::find(std::begin(codegen::kDialectNames), std::end(codegen::kDialectNames), options.emit);
  const codegen::KernelStages stages = codegen::kernel_stages(
      region, codegen::unlimited(static_cast<int32_t>(dialect - std::begin(codegen::kDialectNames))));
  if (stage == "loop") return fmt::format("// {}\n{}", title, stages.loops);
  std::string text;
  for (const codegen::Variant& variant : stages.artifact.variants) {
    text += fmt::format("// {}{}{}\n{}", title, variant.name.empty() ? "" : ", for ", variant.name,
                        stage == "schedule" ? variant.schedule : variant.text.text);
  }
  return text;
}

void print_kernels(const graph::Graph& graph, const KernelOptions& options, size_t* count) {
  for (graph::NodeId id = graph.first(); id != graph::kNoNode; id = graph.next(id)) {
    const graph::Node& node = graph.node(id);
    if (node.op->name == "fused") {
      const std::string title = fmt::format("kernel {}: {}", ++*count, ops_of(*node.regions[0]));
      std::fputs(kernel_at(options, title, *node.regions[0]).c_str(), stdout);
    } else {
      for (const std::shared_ptr<graph::Graph>& region : node.regions) print_kernels(*region, options, count);
    }
  }
}

}  // namespace

int show_kernels(const KernelOptions& options) {
  graph::Graph graph = read_graph(options.graph);
  std::string decisions;
  graph::optimise(&graph, {.exact = false, .fuse = options.stage != "graph", .decisions = &decisions});
  if (options.stage == "graph") return std::fputs(graph::print(graph).c_str(), stdout) < 0 ? 1 : 0;
  if (options.stage == "fuse") return std::fputs((decisions + graph::print(graph)).c_str(), stdout) < 0 ? 1 : 0;
  size_t count = 0;
  print_kernels(graph, options, &count);
  if (count == 0) std::puts("// No ops of the graph become one kernel.");
  return 0;
}

}  // namespace tenon::cli
