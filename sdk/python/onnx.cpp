// The extension module tenon._onnx: loading, running and writing models with sdk/onnx. tenon/onnx.py wraps it.
#include "sdk/onnx/onnx.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "core/background/cancellation.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"
#include "sdk/python/text.h"

namespace nb = nanobind;

namespace {

using tenon::Cancellation;
using tenon::Code;
using tenon::Error;
using tenon::Tensor;
using tenon::TensorList;
using tenon::onnx::Inputs;
using tenon::onnx::Model;
using tenon::onnx::NodeExecution;
using tenon::onnx::Value;
using tenon::onnx::ValueInfo;
using tenon::python::name_text;
using tenon::python::text_of;

nb::list shape_of(const ValueInfo& info) {
  nb::list dims;
  for (const tenon::onnx::Dim& each : info.dims) {
    if (each.value >= 0)
      dims.append(each.value);
    else if (!each.name.empty())
      dims.append(each.name);
    else
      dims.append(nb::none());
  }
  return dims;
}

nb::list values(std::string_view what, const std::vector<ValueInfo>& infos) {
  nb::list list;
  for (const ValueInfo& each : infos) {
    list.append(nb::make_tuple(name_text(what, each.name), to_string(each),
                               each.has_shape ? nb::object(shape_of(each)) : nb::none(), text_of(each.onnx_type)));
  }
  return list;
}

// Values as tenon/onnx.py passes them: a tensor, None, or a tuple whose first item is "strings" (then shape and flat
// list), "sequence" (then list), "map" (then keys and values) or "maps" (then keys and matrix).
Value value_of(nb::handle given) {
  if (given.is_none()) return Value::nothing();
  if (nb::isinstance<Tensor>(given)) return nb::cast<Tensor>(given);
  const auto parts = nb::cast<nb::tuple>(given);
  const auto kind = nb::cast<std::string>(parts[0]);
  if (kind == "strings") {
    tenon::Dims dims;
    for (const nb::handle dim : parts[1]) dims.push_back(nb::cast<int64_t>(dim));
    std::vector<std::string> strings;
    for (const nb::handle text : parts[2]) {
      const nb::bytes bytes = nb::steal<nb::bytes>(
          PyBytes_Check(text.ptr()) ? nb::handle(text).inc_ref().ptr()
                                    : PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
      if (!bytes.is_valid()) nb::raise_python_error();
      strings.emplace_back(bytes.c_str(), bytes.size());
    }
    return Value::strings(dims, std::move(strings));
  }
  if (kind == "map") return Value::map(value_of(parts[1]), value_of(parts[2]));
  std::vector<Value> elements;
  for (const nb::handle each : parts[1]) elements.push_back(value_of(each));
  return Value::sequence(std::move(elements));
}

nb::object python_of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::tensor: return nb::cast(value.tensor());
    case Value::Kind::strings: {
      nb::list dims, strings;
      for (const int64_t dim : value.dims()) dims.append(dim);
      for (const std::string& text : value.strings()) {
        strings.append(
            nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape")));
      }
      return nb::make_tuple("strings", dims, strings);
    }
    case Value::Kind::map: return nb::make_tuple("map", python_of(value.keys()), python_of(value.values()));
    case Value::Kind::sequence: break;
    default: return nb::none();
  }
  if (const Tensor matrix = value.matrix(); matrix.defined())
    return nb::make_tuple("maps", python_of(value.keys()), nb::cast(matrix));
  nb::list elements;
  for (const Value& each : value.elements()) elements.append(python_of(each));
  return nb::make_tuple("sequence", elements);
}

// In the order of the fields of tenon.onnx.NodeExecution.
nb::tuple python_of(const NodeExecution& launch) {
  return nb::make_tuple(launch.node, text_of(launch.node_name), text_of(launch.op_type), text_of(launch.op),
                        text_of(launch.device), text_of(launch.provider), text_of(launch.implementation),
                        text_of(launch.rung), text_of(launch.reason), launch.bytes_copied, text_of(launch.tier),
                        launch.bytes, launch.flops);
}

// Runs the model and returns all outputs by name. `bound`: tensors by the names of the outputs that are written there.
// `report`: None, or a list that gets a tuple for each launch.
nb::dict run(const Model& model, const nb::dict& given, const nb::dict& bound, const nb::object& report,
             const Cancellation* cancellation) {
  tenon::onnx::Values inputs;
  for (const auto& [name, value] : given) inputs.emplace(nb::cast<std::string>(name), value_of(value));
  Inputs targets;
  for (const auto& [name, tensor] : bound) targets.emplace(nb::cast<std::string>(name), nb::cast<Tensor>(tensor));
  std::vector<NodeExecution> executions;
  tenon::onnx::ValueList results;
  {
    const nb::gil_scoped_release unlocked;
    std::optional<tenon::CancellationScope> scope;
    if (cancellation != nullptr) {
      if (cancellation->cancelled()) throw Error(Code::cancelled, "The run was cancelled before it began.");
      scope.emplace(*cancellation);
    }
    results = model.run_values(inputs, targets, report.is_none() ? nullptr : &executions);
  }
  for (const NodeExecution& each : executions) report.attr("append")(python_of(each));
  nb::dict made;
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string& name = model.outputs()[i].name;
    made[name_text("onnx: an output of the model", name)] = python_of(results[i]);
  }
  return made;
}

// The kind of every input that run() takes, by name: "tensor", "strings", "sequence" or "map".
nb::dict kinds(const Model& model) {
  nb::dict made;
  for (const std::vector<ValueInfo>* infos : {&model.inputs(), &model.defaults()}) {
    for (const ValueInfo& info : *infos) {
      const char* kind = info.kind == Value::Kind::strings    ? "strings"
                         : info.kind == Value::Kind::sequence ? "sequence"
                         : info.kind == Value::Kind::map      ? "map"
                                                              : "tensor";
      made[name_text("onnx.load: an input of the model", info.name)] = kind;
    }
  }
  return made;
}

tenon::onnx::Shapes shapes_of(const std::string& name) {
  if (name == "exact") return tenon::onnx::Shapes::exact;
  if (name == "rank") return tenon::onnx::Shapes::rank;
  if (name == "any") return tenon::onnx::Shapes::any;
  throw Error(Code::invalid_argument,
              fmt::format("onnx.load: shapes is '{}'; it must be 'exact', 'rank' or 'any'.", name));
}

// The options of load(), by the names of its arguments; tenon/onnx.py passes all of them.
tenon::onnx::Options options_of(const nb::dict& given) {
  const auto text = [&](const char* key) { return nb::cast<std::string>(given[key]); };
  const auto on = [&](const char* key) { return nb::cast<bool>(given[key]); };
  tenon::onnx::Options options;
  if (const std::string device = text("device"); !device.empty()) options.device = tenon::Device(device);
  options.external_data_root = text("external_data_root");
  options.eager = on("eager");
  if (!given["precision"].is_none()) {
    const auto named = tenon::precision_from_name(text("precision"));
    tenon::throw_if_error(named.status());
    options.precision = named.value();
  }
  options.passes = on("exact") ? tenon::onnx::Passes::exact : tenon::onnx::Passes::bounded;
  if (!given["fuse"].is_none()) options.fuse = on("fuse");
  if (!given["wait"].is_none()) options.compile = on("wait") ? tenon::Compiling::wait : tenon::Compiling::beside;
  options.shapes = shapes_of(text("shapes"));
  options.max_recorded = nb::cast<uint32_t>(given["max_recorded"]);
  return options;
}

using Names = std::vector<std::string>;
using Axes = std::map<std::string, std::map<int64_t, std::string>>;

nb::bytes exported(const nb::callable& function, const std::vector<Tensor>& examples, const std::string& name,
                   const Names& inputs, const Names& outputs, const std::optional<Axes>& dynamic_axes,
                   const nb::dict& parameters) {
  tenon::onnx::ExportOptions options;
  options.name = name;
  options.input_names = inputs;
  options.output_names = outputs;
  options.dynamic_axes = dynamic_axes;
  for (const auto& [key, tensor] : parameters) {
    options.parameters.emplace_back(nb::cast<std::string>(key), nb::cast<Tensor>(tensor));
  }
  const auto call = [&](const TensorList& values) -> TensorList {
    const nb::gil_scoped_acquire locked;
    nb::list list;
    for (const Tensor& each : values) list.append(nb::cast(each));
    TensorList results;
    for (const nb::handle each : function(list)) results.push_back(nb::cast<Tensor>(each));
    return results;
  };
  std::string bytes;
  {
    const nb::gil_scoped_release unlocked;
    bytes = tenon::onnx::export_bytes(call, TensorList(examples.begin(), examples.end()), options);
  }
  return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

NB_MODULE(_onnx, m) {
  nanobind::set_leak_warnings(false);
  nb::class_<Model>(m, "_Model")
      .def("inputs", [](const Model& model) { return values("onnx.load: an input of the model", model.inputs()); })
      .def("defaults", [](const Model& model) { return values("onnx.load: an input of the model", model.defaults()); })
      .def("kinds", &kinds)
      .def("outputs", [](const Model& model) { return values("onnx.load: an output of the model", model.outputs()); })
      .def("device", [](const Model& model) { return text_of(model.device().spelling()); })
      .def("recorded", &Model::recorded)
      .def("run", &run, nb::arg("inputs"), nb::arg("bound"), nb::arg("report").none(), nb::arg("cancellation").none())
      .def("info", [](const Model& model) {
        const tenon::onnx::ModelInfo& info = model.info();
        nb::dict made;
        made["producer"] = info.producer;
        made["domain"] = info.domain;
        made["graph"] = info.graph;
        made["description"] = info.description;
        made["ir_version"] = info.ir_version;
        made["opset"] = info.opset;
        made["version"] = info.version;
        made["nodes"] = info.nodes;
        made["weights"] = info.weights;
        made["weight_bytes"] = info.weight_bytes;
        nb::dict metadata;
        for (const auto& [key, value] : info.metadata) metadata[text_of(key)] = value;
        made["metadata"] = metadata;
        return made;
      });
  nb::class_<Cancellation>(m, "_Cancellation")
      .def(nb::init<>())
      .def("cancel", &Cancellation::cancel)
      .def("cancelled", &Cancellation::cancelled);
  m.def(
      "_load",
      [](const std::string& path, const nb::dict& options) {
        const tenon::onnx::Options read = options_of(options);
        const nb::gil_scoped_release unlocked;
        return tenon::onnx::load(path, read);
      },
      nb::arg("path"), nb::arg("options"));
  m.def(
      "_load_bytes",
      [](const nb::bytes& bytes, const nb::dict& options) {
        const tenon::onnx::Options read = options_of(options);
        const std::string_view view(bytes.c_str(), bytes.size());
        const nb::gil_scoped_release unlocked;
        return tenon::onnx::load_bytes(view, read);
      },
      nb::arg("bytes"), nb::arg("options"));
  m.def("_export", &exported, nb::arg("function"), nb::arg("examples"), nb::arg("name"), nb::arg("inputs"),
        nb::arg("outputs"), nb::arg("dynamic_axes").none(), nb::arg("parameters"));
  m.def("_element_types", [] {
    nb::list made;
    for (const tenon::onnx::ElementType& each : tenon::onnx::element_types()) {
      made.append(nb::make_tuple(text_of(dtype_name(each.dtype)), text_of(each.onnx), each.number));
    }
    return made;
  });
  m.def("_exported_ops", [] {
    nb::dict made;
    for (const tenon::onnx::ExportedOp& each : tenon::onnx::exported_ops()) {
      made[text_of(each.op)] = text_of(each.onnx);
    }
    return made;
  });
}
