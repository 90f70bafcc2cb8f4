// Fused nodes get kernels: the region is lowered, scheduled and printed, and the device compiles the text. What was
// compiled is kept for the process.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "core/compiler/emit/emit.h"
#include "core/compiler/loop/interpret.h"
#include "core/compiler/lower/lower.h"
#include "core/compiler/tactics/tactics.h"
#include "core/graph/fusion.h"
#include "core/graph/text.h"
#include "core/kernel/compiled_module.h"
#include "primitives/text/format.h"

namespace tenon::compiler {
namespace {

using graph::FusedLaunch;
using graph::Graph;

constexpr size_t kMostKept = 1024;  // regions; beyond that all are forgotten

// What a region has become on a device. Its text and the address of the device are its name, in full.
struct Compiled {
  std::mutex mutex;
  bool tried = false;
  std::string why_not;
  std::shared_ptr<const CompiledModule> module;
  std::optional<Kernel> kernel;
  std::vector<uint32_t> symbols;  // of the region's arena, by parameter
  std::string ops;
};

class Kept {
 public:
  std::shared_ptr<Compiled> of(const DeviceState* device, std::string text) {
    const std::lock_guard lock(mutex_);
    if (all_.size() >= kMostKept) all_.clear();
    std::shared_ptr<Compiled>& found = all_[{device, std::move(text)}];
    if (found == nullptr) found = std::make_shared<Compiled>();
    return found;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<const DeviceState*, std::string>, std::shared_ptr<Compiled>> all_;
};

// It is never destroyed, since programs may end after static objects.
Kept& kept() {
  static Kept& all = *new Kept;
  return all;
}

// The text of `region`, without the name of its program.
std::string name_of(const Graph& region) {
  const std::string text = graph::print(region);
  return text.substr(text.find('\n') + 1);
}

std::string ops_of(const Graph& region) {
  std::string text;
  for (graph::NodeId id = region.first(); id != graph::kNoNode; id = region.next(id)) {
    if (region.node(id).op->form == OpForm::view) continue;
    text += (text.empty() ? "" : " ") + std::string(region.node(id).op->name);
  }
  return text;
}

uint32_t symbol_number(const symbolic::Arena& arena, SymDim symbol) {
  for (uint32_t i = 0; i < arena.symbols().size(); ++i) {
    if (identical(arena.symbol_at(i), symbol)) return i;
  }
  throw Error(Code::internal, "A parameter of a kernel is no symbol of its program.");
}

bool compiles_c(DeviceState* device, std::string* why_not) {
  Status refused;
  for (const Dialect& dialect : dialects_of(device, &refused)) {
    if (dialect.info.dialect == EP_DIALECT_C) return true;
  }
  *why_not = refused.ok() ? "the device compiles no dialect that kernels are printed in" : refused.message();
  return false;
}

void compile(const Graph& region, DeviceState* device, Compiled* made) {
  if (!compiles_c(device, &made->why_not)) return;
  made->ops = ops_of(region);
  Graph copy = region.copy();
  Kernel kernel = lower(&copy, fmt::format("fused_{}", region.size()));
  for (const Parameter& parameter : kernel.parameters) {
    made->symbols.push_back(symbol_number(copy.arena(), parameter.symbol));
  }
  throw_if_error(schedule_for_cpu(&kernel));
  const KernelText text = value_or_throw(emit_c(kernel));
  ModuleText module;
  module.dialect = text.dialect;
  module.name = kernel.name;
  module.text = text.text;
  KernelEntry& entry = module.entries.emplace_back();
  entry.name = text.entry;
  entry.buffer_count = text.buffer_count;
  entry.parameter_bytes = text.parameter_bytes;
  entry.shared_bytes = text.shared_bytes;
  entry.flags = text.flags;
  made->module = value_or_throw(compile_module(device, module));
  made->kernel.emplace(std::move(kernel));
}

std::shared_ptr<const FusedLaunch> launch_of(const Compiled& compiled, const Graph& region, symbolic::Values* sizes) {
  std::vector<int64_t> parameters;
  for (const uint32_t symbol : compiled.symbols) {
    parameters.push_back(value_or_throw(sizes->of(region.arena().symbol_at(symbol))));
  }
  auto made = std::make_shared<FusedLaunch>();
  made->module = compiled.module;
  made->device = compiled.module->device;
  made->parameters.resize(parameters.size() * sizeof(int64_t));
  if (!parameters.empty()) std::memcpy(made->parameters.data(), parameters.data(), made->parameters.size());
  made->groups[0] = static_cast<uint64_t>(value_or_throw(item_count(*compiled.kernel, parameters)));
  made->ops = compiled.ops;
  return made->groups[0] == 0 ? nullptr : made;
}

}  // namespace
}  // namespace tenon::compiler

namespace tenon::graph {

std::shared_ptr<const FusedLaunch> fused_launch(const Graph& region, symbolic::Values* sizes, std::string* why_not) {
  DeviceState* device = region.outputs().empty() ? nullptr : region[region.outputs()[0]].device;
  if (device == nullptr || !takes_modules(device)) {
    *why_not = "the device compiles no kernels";
    return nullptr;
  }
  const std::shared_ptr<compiler::Compiled> compiled = compiler::kept().of(device, compiler::name_of(region));
  const std::lock_guard lock(compiled->mutex);
  const bool gone = compiled->module != nullptr && compiled->module->handle == nullptr;  // the device has ended
  if (!compiled->tried || gone) {
    compiled->tried = true;
    compiled->symbols.clear();
    try {
      compiler::compile(region, device, compiled.get());
    } catch (const Error& error) {
      compiled->module = nullptr;
      compiled->tried = error.code() != Code::cancelled && error.code() != Code::out_of_device_memory;
      if (error.code() == Code::cancelled) throw;
      compiled->why_not = error.status().message();
    }
  }
  if (compiled->module == nullptr) {
    *why_not = compiled->why_not;
    return nullptr;
  }
  *why_not = "it has no elements";
  return compiler::launch_of(*compiled, region, sizes);
}

}  // namespace tenon::graph
