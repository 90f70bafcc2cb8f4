#include "core/codegen/driver/stages.h"

#include "core/codegen/lower/lower.h"
#include "core/graph/passes/dump.h"
#include "core/graph/text.h"
#include "loader/settings/settings.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

uint32_t symbol_number(const symbolic::Arena& arena, SymDim symbol) {
  for (uint32_t i = 0; i < arena.symbols().size(); ++i) {
    if (identical(arena.symbol_at(i), symbol)) return i;
  }
  throw Error(Code::internal, "A parameter of a kernel is not a symbol of its program.");
}

}  // namespace

KernelStages kernel_stages(const graph::Graph& region, const ep_dialect_info& dialect,
                           const std::function<TilesOf(const Kernel&)>& tiles_of) {
  graph::Graph copy = region.copy();
  KernelStages stages(lower(&copy, fmt::format("fused_{}", region.size())));
  const Kernel& kernel = stages.kernel;
  for (const Parameter& parameter : kernel.parameters) {
    stages.symbols.push_back(symbol_number(copy.arena(), parameter.symbol));
  }
  stages.loops = to_string(kernel);
  stages.artifact =
      value_or_throw(make_artifact(kernel, {}, dialect, tiles_of != nullptr ? tiles_of(kernel) : nullptr));
  return stages;
}

std::string text_file(const Artifact& artifact, size_t number) {
  const auto dialect = static_cast<size_t>(artifact.variants[number].text.dialect);
  return fmt::format("text-{}.{}", number, kDialectNames[dialect]);
}

std::string dump_stages(const graph::Graph& region, const KernelStages& stages) {
  if (loader::settings().dump.empty()) return {};
  const std::string folder = graph::new_dump_folder(loader::settings().dump, stages.name);
  graph::append_dump(folder + "/graph.txt", graph::print(region));
  graph::append_dump(folder + "/loops.txt", stages.loops);
  for (size_t i = 0; i < stages.artifact.variants.size(); ++i) {
    const Variant& variant = stages.artifact.variants[i];
    graph::append_dump(fmt::format("{}/schedule-{}.txt", folder, i), variant.schedule);
    graph::append_dump(fmt::format("{}/{}", folder, text_file(stages.artifact, i)), variant.text.text);
  }
  return folder;
}

}  // namespace tenon::codegen
