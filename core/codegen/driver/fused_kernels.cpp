// Makes kernels of fused nodes and keeps them for the process.
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "core/codegen/driver/fused_kernel.h"
#include "core/codegen/driver/tuning.h"
#include "core/codegen/tune/data_base.h"
#include "core/graph/fusion.h"
#include "core/graph/recent.h"
#include "core/graph/text.h"

namespace tenon::codegen {
namespace {

// The kernel of each region. The key is the region's full text without labels, and the address of the device.
class Kept {
 public:
  std::shared_ptr<FusedKernel> of(const graph::Graph& region, DeviceState* device) {
    const std::string text = graph::print(region, {.labels = false});
    // the text without the name of the program
    std::pair<const DeviceState*, std::string> name(device, text.substr(text.find('\n') + 1));
    {
      const std::lock_guard lock(mutex_);
      if (const std::shared_ptr<FusedKernel>* known = all_.find(name)) return *known;
    }
    // Runs without the lock: reading constants of the region may run ops, which may themselves become kernels.
    auto made = std::make_shared<FusedKernel>(region, device);
    const std::lock_guard lock(mutex_);
    if (const std::shared_ptr<FusedKernel>* known = all_.find(name)) return *known;  // made by another thread
    all_.keep(std::move(name), made);
    return made;
  }

  std::vector<std::shared_ptr<FusedKernel>> of(const DeviceState* device) {
    std::vector<std::shared_ptr<FusedKernel>> found;
    const std::lock_guard lock(mutex_);
    for (const auto& [name, kernel] : all_) {
      if (name.first == device) found.push_back(kernel);
    }
    return found;
  }

 private:
  std::mutex mutex_;
  graph::Recent<std::pair<const DeviceState*, std::string>, std::shared_ptr<FusedKernel>> all_{graph::kMostKernels};
};

// Never destroyed, because programs may end after static objects.
Kept& kept() {
  static Kept& all = *new Kept;
  return all;
}

}  // namespace

std::vector<TunedKernel> tune_kernels(DeviceState* device, const Tuning& tuning) {
  const std::vector<std::shared_ptr<FusedKernel>> kernels = kept().of(device);
  uint64_t done = 0, total = 0;
  for (const auto& kernel : kernels) total += kernel->launched_buckets();
  std::vector<TunedKernel> all;
  for (const auto& kernel : kernels) {
    if (kernel->launched_buckets() == 0) continue;
    if (tuning.progress != nullptr) tuning.progress(done, total, kernel->name());
    std::vector<TunedKernel> some = kernel->tune_buckets(tuning.seconds);
    done += some.size();
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  if (tuning.progress != nullptr) tuning.progress(done, total, "");
  return all;
}

std::string tuning_file(DeviceState* device) {
  std::string why_not;
  const std::optional<Dialect> dialect = dialect_for(device, &why_not);
  return dialect ? data_base_of(device, *dialect).path() : std::string();
}

}  // namespace tenon::codegen

namespace tenon::graph {

std::shared_ptr<const FusedLaunch> fused_launch(const Graph& region, symbolic::Values* sizes,
                                                const std::shared_ptr<AwaitedKernels>& awaited, std::string* why_not) {
  DeviceState* device = region.outputs().empty() ? nullptr : region[region.outputs()[0]].device;
  if (device == nullptr || !takes_modules(device)) {
    *why_not = "the device compiles no kernels";
    return nullptr;
  }
  return codegen::kept().of(region, device)->launch(region, sizes, awaited, why_not);
}

}  // namespace tenon::graph
