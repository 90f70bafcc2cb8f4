// An artifact: everything that a launch of a kernel needs, after the kernel itself is gone. It has one text per bucket
// of sizes, and, as programs over the kernel's parameters: the condition of each bucket, the number of items, and the
// sizes of the outputs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/codegen/artifact/maps.h"
#include "core/codegen/artifact/program.h"
#include "core/codegen/emit/choose.h"
#include "core/codegen/loop/ir.h"
#include "core/codegen/tactics/tiles.h"
#include "primitives/status/status.h"

namespace tenon::codegen {

// A bucket: it serves the sizes for which `holds` gives 1. If `holds` fails, the bucket does not serve them.
struct Variant {
  std::string name;  // "m <= 8192"; empty: all sizes
  Program holds;
  bool wide = true;  // indices have 64 bits
  Program items;
  KernelText text;
  std::string schedule;  // text of the scheduled kernel
  MapFacts map;
  Tiles tiles;
};

struct Artifact {
  std::string name;
  uint32_t parameters = 0;
  std::vector<Variant> variants;           // the most specialised first; the last one's condition always holds
  std::vector<std::vector<Program>> dims;  // by output: its sizes

  bool holds(size_t variant, std::span<const int64_t> sizes) const;
  // Index of the first variant that serves these parameters.
  size_t choose(std::span<const int64_t> sizes) const;
  // Index of the most general variant that serves these parameters. Variants with 64-bit indices are only taken if the
  // sizes need them. The result has the same bits as with choose(), so this variant is used until the other is
  // compiled.
  size_t general(std::span<const int64_t> sizes) const;
};

// Schedules and prints a kernel without loops for a device that compiles `dialect`, once per bucket. There are at most
// six buckets:
// - on a CPU: all sizes; and rows that fit into local memory, if a row of unknown size might not fit;
// - on a device of groups: sizes that need 64-bit indices, and sizes that do not; of the latter, rows that fit into
//   shared memory, short rows, and lengths that are a multiple of a pack (vector_bytes of the dialect).
// A bucket that would get the text of another one is left out. `dims` are the sizes of the outputs, in the kernel's
// arena. All variants add in the same order. `tiles_of` may be empty; it gives the tiles of a variant by name, and
// tiles that do not suit the kernel are ignored. Errors: those of print_for.
using TilesOf = std::function<Tiles(const std::string& variant)>;
Result<Artifact> make_artifact(const Kernel& kernel, const std::vector<SymDims>& dims, const ep_dialect_info& dialect,
                               const TilesOf& tiles_of = nullptr);

// C text of "int <name>_infer_shape(const int64_t* p, int64_t* out)", which writes the sizes of all outputs, one output
// after another.
std::string infer_shape_c(const Artifact& artifact);

}  // namespace tenon::codegen
