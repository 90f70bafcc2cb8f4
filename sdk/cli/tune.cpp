#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/codegen/driver/tuning.h"
#include "loader/settings/settings.h"
#include "primitives/text/format.h"
#include "primitives/text/progress.h"
#include "sdk/cli/commands.h"
#include "sdk/cli/model_inputs.h"
#include "sdk/cli/table.h"
#include "sdk/report/json_text.h"

namespace tenon::cli {
namespace {

using codegen::TunedKernel;
using nlohmann::json;

// The share of the default time that tuning saves.
double gain(const TunedKernel& kernel) { return kernel.default_us > 0 ? 1 - kernel.best_us / kernel.default_us : 0; }

std::string sizes_text(const std::vector<int64_t>& sizes) {
  std::string text;
  for (const int64_t size : sizes) text += fmt::format("{}{}", text.empty() ? "" : " ", size);
  return text;
}

void print_kernels(const std::vector<TunedKernel>& kernels) {
  std::vector<std::vector<std::string>> rows = {
      {"kernel", "ops", "sizes", "default", "best", "gain", "tried", "tiles"}};
  for (const TunedKernel& kernel : kernels) {
    const std::string tiles = kernel.why_not.empty() ? kernel.tiles : kernel.why_not;
    rows.push_back({kernel.name, kernel.ops, sizes_text(kernel.sizes), fmt::format("{:.1f} us", kernel.default_us),
                    fmt::format("{:.1f} us", kernel.best_us), fmt::format("{:.1f} %", 100 * gain(kernel)),
                    fmt::format("{}", kernel.tried), tiles});
  }
  print_table(rows);
}

json as_json(const std::vector<TunedKernel>& kernels) {
  json all = json::array();
  for (const TunedKernel& kernel : kernels) {
    all.push_back({{"kernel", kernel.name},
                   {"ops", kernel.ops},
                   {"bucket", kernel.bucket},
                   {"sizes", kernel.sizes},
                   {"default_us", kernel.default_us},
                   {"best_us", kernel.best_us},
                   {"gain", gain(kernel)},
                   {"tried", kernel.tried},
                   {"tiles", kernel.tiles},
                   {"kept", kernel.kept},
                   {"why_not", kernel.why_not}});
  }
  return all;
}

// Loads the model and runs it once, so that its kernels exist.
onnx::Model run_once(const TuneModelOptions& options) {
  onnx::Options load_options;
  load_options.fuse = true;
  load_options.compile = Compiling::wait;
  load_options.device = options.device.empty() ? Device::current() : Device(options.device);
  load_options.external_data_root = options.external_data;
  onnx::Model model = onnx::load(options.model, load_options);
  model.run(make_inputs(model, random_where_missing(model, options.inputs), options.dims, options.seed));
  model.device().synchronize();
  return model;
}

}  // namespace

int tune_model(const TuneModelOptions& options) {
  throw_if_error(loader::set_argument("tune", "load"));
  std::optional<Progress> progress(std::in_place, fmt::format("running {}", options.model));
  const onnx::Model model = run_once(options);
  progress.reset();
  codegen::Tuning tuning;
  tuning.seconds = options.budget_ms / 1000;
  tuning.progress = [&](uint64_t done, uint64_t total, const std::string& name) {
    if (!progress && total > 0) progress.emplace("tuning", total);
    if (progress) progress->at(done, fmt::format("tuning {}", name));
  };
  const std::vector<TunedKernel> kernels = codegen::tune_kernels(model.device().state(), tuning);
  progress.reset();
  const std::string file = codegen::tuning_file(model.device().state());
  bool kept = true;
  for (const TunedKernel& kernel : kernels) kept = kept && (kernel.kept || !kernel.why_not.empty());
  if (options.json) {
    const json all = {{"model", options.model},
                      {"device", model.device().spelling()},
                      {"device_name", model.device().name()},
                      {"file", file},
                      {"kernels", as_json(kernels)}};
    std::printf("%s\n", report::json_text(all).c_str());
  } else if (kernels.empty()) {
    std::printf("No ops of the model become one kernel on %s.\n", model.device().spelling().c_str());
  } else {
    std::printf("%s on %s (%s)\n\n", options.model.c_str(), model.device().spelling().c_str(),
                model.device().name().c_str());
    print_kernels(kernels);
    if (kept) std::printf("\nKept in %s; TENON_TUNE=load uses it.\n", file.c_str());
  }
  if (kept) return 0;
  throw Error(Code::invalid_argument,
              file.empty() ? "The tiles that were found are not stored: this user has no cache folder."
                           : fmt::format("The tiles that were found cannot be stored in '{}'.", file),
              "Set XDG_CACHE_HOME to a folder that this user alone can write.");
}

}  // namespace tenon::cli
