// An artifact: all that a launch needs of a kernel, without the kernel. One text per bucket of sizes, the condition of
// each bucket, numbers of items, and the sizes of outputs, as programs over the kernel's parameters.
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

// A bucket: the sizes for which `holds` gives 1. Where it has no value they are none of the bucket.
struct Variant {
  std::string name;  // "m <= 8192"; empty: all sizes
  Program holds;
  bool wide = true;  // indices of 64 bits
  Program items;
  KernelText text;
  std::string schedule;  // the kernel with its loops
  MapFacts map;
  Tiles tiles;
};

struct Artifact {
  std::string name;
  uint32_t parameters = 0;
  std::vector<Variant> variants;           // the most special first; the last one's condition always holds
  std::vector<std::vector<Program>> dims;  // of each output: its sizes

  bool holds(size_t variant, std::span<const int64_t> sizes) const;
  // The number of the variant for these parameters: the first that holds.
  size_t choose(std::span<const int64_t> sizes) const;
  // The number of the one that holds for these and the most others: the last, but not for the sake of sizes that need
  // indices of 64 bits. It gives the same bits, so it serves until the one of choose() is compiled.
  size_t general(std::span<const int64_t> sizes) const;
};

// A kernel without loops, scheduled and written for a device that compiles `dialect`, once per bucket, of which there
// are at most six:
//   - on a CPU, all sizes; and rows that fit into local memory, where a row of a size that is not known might not;
//   - on a device of groups, sizes that need indices of 64 bits, and those that do not; of these rows that fit into
//     shared memory, short rows, and lengths that are whole packs (vector_bytes of the dialect).
// A bucket has a text of its own only if its text is another one. `dims` are the sizes of the outputs, in the arena of
// the kernel. All variants add in the same order. `tiles_of`, if there is one, gives the tiles of a variant by its
// name; those that do not suit the kernel count as none. Errors: those of print_for.
using TilesOf = std::function<Tiles(const std::string& variant)>;
Result<Artifact> make_artifact(const Kernel& kernel, const std::vector<SymDims>& dims, const ep_dialect_info& dialect,
                               const TilesOf& tiles_of = nullptr);

// "int <name>_infer_shape(const int64_t* p, int64_t* out)": the sizes of all outputs, one after another, in C.
std::string infer_shape_c(const Artifact& artifact);

}  // namespace tenon::codegen
