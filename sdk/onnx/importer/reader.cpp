#include <algorithm>
#include <set>
#include <utility>

#include "loader/log/log.h"
#include "primitives/text/format.h"
#include "primitives/text/visible.h"
#include "sdk/onnx/importer/attributes.h"
#include "sdk/onnx/importer/budget.h"
#include "sdk/onnx/importer/node_order.h"
#include "sdk/onnx/importer/parsed_model.h"
#include "sdk/onnx/importer/scope.h"
#include "sdk/onnx/importer/value_info.h"
#include "sdk/onnx/importer/versions.h"
#include "sdk/onnx/proto/wire.h"
#include "sdk/onnx/schema/constraints.h"
#include "sdk/onnx/schema/schema.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

namespace proto = onnx_proto;
using proto::AttributeProto;

// Limit of functions inside functions, and of graphs inside graphs.
constexpr int kMostDepth = 32;
// Limit of the nodes that calls of functions are expanded to. A few functions that call each other can make any number
// of nodes; the length of the file limits the other nodes.
constexpr size_t kMostExpanded = size_t{1} << 18;

class Reader {
 public:
  Reader(const proto::ModelProto& model, TensorFiles files, Device device, std::vector<std::string>* refusals)
      : model_(model), graph_(*model.graph), files_(std::move(files)), refusals_(*refusals) {
    parsed_.device = device;
  }

  ParsedModel read() {
    opsets_ = read_versions(model_, &parsed_.info, &refusals_);
    read_functions();
    read_weights(graph_, &scope_);
    read_inputs();
    read_nodes(graph_.node, &scope_, &parsed_.nodes);
    parsed_.info.nodes = graph_.node.size();
    read_outputs();
    for (Node& node : parsed_.nodes) find_captures(&node);
    if (sorted_) {
      loader::log(
          loader::LogTopic::load, loader::LogLevel::warning,
          fmt::format("The nodes of the model{} are not in an order in which they can run, as ONNX requires; they "
                      "were sorted.",
                      graph_.name.empty() ? "" : " " + quoted(graph_.name)));
    }
    return std::move(parsed_);
  }

 private:
  int32_t define(Scope* scope, std::string_view name, const std::string& by) {
    const auto id = static_cast<int32_t>(parsed_.names.size());
    scope->bind(name, id, by);
    parsed_.names.push_back((scope->call != nullptr ? scope->call->prefix : std::string()) + std::string(name));
    parsed_.constants.emplace_back();
    types_.push_back(0);
    return id;
  }

  void refuse(std::string line) { refusals_.push_back(std::move(line)); }

  void read_functions() {
    for (const proto::FunctionProto& function : model_.functions) {
      if (functions_.emplace(key_of(function.domain, function.name, function.overload), &function).second) continue;
      malformed(
          fmt::format("it defines the function {} of domain {} twice", quoted(function.name), quoted(function.domain)));
    }
  }

  void read_weights(const proto::GraphProto& graph, Scope* scope) {
    for (const proto::TensorProto& tensor : graph.initializer) {
      const int32_t id = define(scope, tensor.name, "a weight");
      keep_weight(id, read_weight(tensor));
    }
    for (const proto::SparseTensorProto& tensor : graph.sparse_initializer) {
      if (!tensor.values) malformed("a sparse weight has no values");
      const int32_t id = define(scope, tensor.values->name, "a sparse weight");
      budget_.spend(unfolded(tensor));
      keep_weight(id, read_sparse_tensor(tensor, files_, parsed_.device));
    }
  }

  Result<Value> read_weight(const proto::TensorProto& tensor) {
    if (is_text(tensor)) return read_value(tensor, files_, parsed_.device);
    TENON_ASSIGN_OR_RETURN(const TensorHeader header, check_tensor(tensor, files_));
    const Device where = stays_on_host(header.dtype, header.elements) ? Device::host() : parsed_.device;
    return read_value(tensor, files_, where);
  }

  void keep_weight(int32_t id, Result<Value> value) {
    ++parsed_.info.weights;
    if (!value.ok() && value.status().code() == Code::unsupported) return refuse(value.status().message());
    throw_if_error(value.status());
    Value weight = std::move(value).value();
    if (weight.is_tensor()) parsed_.info.weight_bytes += static_cast<uint64_t>(weight.tensor().bytes());
    types_[static_cast<size_t>(id)] = type_of(weight);
    parsed_.constants[static_cast<size_t>(id)] = std::move(weight);
  }

  void read_inputs() {
    std::set<std::string_view> names;
    for (const proto::ValueInfoProto& input : graph_.input) {
      if (input.name.empty()) malformed("it has an input without a name");
      if (!names.insert(input.name).second)
        malformed(fmt::format("it has two inputs with the name {}", quoted(input.name)));
      if (const int32_t* weight = scope_.find(input.name)) {
        read_default(input, *weight);
        continue;
      }
      ValueInfo info;
      const std::string refused = read_value_info(input, "input", &info);
      if (!refused.empty()) refuse(refused);
      const int32_t id = define(&scope_, input.name, "an input");
      parsed_.input_values.push_back(id);
      parsed_.inputs.push_back(info);
      if (!refused.empty()) continue;
      types_[static_cast<size_t>(id)] = type_of(info);
      parsed_.declared[id] = info;
    }
  }

  // Reads an input that has an initialiser. Before IR version 4, files list every weight as an input, and no run can
  // give it.
  void read_default(const proto::ValueInfoProto& input, int32_t weight) {
    ValueInfo info;
    if (model_.ir_version < 4 || !read_value_info(input, "input", &info).empty()) return;
    parsed_.default_values.push_back(weight);
    parsed_.defaults.push_back(std::move(info));
  }

  // "node 3 (/x): Quux (version 17) of f32, ?: "
  std::string describe_node(const Node& node) const {
    std::string types;
    for (int32_t value : node.inputs) {
      const TypeId type = value < 0 ? 0 : types_[static_cast<size_t>(value)];
      types += fmt::format("{}{}", types.empty() ? " of " : ", ", value < 0 ? "-" : type == 0 ? "?" : type_name(type));
    }
    const std::string domain = node.domain.empty() ? std::string() : node.domain + ".";
    return fmt::format("{}: {}{} (version {}){}: ", label(node), domain, node.op_type, node.version, types);
  }

  // Notes the types of the outputs, as far as the rules decide them.
  void note_types(const Node& node) {
    if (node.schema == nullptr) return;
    std::vector<TypeId> inputs;
    for (int32_t value : node.inputs) inputs.push_back(value < 0 ? 0 : types_[static_cast<size_t>(value)]);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] >= 0)
        types_[static_cast<size_t>(node.outputs[i])] = output_type(*node.schema, node, inputs, i);
    }
  }

  const Opsets& opsets_of(const Scope& scope) const {
    return scope.call != nullptr && !scope.call->opsets.empty() ? scope.call->opsets : opsets_;
  }

  // The attribute itself, or the attribute of the call that a function's attribute refers to; null if the call has
  // none.
  static const AttributeProto* resolved(const Node& node, const AttributeProto& from, const Scope& scope) {
    if (from.ref_attr_name.empty()) return &from;
    if (scope.call == nullptr)
      malformed(fmt::format("{} refers to an attribute of a function, but is in none", label(node)));
    const auto found = scope.call->attributes.find(from.ref_attr_name);
    return found == scope.call->attributes.end() ? nullptr : found->second;
  }

  void read_attributes(const proto::NodeProto& from, Scope* scope, Node* node) {
    for (const AttributeProto& attribute : from.attribute) {
      const AttributeProto* content = resolved(*node, attribute, *scope);
      if (content == nullptr) continue;
      const auto [to, fresh] = node->attributes.emplace(std::string(attribute.name), Attribute());
      if (!fresh)
        malformed(fmt::format("{} has two attributes with the name {}", label(*node), quoted(attribute.name)));
      if (content->sparse_tensor) budget_.spend(unfolded(*content->sparse_tensor));
      if (scope->call != nullptr) budget_.spend(size_of(*content));
      to->second = read_attribute(*node, *content, files_, &refusals_);
      if (to->second.kind == Attribute::Kind::graph)
        to->second.graph = read_subgraph(*content->g, *scope, fmt::format("{} of {}", attribute.name, label(*node)));
    }
  }

  std::shared_ptr<Subgraph> read_subgraph(const proto::GraphProto& from, const Scope& outer, std::string inside) {
    if (outer.depth + 1 > kMostDepth)
      malformed(fmt::format("its graphs and functions are nested more than {} deep", kMostDepth));
    Scope scope{&outer, outer.call, std::move(inside), outer.depth + 1, {}};
    auto graph = std::make_shared<Subgraph>();
    const auto first = static_cast<int32_t>(parsed_.names.size());
    read_weights(from, &scope);
    for (const proto::ValueInfoProto& input : from.input) {
      ValueInfo info;
      if (input.type) read_value_info(input, "input", &info);
      graph->inputs.push_back(define(&scope, input.name, "an input of " + scope.inside));
      graph->input_infos.push_back(info);
      types_.back() = type_of(info);
    }
    read_nodes(from.node, &scope, &graph->nodes);
    for (const proto::ValueInfoProto& output : from.output) {
      const int32_t* found = scope.find(output.name);
      if (found == nullptr || *found < 0)
        malformed(fmt::format("no node computes the output {} of {}", quoted(output.name), scope.inside));
      graph->outputs.push_back(*found);
      ValueInfo info;
      if (output.type) read_value_info(output, "output", &info);
      graph->output_infos.push_back(info);
    }
    for (auto id = first; id < static_cast<int32_t>(parsed_.names.size()); ++id) graph->made.push_back(id);
    return graph;
  }

  void read_names(const proto::NodeProto& from, const Scope& scope, Node* node) {
    for (std::string_view name : from.input) {
      const int32_t* found = name.empty() ? nullptr : scope.find(name);
      if (!name.empty() && found == nullptr) {
        malformed(fmt::format("{} ({}) reads {}, which no node computes", label(*node), node->op_type, quoted(name)));
      }
      node->inputs.push_back(found == nullptr ? -1 : *found);
    }
  }

  // Reads the node without its outputs.
  Node read_node(const proto::NodeProto& from, size_t position, Scope* scope) {
    Node node;
    node.position = static_cast<int32_t>(position);
    node.name = visible(from.name);  // only for display
    node.inside = scope->inside;
    node.op_type = std::string(from.op_type);
    node.domain = domain_of(from.domain);
    read_names(from, *scope, &node);
    return node;
  }

  void expand(const proto::NodeProto& from, const proto::FunctionProto& function, const Node& node, Scope* outer,
              std::vector<Node>* nodes) {
    if (outer->depth + 1 > kMostDepth)
      malformed(
          fmt::format("its graphs and functions are nested more than {} deep, or the function {} "
                      "calls itself",
                      kMostDepth, quoted(function.name)));
    if (from.input.size() > function.input.size() || from.output.size() > function.output.size())
      malformed(fmt::format("{}: {}: it has {} inputs and {} outputs; its function has {} and {}", label(node),
                            node.op_type, from.input.size(), from.output.size(), function.input.size(),
                            function.output.size()));
    Call call{&function, read_opsets(function.opset_import), {}, outer->call, fmt::format("{}/", label(node))};
    for (const AttributeProto& initial : function.attribute_proto) call.attributes[initial.name] = &initial;
    for (const AttributeProto& given : from.attribute) {
      if (const AttributeProto* content = resolved(node, given, *outer)) {
        if (content->g || !content->graphs.empty())
          return refuse(describe_node(node) + "it gives a graph to a function of the model.");
        call.attributes[given.name] = content;
      }
    }
    Scope scope{nullptr, &call, fmt::format("the function {} of {}", function.name, label(node)), outer->depth + 1, {}};
    for (size_t i = 0; i < function.input.size(); ++i)
      scope.bind(function.input[i], i < node.inputs.size() ? node.inputs[i] : -1, "an input of " + scope.inside);
    read_nodes(function.node, &scope, nodes);
    for (size_t i = 0; i < from.output.size(); ++i) {
      if (from.output[i].empty()) continue;
      const int32_t* made = scope.find(function.output[i]);
      if (made == nullptr || *made < 0)
        malformed(fmt::format("no node computes the output {} of {}", quoted(function.output[i]), scope.inside));
      outer->bind(from.output[i], *made, label(node));
      parsed_.names[static_cast<size_t>(*made)] = std::string(from.output[i]);
    }
  }

  // Finds the schema of the node and checks the node against it.
  static void check_form(Node* node) {
    node->schema = find_schema(node->domain, node->op_type, node->version);
    if (node->schema == nullptr) return;
    std::string broken = broken_form(*node->schema, *node);
    if (broken.empty()) broken = broken_limits(*node);
    if (!broken.empty()) malformed(fmt::format("{}: {}: {}", label(*node), node->op_type, broken));
  }

  void read_nodes(const std::vector<proto::NodeProto>& from, Scope* scope, std::vector<Node>* nodes) {
    const auto is_there = [scope](std::string_view name) { return scope->values.find(name) != scope->values.end(); };
    const std::vector<size_t> order = node_order(from, is_there, scope->inside);
    sorted_ = sorted_ || !std::is_sorted(order.begin(), order.end());
    for (const size_t i : order) {
      Node node = read_node(from[i], i, scope);
      if (scope->call != nullptr) {
        if (++expanded_ > kMostExpanded)
          malformed(fmt::format("its calls of functions stand for more than {} nodes", kMostExpanded));
        budget_.spend(node.name.size() + 4 * node.inside.size());
      }
      const auto function = functions_.find(key_of(from[i].domain, from[i].op_type, from[i].overload));
      if (function != functions_.end()) {
        expand(from[i], *function->second, node, scope, nodes);
        continue;
      }
      read_attributes(from[i], scope, &node);
      for (std::string_view name : from[i].output)
        node.outputs.push_back(name.empty() ? -1 : define(scope, name, label(node)));
      const auto opset = opsets_of(*scope).find(node.domain);
      if (opset == opsets_of(*scope).end())
        malformed(fmt::format("{} is of domain {}, but the model imports no version of it", label(node),
                              quoted(node.domain)));
      const int32_t copied = copied_version(node.domain, node.op_type);
      node.version = copied != 0 ? copied : opset->second;
      check_form(&node);
      std::string reason;
      node.translator = find_translator(node, &reason);
      if (node.translator == nullptr) refuse(describe_node(node) + reason);
      note_types(node);
      nodes->push_back(std::move(node));
    }
  }

  void read_outputs() {
    for (const proto::ValueInfoProto& output : graph_.output) {
      const int32_t* found = scope_.find(output.name);
      if (found == nullptr) malformed(fmt::format("no node computes the output {}", quoted(output.name)));
      ValueInfo info;
      const std::string refused = read_value_info(output, "output", &info);
      if (refused.empty()) {
        parsed_.declared.emplace(*found, info);
      } else {
        refuse(refused);
      }
      parsed_.output_values.push_back(*found);
      parsed_.outputs.push_back(info);
    }
    if (parsed_.outputs.empty()) malformed("it has no outputs");
  }

  const proto::ModelProto& model_;
  const proto::GraphProto& graph_;
  TensorFiles files_;
  std::vector<std::string>& refusals_;
  Opsets opsets_;
  std::map<std::string, const proto::FunctionProto*> functions_;
  Scope scope_;
  size_t expanded_ = 0;
  bool sorted_ = false;  // some nodes run in another order than the file has them
  Budget budget_;
  std::vector<TypeId> types_;  // by value; 0: not known
  ParsedModel parsed_;
};

}  // namespace

ParsedModel parse_model(std::string_view bytes, TensorFiles files, Device device, std::vector<std::string>* refusals) {
  if (bytes.empty()) malformed("it is empty");
  proto::ModelProto model;
  if (const std::string error = proto::decode(bytes, &model); !error.empty()) {
    throw Error(Code::invalid_argument, fmt::format("This is not an ONNX model, or it is damaged. {}", error));
  }
  if (!model.graph) throw Error(Code::invalid_argument, "This is not an ONNX model: it holds no graph.");
  return Reader(model, std::move(files), device, refusals).read();
}

}  // namespace tenon::onnx
