#include "core/codegen/tune/trial.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>

#include "core/codegen/emit/choose.h"
#include "core/vm/segment.h"
#include "core/vm/vm.h"
#include "primitives/reference/element.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

constexpr double kSample = 200e-6;  // least seconds of a sample's launches
constexpr double kMostRepeats = 200;
constexpr size_t kPattern = 65521;  // how many numbers of an input differ
constexpr std::byte kPoison{0xa5};

// Generates positive numbers, so that no function of them is a NaN whose bits depend on the compiler. Positions are 0.
std::vector<std::byte> numbers(DType dtype, size_t bytes, bool positions) {
  const size_t size = static_cast<size_t>(dtype_size(dtype));
  std::vector<std::byte> result(bytes);
  std::mt19937 random(7);
  std::uniform_real_distribution<double> draw(0.25, 2.0);
  const size_t count = std::min(bytes / size, kPattern);
  for (size_t i = 0; i < count; ++i) {
    if (is_floating(dtype)) {
      reference::store<double>(dtype, result.data(), static_cast<int64_t>(i), draw(random));
    } else if (!positions) {
      const auto number = static_cast<int64_t>(dtype == DType::boolean ? random() % 2 : 1 + random() % 3);
      reference::store<int64_t>(dtype, result.data(), static_cast<int64_t>(i), number);
    }
  }
  for (size_t at = count * size; at < bytes; at += count * size) {
    std::memcpy(result.data() + at, result.data(), std::min(count * size, bytes - at));
  }
  return result;
}

}  // namespace

class Launches::LaunchTrial final : public Trial {
 public:
  LaunchTrial(Launches* of, std::shared_ptr<const CompiledModule> module, std::array<uint64_t, 3> groups)
      : of_(*of), module_(std::move(module)), groups_(groups) {}

  Status build(size_t repeats) {
    vm::SegmentBuilder builder(of_.device_, static_cast<uint32_t>(of_.memory_.size()), nullptr);
    std::vector<vm::SegmentAddress> buffers;
    for (uint32_t i = 0; i < of_.memory_.size(); ++i) buffers.push_back(vm::SegmentAddress::binding(i, 0));
    static constexpr OpName kName{"fused"};
    const NodeName name{kName, vm::kNoInputs, {}, "a trial of a kernel"};
    vm::SegmentKernelLaunch launch;
    launch.module = module_;
    launch.buffers = buffers;
    launch.parameters = std::as_bytes(std::span(of_.parameters_));
    launch.groups = groups_;
    launch.name = &name;
    for (size_t i = 0; i < repeats; ++i) TENON_RETURN_IF_ERROR(builder.add(launch));
    segment_ = builder.finish();
    repeats_ = repeats;
    return {};
  }

  Result<Sample> run() override {
    if (of_.wait_ != nullptr) TENON_RETURN_IF_ERROR(of_.wait_());
    std::vector<vm::Operand> bindings;
    tenon::Storage* written = nullptr;
    for (const Memory& memory : of_.memory_) {
      bindings.emplace_back(memory.storage.get(), 0, memory.output, memory.output);
      if (memory.output) written = memory.storage.get();
    }
    const auto begin = std::chrono::steady_clock::now();
    TENON_RETURN_IF_ERROR(vm::run({segment_.get(), bindings, 0}));
    TENON_RETURN_IF_ERROR(vm::settle(written, false, false));
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return Sample{spent / static_cast<double>(repeats_), spent};
  }

 private:
  Launches& of_;
  const std::shared_ptr<const CompiledModule> module_;
  const std::array<uint64_t, 3> groups_;
  std::shared_ptr<const vm::Segment> segment_;
  size_t repeats_ = 1;
};

Result<std::unique_ptr<Launches>> Launches::make(DeviceState* device, const ep_dialect_info& dialect,
                                                 const Kernel& kernel, std::vector<int64_t> parameters,
                                                 uint64_t most_bytes, std::function<Status()> wait) {
  auto made = std::unique_ptr<Launches>(new Launches(device, dialect, std::move(parameters), std::move(wait)));
  const bool positions = std::any_of(kernel.exprs.begin(), kernel.exprs.end(),
                                     [](const Expr& expr) { return expr.kind == ExprKind::position; });
  for (const Buffer& buffer : kernel.buffers) {
    TENON_RETURN_IF_ERROR(made->add(kernel, buffer, positions, &most_bytes));
  }
  return made;
}

Status Launches::add(const Kernel& kernel, const Buffer& buffer, bool positions, uint64_t* room) {
  TENON_ASSIGN_OR_RETURN(const Program program, Program::of(kernel, buffer.elements));
  TENON_ASSIGN_OR_RETURN(const int64_t elements, program.run(parameters_));
  const uint64_t bytes =
      static_cast<uint64_t>(std::max<int64_t>(elements, 1)) * static_cast<uint64_t>(dtype_size(buffer.dtype));
  if (bytes > *room) {
    return {Code::unsupported, fmt::format("Its buffers take more memory than trials may: buffer {} has {} bytes, "
                                           "and {} are left.",
                                           buffer.name, bytes, *room)};
  }
  *room -= bytes;
  TENON_ASSIGN_OR_RETURN(tenon::Storage * storage, tenon::Storage::make_aligned(device_, bytes));
  Memory& memory = memory_.emplace_back(Memory{StorageOwner(storage), bytes, buffer.output, {}});
  if (buffer.output) return {};
  const std::vector<std::byte> filled = numbers(buffer.dtype, bytes, positions);
  return vm::upload({memory.storage.get(), 0, true, true}, filled.data(), bytes, {});
}

Status Launches::poison_outputs() {
  for (const Memory& memory : memory_) {
    if (!memory.output) continue;
    const std::vector<std::byte> poison(memory.bytes, kPoison);
    TENON_RETURN_IF_ERROR(vm::upload({memory.storage.get(), 0, true, true}, poison.data(), memory.bytes, {}));
  }
  return {};
}

Result<bool> Launches::same_results() {
  bool same = true;
  for (Memory& memory : memory_) {
    if (!memory.output) continue;
    std::vector<std::byte> results(memory.bytes);
    TENON_RETURN_IF_ERROR(vm::download(results.data(), {memory.storage.get(), 0, false, false}, memory.bytes));
    if (!has_first_)
      memory.first = std::move(results);
    else
      same = same && memory.first == results;
  }
  has_first_ = true;
  return same;
}

Result<std::unique_ptr<Trial>> Launches::trial(const std::string& name, const Variant& variant) {
  if (wait_ != nullptr) TENON_RETURN_IF_ERROR(wait_());
  TENON_ASSIGN_OR_RETURN(const int64_t items, variant.items.run(parameters_));
  if (items == 0) return Status(Code::unsupported, "It has no elements.");
  TENON_ASSIGN_OR_RETURN(const auto groups, groups_for(static_cast<uint64_t>(items), dialect_));
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<CompiledModule> module,
                         compile_module(device_, module_of(name, variant.text)));
  auto made = std::make_unique<LaunchTrial>(this, std::move(module), groups);
  TENON_RETURN_IF_ERROR(made->build(1));
  TENON_RETURN_IF_ERROR(poison_outputs());
  TENON_ASSIGN_OR_RETURN(Sample once, made->run());
  TENON_ASSIGN_OR_RETURN(const bool same, same_results());
  if (!same) return std::unique_ptr<Trial>();
  if (repeats_ == 0) {
    TENON_ASSIGN_OR_RETURN(once, made->run());  // the first run may have had to map memory
    repeats_ = static_cast<size_t>(std::clamp(std::ceil(kSample / std::max(once.seconds, 1e-9)), 1.0, kMostRepeats));
  }
  TENON_RETURN_IF_ERROR(made->build(repeats_));
  return std::unique_ptr<Trial>(std::move(made));
}

}  // namespace tenon::codegen
