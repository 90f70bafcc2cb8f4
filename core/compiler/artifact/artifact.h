// An artifact: all that a launch needs of a kernel, without the kernel. One text per bucket of sizes, the condition of
// each bucket, numbers of items, and the sizes of outputs, as programs over the kernel's parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/compiler/artifact/program.h"
#include "core/compiler/emit/choose.h"
#include "core/compiler/loop/ir.h"
#include "core/compiler/tactics/tiles.h"
#include "primitives/status/status.h"

namespace tenon::compiler {

// A bucket: the sizes for which `holds` gives 1.
struct Variant {
  std::string name;  // "m <= 8192"; empty: all sizes
  Program holds;
  Program items;
  KernelText text;
  std::string schedule;  // the kernel with its loops
  Tiles tiles;
};

struct Artifact {
  std::string name;
  uint32_t parameters = 0;
  std::vector<Variant> variants;           // the first whose condition holds is meant; the last one's always does
  std::vector<std::vector<Program>> dims;  // of each output: its sizes

  // The number of the variant for these parameters. Errors: those of Program::run.
  Result<size_t> choose(std::span<const int64_t> sizes) const;
};

// A kernel without loops, scheduled and written for a device that compiles `dialect`: once for all sizes, and, where a
// row of a size that is not known would not fit into local memory, once more for rows that do. `dims` are the sizes of
// the outputs, in the arena of the kernel. All variants add in the same order. `tiles_of`, if there is one, gives the
// tiles of a variant by its name; those that do not suit the kernel count as none. Errors: those of print_for.
using TilesOf = std::function<Tiles(const std::string& variant)>;
Result<Artifact> make_artifact(const Kernel& kernel, const std::vector<SymDims>& dims, const ep_dialect_info& dialect,
                               const TilesOf& tiles_of = nullptr);

// "int <name>_infer_shape(const int64_t* p, int64_t* out)": the sizes of all outputs, one after another, in C.
std::string infer_shape_c(const Artifact& artifact);

}  // namespace tenon::compiler
