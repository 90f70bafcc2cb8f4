// `tenon compare`: one model on two devices, node by node.
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "primitives/accuracy/accuracy.h"
#include "primitives/text/format.h"
#include "primitives/text/progress.h"
#include "sdk/cli/commands.h"
#include "sdk/cli/compare/divergence.h"
#include "sdk/cli/model_inputs.h"
#include "sdk/cli/table.h"
#include "sdk/onnx/onnx.h"
#include "sdk/report/json_text.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

// One value that a node computed on both devices.
struct Row {
  onnx::NodeResult node;  // from device A, without the tensors
  std::string value, type, rung_a, rung_b;
  Dims dims;
  Tier tier = Tier::full;
  double tolerance = 0;
  Divergence divergence;
};

std::string number(double value) { return fmt::format("{:.3g}", value); }

std::string exact(double value) { return fmt::format("{:.9g}", value); }

std::string node_text(const onnx::NodeResult& node) {
  return fmt::format("node {} ({}{})", node.node, node.name.empty() ? "" : fmt::format("{}, ", node.name),
                     node.op_type);
}

// The rungs that the node's launches took: "native" or "native, host".
std::string rungs(const onnx::NodeResult& result) {
  if (result.known) return "at loading";
  std::string text;
  for (const onnx::NodeExecution& one : result.executions) {
    if (text.find(one.rung) == std::string::npos) text += (text.empty() ? "" : ", ") + one.rung;
  }
  return text.empty() ? "-" : text;
}

// The lowest tier of accuracy of the node's launches.
Tier tier_of(const onnx::NodeResult& result) {
  Tier lowest = Tier::full;
  for (const onnx::NodeExecution& one : result.executions) {
    lowest = std::min(lowest, tier_from_name(one.tier).value_or(Tier::full));
  }
  return lowest;
}

class Comparison {
 public:
  Comparison(const CompareOptions& options, const onnx::Model& a, const onnx::Model& b)
      : options_(options),
        inputs_(make_inputs(a, random_where_missing(a, options.inputs), options.dims, options.seed)),
        a_(a, inputs_),
        b_(b, inputs_),
        nodes_(a.info().nodes) {}

  std::vector<Row> run() {
    std::vector<Row> rows;
    onnx::NodeResult on_a, on_b;
    Progress progress("comparing", nodes_);
    uint64_t done = 0;
    while (a_.next(&on_a)) {
      progress.at(++done, fmt::format("comparing {}", node_text(on_a)));
      if (!b_.next(&on_b) || on_b.values != on_a.values) {
        throw Error(Code::internal,
                    fmt::format("The two devices do not run the same nodes: {} has no counterpart.", node_text(on_a)));
      }
      // Errors of earlier nodes accumulate, unless each node gets its inputs from A.
      const Tier here = std::min(tier_of(on_a), tier_of(on_b));
      tier_ = options_.isolate ? here : std::min(tier_, here);
      for (size_t i = 0; i < on_a.tensors.size(); ++i) rows.push_back(row(on_a, on_b, i));
    }
    return rows;
  }

 private:
  Row row(const onnx::NodeResult& on_a, const onnx::NodeResult& on_b, size_t i) {
    Row one;
    one.node.node = on_a.node;
    one.node.name = on_a.name;
    one.node.op_type = on_a.op_type;
    one.node.known = on_a.known;
    one.value = on_a.values[i];
    one.dims = on_a.tensors[i].dims();
    one.type = fmt::format("{}{}", dtype_name(on_a.tensors[i].dtype()), one.dims);
    one.rung_a = rungs(on_a);
    one.rung_b = rungs(on_b);
    one.tier = tier_;
    one.tolerance = options_.tolerance.value_or(default_tolerance(on_a.tensors[i].dtype(), one.tier));
    one.divergence = measure_divergence(on_a.tensors[i], on_b.tensors[i], one.tolerance);
    if (options_.isolate && one.divergence.types.empty()) b_.replace(i, on_a.tensors[i]);
    return one;
  }

  const CompareOptions& options_;
  onnx::Inputs inputs_;
  onnx::Walk a_, b_;
  uint64_t nodes_;
  Tier tier_ = Tier::full;
};

onnx::Model load_on(const CompareOptions& options, const std::string& device) {
  onnx::Options load_options;
  load_options.device = Device(device);
  load_options.external_data_root = options.external_data;
  load_options.precision = options.precision;
  try {
    return onnx::load(options.model, load_options);
  } catch (const Error& error) {
    throw Error(error.status().with_context(fmt::format("  while loading it for {}", load_options.device.spelling())));
  }
}

std::string divergence_text(const Row& row, const std::string& a, const std::string& b) {
  const Divergence& d = row.divergence;
  const std::string start = fmt::format("{}, value '{}': ", node_text(row.node), row.value);
  if (!d.types.empty()) return fmt::format("{}it is {}.", start, d.types);
  return fmt::format(
      "{}element {} of {} is {} on {} and {} on {}, a relative error of {} where {} is allowed on tier {} ({} of {} "
      "elements "
      "are beyond it).",
      start, element_place(d.worst, row.dims), row.type, exact(d.worst_a), a, exact(d.worst_b), b,
      number(d.max_relative), number(row.tolerance), tier_name(row.tier), d.beyond, d.elements);
}

json row_json(const Row& row) {
  const Divergence& d = row.divergence;
  json one = {{"node", row.node.node},
              {"name", row.node.name},
              {"op_type", row.node.op_type},
              {"value", row.value},
              {"type", row.type},
              {"known_at_loading", row.node.known},
              {"rung_a", row.rung_a},
              {"rung_b", row.rung_b},
              {"elements", d.elements},
              {"differing", d.differing},
              {"beyond", d.beyond},
              {"max_absolute", report::json_number(d.max_absolute)},
              {"max_relative", report::json_number(d.max_relative)},
              {"max_ulp", d.max_ulp},
              {"tolerance", row.tolerance},
              {"tier", tier_name(row.tier)},
              {"diverges", d.diverges()}};
  if (!d.types.empty()) one["types"] = d.types;
  if (d.worst >= 0) {
    one["worst"] = {{"element", element_place(d.worst, row.dims)},
                    {"a", report::json_number(d.worst_a)},
                    {"b", report::json_number(d.worst_b)}};
  }
  return one;
}

void print_rows(const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> table = {
      {"node", "name", "operator", "value", "type", "on A", "on B", "absolute", "relative", "ulp", "tier", ""}};
  for (const Row& row : rows) {
    const Divergence& d = row.divergence;
    table.push_back({fmt::format("{}", row.node.node), row.node.name, row.node.op_type, row.value, row.type, row.rung_a,
                     row.rung_b, number(d.max_absolute), number(d.max_relative), fmt::format("{}", d.max_ulp),
                     std::string(tier_name(row.tier)),
                     !d.types.empty() ? fmt::format("diverges: {}", d.types)
                     : d.diverges()   ? "diverges"
                                      : ""});
  }
  print_table(table);
}

}  // namespace

int compare_devices(const CompareOptions& options) {
  const onnx::Model a = load_on(options, options.devices.at(0)), b = load_on(options, options.devices.at(1));
  const std::string name_a = a.device().spelling(), name_b = b.device().spelling();
  const std::vector<Row> rows = Comparison(options, a, b).run();
  const auto first = std::find_if(rows.begin(), rows.end(), [](const Row& row) { return row.divergence.diverges(); });
  const auto largest = std::max_element(rows.begin(), rows.end(), [](const Row& left, const Row& right) {
    return left.divergence.max_relative < right.divergence.max_relative;
  });
  const std::string verdict =
      first != rows.end() ? fmt::format("The first node that diverges is {}", divergence_text(*first, name_a, name_b))
      : rows.empty()      ? "The model has no node."
                          : fmt::format("No node diverges. The largest relative error is {}, of {}.",
                                        number(largest->divergence.max_relative), node_text(largest->node));
  if (options.json) {
    json list = json::array();
    for (const Row& row : rows) list.push_back(row_json(row));
    json report = {{"model", options.model},      {"a", name_a},   {"b", name_b},
                   {"isolated", options.isolate}, {"nodes", list}, {"diverges", first != rows.end()},
                   {"verdict", verdict}};
    report["first_divergence"] = first != rows.end() ? row_json(*first) : json();
    std::printf("%s\n", report::json_text(report).c_str());
  } else {
    std::printf("%s on A = %s (%s) and B = %s (%s)%s\n", options.model.c_str(), name_a.c_str(),
                a.device().name().c_str(), name_b.c_str(), b.device().name().c_str(),
                options.isolate ? ", each node of B on the values of A" : "");
    print_rows(rows);
    std::printf("%s\n", verdict.c_str());
  }
  return first != rows.end() ? 1 : 0;
}

}  // namespace tenon::cli
