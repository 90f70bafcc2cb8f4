#include "core/compiler/artifact/artifact.h"

#include <optional>

#include "core/compiler/emit/prelude_c.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::compiler {
namespace {

// Rows of so many numbers of four bytes fit into local memory, with another row beside them.
constexpr int64_t kShortRow = 8192;

// `kernel` with loops of `tiles`, if they add in the same order as `plain`, which has its default loops.
std::optional<KernelText> tiled(Kernel* kernel, const Kernel& plain, const ep_dialect_info& dialect,
                                const Tiles& tiles) {
  Result<KernelText> text = print_for(kernel, dialect, tiles);
  if (!text.ok() || sums_text(*kernel) != sums_text(plain)) return std::nullopt;
  return std::move(text).value();
}

Result<Variant> make_variant(Kernel kernel, std::span<const Condition> conditions, const ep_dialect_info& dialect,
                             const TilesOf& tiles_of) {
  {
    const symbolic::ArenaScope scope(kernel.arena);
    for (const Condition& condition : conditions) kernel.arena.assume(condition);
  }
  Variant variant;
  for (const Condition& condition : conditions) {
    variant.name += (variant.name.empty() ? "" : " and ") + kernel.arena.text(condition);
  }
  TENON_ASSIGN_OR_RETURN(variant.holds, Program::all(kernel, conditions));
  const Tiles tiles = tiles_of != nullptr ? tiles_of(variant.name) : Tiles();
  std::optional<Kernel> other;
  if (!(tiles == Tiles())) other = kernel;
  TENON_ASSIGN_OR_RETURN(variant.text, print_for(&kernel, dialect));
  if (other) {
    if (std::optional<KernelText> text = tiled(&*other, kernel, dialect, tiles)) {
      variant.text = std::move(*text);
      variant.tiles = tiles;
      kernel = std::move(*other);
    }
  }
  TENON_ASSIGN_OR_RETURN(const Program extent, Program::of(kernel, kernel.axes[kernel.body[0].axis].extent));
  variant.items = extent.chunks(kernel.body[0].step);
  variant.schedule = to_string(kernel);
  return variant;
}

}  // namespace

Result<size_t> Artifact::choose(std::span<const int64_t> sizes) const {
  for (size_t i = 0; i + 1 < variants.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(const int64_t holds, variants[i].holds.run(sizes));
    if (holds != 0) return i;
  }
  return variants.size() - 1;
}

Result<Artifact> make_artifact(const Kernel& kernel, const std::vector<SymDims>& dims, const ep_dialect_info& dialect,
                               const TilesOf& tiles_of) {
  try {
    Artifact artifact;
    artifact.name = kernel.name;
    artifact.parameters = static_cast<uint32_t>(kernel.parameters.size());
    TENON_ASSIGN_OR_RETURN(Variant general, make_variant(kernel, {}, dialect, nullptr));
    std::vector<Condition> conditions;
    for (const Axis& axis : kernel.axes) {
      const bool is_long = kernel.arena.range(axis.extent).hi > kShortRow;
      bool in_rows = false;
      for (const Stage& stage : kernel.stages) {
        for (const Id reduced : stage.reduce_axes) in_rows = in_rows || &kernel.axes[reduced] == &axis;
      }
      if (is_long && in_rows && !axis.extent.is_number()) conditions.push_back(axis.extent <= SymDim(kShortRow));
    }
    // Which variants there are does not depend on tiles.
    bool has_short_rows = false;
    if (!conditions.empty()) {
      TENON_ASSIGN_OR_RETURN(Variant of_short_rows, make_variant(kernel, conditions, dialect, nullptr));
      has_short_rows = of_short_rows.text.text != general.text.text;
      if (has_short_rows) artifact.variants.push_back(std::move(of_short_rows));
    }
    artifact.variants.push_back(std::move(general));
    for (size_t i = 0; tiles_of != nullptr && i < artifact.variants.size(); ++i) {
      const bool is_short = has_short_rows && i == 0;
      TENON_ASSIGN_OR_RETURN(artifact.variants[i],
                             make_variant(kernel, is_short ? conditions : std::vector<Condition>(), dialect, tiles_of));
    }
    for (const SymDims& output : dims) {
      artifact.dims.emplace_back();
      for (const SymDim size : output) {
        TENON_ASSIGN_OR_RETURN(Program program, Program::of(kernel, size));
        artifact.dims.back().push_back(std::move(program));
      }
    }
    return artifact;
  } catch (const Error& error) {
    return error.status();
  }
}

std::string infer_shape_c(const Artifact& artifact) {
  std::string text(prelude_c_types());
  text += fmt::format("int {}_infer_shape(const int64_t* p, int64_t* out);\n", artifact.name);
  text += fmt::format("int {}_infer_shape(const int64_t* p, int64_t* out) {{\n  (void)p;\n", artifact.name);
  size_t at = 0;
  for (const std::vector<Program>& output : artifact.dims) {
    for (const Program& size : output) text += fmt::format("  out[{}] = {};\n", at++, size.c_text());
  }
  return text + "  return 0;\n}\n";
}

}  // namespace tenon::compiler
