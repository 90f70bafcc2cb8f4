#include "core/codegen/artifact/artifact.h"

#include "core/codegen/artifact/variants.h"
#include "core/codegen/emit/prelude_c.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::codegen {

bool Artifact::holds(size_t variant, std::span<const int64_t> sizes) const {
  if (variant + 1 == variants.size()) return true;
  const Result<int64_t> holds = variants[variant].holds.run(sizes);
  return holds.ok() && holds.value() != 0;
}

size_t Artifact::choose(std::span<const int64_t> sizes) const {
  size_t found = 0;
  while (!holds(found, sizes)) ++found;
  return found;
}

size_t Artifact::general(std::span<const int64_t> sizes) const {
  size_t found = variants.size() - 1;
  for (size_t i = found; i-- > 0;) {
    if (variants[found].wide && !variants[i].wide && holds(i, sizes)) found = i;
  }
  return found;
}

Result<Artifact> make_artifact(const Kernel& kernel, const std::vector<SymDims>& dims, const ep_dialect_info& dialect,
                               const TilesOf& tiles_of) {
  try {
    Artifact artifact;
    artifact.name = kernel.name;
    artifact.parameters = static_cast<uint32_t>(kernel.parameters.size());
    TENON_ASSIGN_OR_RETURN(artifact.variants, make_variants(kernel, dialect, tiles_of));
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

}  // namespace tenon::codegen
