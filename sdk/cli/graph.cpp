#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>

#include "core/graph/execute/executable.h"
#include "core/graph/passes/passes.h"
#include "core/graph/signature.h"
#include "core/graph/text.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "primitives/text/progress.h"
#include "sdk/cli/model_graph.h"
#include "sdk/cli/model_inputs.h"
#include "sdk/cli/summary.h"
#include "sdk/onnx/onnx.h"

namespace tenon::cli {
namespace {

constexpr const char* kText = "graph.txt";
constexpr const char* kConstants = "constants.bin";

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(Code::not_found, fmt::format("The file '{}' cannot be read.", path.string()));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  if (!file.write(text.data(), static_cast<std::streamsize>(text.size())).flush()) {
    throw Error(Code::invalid_argument, fmt::format("The file '{}' cannot be written.", path.string()));
  }
}

// Adds hints for the named dynamic dims of `model` that `dims` does not name, all different and above 1.
std::vector<std::string> with_hints(const onnx::Model& model, std::vector<std::string> dims) {
  std::set<std::string> given;
  for (const std::string& text : dims) given.insert(text.substr(0, text.find('=')));
  int64_t hint = 8;
  for (const onnx::ValueInfo& info : model.inputs()) {
    for (const onnx::Dim& dim : info.dims) {
      if (dim.name.empty() || !given.insert(dim.name).second) continue;
      dims.push_back(fmt::format("{}={}", dim.name, hint += 8));
    }
  }
  return dims;
}

graph::Graph of_model(const GraphOptions& options) {
  onnx::Options load;
  load.device = options.device.empty() ? Device::current() : Device(options.device);
  load.external_data_root = options.external_data;
  Progress progress(fmt::format("loading {}", options.file));
  const onnx::Model model = onnx::load(options.file, load);
  progress.at(0, fmt::format("recording {}", options.file));
  const std::vector<std::string> inputs = random_where_missing(model, options.inputs);
  const bool open = options.sizes.empty() && !options.run;
  std::vector<std::string> dims = options.dims;
  dims.insert(dims.end(), options.sizes.begin(), options.sizes.end());
  if (open) dims = with_hints(model, std::move(dims));
  return model.record(make_inputs(model, inputs, dims, options.seed), open);
}

// The file of constants is in the folder of the text.
graph::Graph of_text(const GraphOptions& options) {
  const std::filesystem::path path(options.file);
  const std::filesystem::path constants = path.parent_path() / kConstants;
  try {
    return graph::parse(read(path), std::filesystem::exists(constants) ? read(constants) : std::string());
  } catch (const Error& error) {
    throw Error(error.status().with_context(fmt::format("  while reading '{}'", options.file)));
  }
}

Tensor random_input(const TensorMeta& meta, Device device, std::mt19937_64* random) {
  std::uniform_real_distribution<float> values(-1.0f, 1.0f);
  std::vector<float> elements(static_cast<size_t>(element_count(meta.dims)));
  for (float& element : elements) element = is_floating(meta.dtype) ? values(*random) : 0.0f;
  return cast(Tensor::from<float>(elements, meta.dims, device), meta.dtype);
}

// Floating inputs are random; integers, which may be indices, are 0.
void run(const graph::Graph& graph, const GraphOptions& options) {
  const uint64_t seed = options.seed;
  symbolic::Values sizes = sizes_of_graph(graph, options.sizes);
  const graph::Executable program = graph::prepare(graph, &sizes);
  std::mt19937_64 random(seed);
  TensorList inputs;
  for (uint32_t id : program.inputs) {
    inputs.push_back(random_input(program.values[id].meta, Device(program.values[id].device), &random));
  }
  const TensorList outputs = graph::run(program, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::printf("output %zu: %s %s: %s\n", i, std::string(dtype_name(outputs[i].dtype())).c_str(),
                to_string(outputs[i].dims()).c_str(),
                summary_text(summarize(outputs[i]), outputs[i].elements()).c_str());
  }
}

}  // namespace

graph::Graph read_graph(const GraphOptions& options) {
  const bool model = std::filesystem::path(options.file).extension() == ".onnx";
  return model ? of_model(options) : of_text(options);
}

void rewrite_graph(graph::Graph* graph, const GraphOptions& options) {
  if (options.pass == "none") return;
  if (options.pass.empty()) return graph::optimise(graph, {.exact = options.exact});
  const graph::Pass& last = graph::find_pass(options.pass);
  for (const graph::Pass& pass : graph::passes()) {
    if (!options.exact || pass.bound.empty()) pass.run(graph, {});
    if (&pass == &last) return;
  }
}

symbolic::Values sizes_of_graph(const graph::Graph& graph, const std::vector<std::string>& given) {
  const std::span<const symbolic::Symbol> symbols = graph.arena().symbols();
  symbolic::Values sizes(graph.arena());
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    std::optional<int64_t> value = symbols[i].hint;
    const std::string name = fmt::format("S{}=", i);
    for (const std::string& text : given) {
      if (text.starts_with(name)) value = std::strtoll(text.c_str() + name.size(), nullptr, 10);
    }
    if (value) throw_if_error(sizes.bind(i, *value));
  }
  if (const std::string why = graph::broken_guard(graph, &sizes); !why.empty())
    throw Error(Code::invalid_argument, why);
  return sizes;
}

int show_graph(const GraphOptions& options) {
  graph::Graph graph = read_graph(options);
  rewrite_graph(&graph, options);
  if (options.run) return run(graph, options), 0;
  std::string constants;
  const std::string text = graph::print(graph, {.constants = &constants});
  if (options.output.empty()) {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  std::filesystem::create_directories(options.output);
  write(std::filesystem::path(options.output) / kText, text);
  write(std::filesystem::path(options.output) / kConstants, constants);
  std::printf("%s/%s: %zu nodes\n", options.output.c_str(), kText, graph.size());
  return 0;
}

}  // namespace tenon::cli
