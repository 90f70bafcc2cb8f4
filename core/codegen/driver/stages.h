// The stages of a kernel between region and text, for TENON_DUMP and `tenon compile`.
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

// Names of the dialects by EP_DIALECT_*, used as file extensions of texts.
inline constexpr std::string_view kDialectNames[] = {"", "c", "cu", "cl", "glsl"};

struct KernelStages {
  explicit KernelStages(Kernel lowered) : name(lowered.name), kernel(std::move(lowered)) {}
  std::string name;
  Kernel kernel;                  // without loops
  std::vector<uint32_t> symbols;  // symbols of the region's arena, by parameter of the kernel
  std::string loops;              // the kernel as text
  Artifact artifact;
};

// Lowers, schedules and prints `region` for a device that compiles `dialect`; unlimited() gives a dialect without a
// device. `tiles_of` may be empty; it chooses the tiles of a kernel. Errors: unsupported and invalid_argument if the
// region has no kernel.
TENON_API KernelStages kernel_stages(const graph::Graph& region, const ep_dialect_info& dialect,
                                     const std::function<TilesOf(const Kernel&)>& tiles_of = nullptr);

// File name of the text of bucket `number` in the folder of dump_stages: "text-0.c".
std::string text_file(const Artifact& artifact, size_t number);

// Writes graph.txt, loops.txt, and the schedule and text of each bucket into a new folder below TENON_DUMP. Returns the
// folder, or "" if the setting is empty. Threads: any. Errors: invalid_argument if the folder cannot be written.
std::string dump_stages(const graph::Graph& region, const KernelStages& stages);

}  // namespace tenon::codegen
