#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "core/cluster/measure.h"
#include "core/cluster/plan.h"
#include "core/cluster/program.h"
#include "core/cluster/topology.h"
#include "core/global/global.h"
#include "core/ops/op_call.h"
#include "primitives/text/format.h"
#include "primitives/text/visible.h"
#include "sdk/cli/model_graph.h"
#include "sdk/cli/table.h"
#include "sdk/report/json_text.h"

namespace tenon::cli {
namespace {

using cluster::Forecast;
using cluster::Measured;
using cluster::NdSbp;
using cluster::Plan;
using cluster::Program;
using cluster::Topology;
using cluster::ValueId;

constexpr int32_t kRuns = 9;

std::string amount(double value, std::string_view unit) {
  constexpr std::pair<double, std::string_view> prefixes[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [factor, name] : prefixes) {
    if (value >= factor) return fmt::format("{:.4g} {}{}", value / factor, name, unit);
  }
  return fmt::format("{:.4g} {}", value, unit);
}

std::string seconds_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.4g} s", seconds);
  return seconds >= 1e-3 ? fmt::format("{:.4g} ms", seconds * 1e3) : fmt::format("{:.4g} us", seconds * 1e6);
}

Topology read_topology(const PlanOptions& options) {
  if (options.topology.empty()) {
    if (options.measure) return cluster::measured_topology();
    throw Error(Code::invalid_argument, "A plan needs a topology.",
                "Write one and name it by --topology FILE (`tenon plan --help`), or start ranks with --measure.");
  }
  std::ifstream file(options.topology, std::ios::binary);
  if (!file) throw Error(Code::not_found, fmt::format("The file '{}' cannot be read.", options.topology));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  try {
    return cluster::parse_topology(text);
  } catch (const Error& error) {
    throw Error(error.status().with_context(fmt::format("  while reading '{}'", options.topology)));
  }
}

// Parses "512x8".
Dims grid_from(const std::string& text) {
  Dims grid;
  size_t at = 0;
  while (at <= text.size()) {
    const size_t end = std::min(text.find('x', at), text.size());
    const std::string number = text.substr(at, end - at);
    const bool is_number =
        !number.empty() && number.size() < 9 && number.find_first_not_of("0123456789") == number.npos;
    if (!is_number || std::stoll(number) == 0 || grid.rank() == 3) {
      throw Error(Code::invalid_argument,
                  fmt::format("'{}' is not a grid of 1 to 3 axes, such as 512x8.", visible(text)));
    }
    grid.push_back(std::stoll(number));
    at = end + 1;
  }
  return grid;
}

// Parses "3=S(0),B" (input 3) or "%17=B,S(1)" (the constant %17).
std::pair<ValueId, NdSbp> spread_from(const std::string& text, const Program& program) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::string wanted = name.starts_with('%') ? "constant " + name : "input " + name;
  NdSbp sbp;
  for (size_t at = equals; at < text.size() && equals != text.npos;) {
    const size_t end = std::min(text.find(',', at + 1), text.size());
    if (sbp.rank() == 3) break;
    sbp.push_back(global::sbp_from(text.substr(at + 1, end - at - 1)));
    at = end;
  }
  for (const ValueId id : program.inputs()) {
    if (program.values()[id].name == wanted && !sbp.empty()) return {id, sbp};
  }
  throw Error(Code::invalid_argument, fmt::format("--spread {}: there is no such input, or no spread.", visible(text)),
              "Write --spread 0=S(0),B for input 0, --spread %17=B,S(1) for the constant %17: an entry per axis.");
}

class Report {
 public:
  Report(const PlanOptions& options, const Program& program, const Topology& topology, const Plan& plan,
         const Measured* measured)
      : options_(options),
        program_(program),
        topology_(topology),
        plan_(plan),
        measured_(measured),
        cast_(cluster::forecast(program, plan, topology)) {}

  void print() const {
    std::printf("%lld ranks as a grid %s: %s\n", static_cast<long long>(element_count(plan_.grid)),
                to_string(plan_.grid).c_str(),
                plan_.is_best ? "no other plan of this grid takes less time" : "the best plan that was found");
    if (!plan_.fits) std::printf("It does not fit in the memory of a rank.\n");
    std::vector<std::vector<std::string>> rows{{"", "forecast"}};
    const auto add = [&](const std::string& what, const std::string& forecast, const std::string& measured = "") {
      rows.push_back({what, forecast});
      if (measured_ != nullptr) rows.back().push_back(measured);
    };
    if (measured_ != nullptr) rows[0].emplace_back("measured");
    const auto found = [&](const std::string& text) { return measured_ != nullptr ? text : std::string(); };
    add("time of a step", seconds_text(cast_.seconds()),
        found(seconds_text(measured_ != nullptr ? measured_->seconds : 0)));
    add("  computing", seconds_text(cast_.computing));
    add("  moving", seconds_text(cast_.moving));
    add("memory of a rank", amount(static_cast<double>(cast_.memory), "B"));
    add("  inputs, parameters", amount(static_cast<double>(cast_.held), "B"));
    add("exchanges", fmt::format("{}", cast_.exchanges),
        found(fmt::format("{}", measured_ != nullptr ? measured_->exchanges : 0)));
    add("bytes of a rank", amount(static_cast<double>(cast_.bytes), "B"),
        found(amount(measured_ != nullptr ? static_cast<double>(measured_->bytes) : 0, "B")));
    for (size_t i = 0; i < topology_.levels.size(); ++i) {
      add(fmt::format("  over {}", visible(topology_.levels[i].name)), amount(cast_.bytes_per_level[i], "B"));
    }
    print_table(rows);
    print_spreads();
  }

  void print_json() const {
    nlohmann::json inputs = nlohmann::json::array(), calls = nlohmann::json::array(), levels = nlohmann::json::object();
    for (const ValueId id : program_.inputs()) {
      inputs.push_back({{"name", program_.values()[id].name},
                        {"type", type_of(id)},
                        {"parameter", program_.values()[id].is_parameter},
                        {"spread", global::to_string(plan_.kept[id])}});
    }
    const auto all = [](const std::vector<NdSbp>& spreads) {
      std::vector<std::string> texts;
      for (const NdSbp& each : spreads) texts.push_back(global::to_string(each));
      return texts;
    };
    for (size_t i = 0; i < program_.calls().size(); ++i) {
      calls.push_back({{"op", program_.calls()[i].node->op->name},
                       {"inputs", all(plan_.ways[i].inputs)},
                       {"outputs", all(plan_.ways[i].outputs)},
                       {"seconds", plan_.ways[i].seconds}});
    }
    for (size_t i = 0; i < topology_.levels.size(); ++i) levels[topology_.levels[i].name] = cast_.bytes_per_level[i];
    nlohmann::json document = {{"file", options_.graph.file},
                               {"ranks", element_count(plan_.grid)},
                               {"grid", std::vector<int64_t>(plan_.grid.begin(), plan_.grid.end())},
                               {"best", plan_.is_best},
                               {"fits", plan_.fits},
                               {"seconds", cast_.seconds()},
                               {"computing", cast_.computing},
                               {"moving", cast_.moving},
                               {"memory", cast_.memory},
                               {"held", cast_.held},
                               {"exchanges", cast_.exchanges},
                               {"bytes", cast_.bytes},
                               {"levels", levels},
                               {"topology", cluster::to_string(topology_)},
                               {"inputs", inputs},
                               {"calls", calls}};
    if (measured_ != nullptr) {
      document["measured"] = {
          {"seconds", measured_->seconds}, {"exchanges", measured_->exchanges}, {"bytes", measured_->bytes}};
    }
    std::printf("%s\n", report::json_text(document).c_str());
  }

 private:
  std::string type_of(ValueId id) const {
    const Program::Value& value = program_.values()[id];
    return fmt::format("{}{}", dtype_name(value.dtype), value.dims);
  }

  // Prints inputs with the same spread on one line.
  void print_spreads() const {
    std::vector<std::vector<std::string>> rows{{"spread", "of", "type", "bytes of a rank"}};
    std::map<std::pair<std::string, std::string>, size_t> known;
    std::vector<size_t> counts{0};
    const Dims first = Dims::filled(plan_.grid.rank(), 0);
    for (const ValueId id : program_.inputs()) {
      const std::string spread = global::to_string(plan_.kept[id]), type = type_of(id);
      const auto [found, is_new] = known.emplace(std::pair(spread, type), rows.size());
      if (!is_new) {
        ++counts[found->second];
        continue;
      }
      const Program::Value& value = program_.values()[id];
      const Dims part = global::box_of(value.dims, plan_.kept[id], plan_.grid, first).dims;
      counts.push_back(1);
      rows.push_back(
          {spread, value.name, type, amount(static_cast<double>(dtype_bytes(value.dtype, element_count(part))), "B")});
    }
    for (size_t i = 1; i < rows.size(); ++i) {
      if (counts[i] > 1) rows[i][1] += fmt::format(" and {} more", counts[i] - 1);
    }
    std::printf("\n");
    print_table(rows);
  }

  const PlanOptions& options_;
  const Program& program_;
  const Topology& topology_;
  const Plan& plan_;
  const Measured* measured_;  // null if nothing was run
  Forecast cast_;
};

}  // namespace

int plan_model(const PlanOptions& options) {
  GraphOptions given = options.graph;
  given.run = true;  // sizes are numbers
  const bool is_model = std::filesystem::path(given.file).extension() == ".onnx";
  if (given.pass.empty()) given.pass = is_model ? "batch_norm" : "none";  // the last pass that does not change products
  graph::Graph graph = read_graph(given);
  rewrite_graph(&graph, given);
  symbolic::Values sizes = sizes_of_graph(graph, given.sizes);
  const Program program(graph, &sizes, {.train = options.train, .rate = 0.01, .parameters = options.parameters});

  Topology topology = read_topology(options);
  const int64_t ranks = options.measure ? global::world_size() : options.ranks;
  cluster::PlanOptions choice;
  if (!options.grid.empty()) choice.grids = {grid_from(options.grid)};
  for (const std::string& text : options.spreads) choice.given.insert(spread_from(text, program));
  const auto make_plan = [&] {
    return cluster::make_plan(program, topology, ranks > 0 ? ranks : topology.ranks(), choice);
  };
  Plan plan = make_plan();
  Measured measured;
  if (options.measure) {
    const TensorList inputs = cluster::sample_inputs(program, options.graph.seed);
    if (options.topology.empty()) {
      cluster::measure_ops(program, plan, inputs, &topology);
      plan = make_plan();
    }
    measured = cluster::run_plan(program, plan, inputs, kRuns);
    if (global::rank() != 0) return 0;
  }
  const Report report(options, program, topology, plan, options.measure ? &measured : nullptr);
  options.json ? report.print_json() : report.print();
  return plan.fits ? 0 : 1;
}

}  // namespace tenon::cli
