// A kernel on its way from a region to a text, for those who look at it: TENON_DUMP, and `tenon compile`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/codegen/artifact/artifact.h"
#include "core/device/export.h"
#include "core/graph/graph.h"

namespace tenon::codegen {

// The names of the dialects, which files of texts end with, by EP_DIALECT_*.
inline constexpr std::string_view kDialectNames[] = {"", "c", "cu", "cl", "glsl"};

struct KernelStages {
  explicit KernelStages(Kernel lowered) : name(lowered.name), kernel(std::move(lowered)) {}
  std::string name;
  Kernel kernel;                  // without loops
  std::vector<uint32_t> symbols;  // of the region's arena, by parameter of the kernel
  std::string loops;              // the kernel as text
  Artifact artifact;
};

// Lowers `region`, and schedules and prints its kernel for a device that compiles `dialect`; unlimited() gives one
// without a device. `tiles_of`, if there is one, says which tiles a kernel gets. Errors: unsupported and
// invalid_argument, where it has no kernel.
TENON_API KernelStages kernel_stages(const graph::Graph& region, const ep_dialect_info& dialect,
                                     const std::function<TilesOf(const Kernel&)>& tiles_of = nullptr);

// The file of the text of bucket `number`, in the folder of dump_stages: "text-0.c".
std::string text_file(const Artifact& artifact, size_t number);

// Writes graph.txt, loops.txt, and for each bucket its schedule and its text, into a folder of its own below
// TENON_DUMP. Gives the folder; empty: the setting names none. Threads: any. Errors: invalid_argument for a folder that
// cannot be written.
std::string dump_stages(const graph::Graph& region, const KernelStages& stages);

}  // namespace tenon::codegen
