#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "core/graph/execute/executable.h"
#include "core/graph/passes/passes.h"
#include "core/graph/text.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/cli/commands.h"
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

graph::Graph of_model(const GraphOptions& options) {
  onnx::Options load;
  load.device = options.device.empty() ? Device::current() : Device(options.device);
  load.external_data_root = options.external_data;
  const onnx::Model model = onnx::load(options.file, load);
  const std::vector<std::string> inputs = random_where_missing(model, options.inputs);
  return model.record(make_inputs(model, inputs, options.dims, options.seed));
}

// The file of constants lies beside the text.
graph::Graph of_text(const GraphOptions& options) {
  const std::filesystem::path path(options.file);
  const std::filesystem::path constants = path.parent_path() / kConstants;
  return graph::parse(read(path), std::filesystem::exists(constants) ? read(constants) : std::string());
}

// Runs the passes up to and with `last`; all of them if it is empty, none if it is "none".
void rewrite(graph::Graph* graph, const GraphOptions& options) {
  if (options.pass == "none") return;
  if (options.pass.empty()) return graph::optimise(graph, {.exact = options.exact});
  const graph::Pass& last = graph::find_pass(options.pass);
  for (const graph::Pass& pass : graph::passes()) {
    if (!options.exact || pass.bound.empty()) pass.run(graph, {});
    if (&pass == &last) return;
  }
}

Tensor random_input(const TensorMeta& meta, Device device, std::mt19937_64* random) {
  std::uniform_real_distribution<float> values(-1.0f, 1.0f);
  std::vector<float> elements(static_cast<size_t>(element_count(meta.dims)));
  for (float& element : elements) element = is_floating(meta.dtype) ? values(*random) : 0.0f;
  return cast(Tensor::from<float>(elements, meta.dims, device), meta.dtype);
}

// Inputs are random; integers, which may be indices, are 0.
void run(const graph::Graph& graph, uint64_t seed) {
  const graph::Executable program = graph::prepare(graph);
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

int show_graph(const GraphOptions& options) {
  const bool model = std::filesystem::path(options.file).extension() == ".onnx";
  graph::Graph graph = model ? of_model(options) : of_text(options);
  rewrite(&graph, options);
  if (options.run) return run(graph, options.seed), 0;
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
