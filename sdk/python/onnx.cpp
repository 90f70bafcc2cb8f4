// The extension module tenon._onnx: loading, running and writing models with sdk/onnx. tenon/onnx.py wraps it.
#include "sdk/onnx/onnx.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "primitives/status/error.h"
#include "sdk/python/text.h"

namespace nb = nanobind;

namespace {

using tenon::Tensor;
using tenon::TensorList;
using tenon::onnx::Model;
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
                               each.has_shape ? nb::object(shape_of(each)) : nb::none()));
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

nb::dict run(const Model& model, const nb::dict& given) {
  tenon::onnx::Values inputs;
  for (const auto& [name, value] : given) inputs.emplace(nb::cast<std::string>(name), value_of(value));
  tenon::onnx::ValueList results;
  {
    const nb::gil_scoped_release unlocked;
    results = model.run_values(inputs);
  }
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

tenon::onnx::Options options_of(const std::string& device, bool eager, bool exact,
                                const std::optional<std::string>& precision) {
  tenon::onnx::Options options;
  if (!device.empty()) options.device = tenon::Device(device);
  options.eager = eager;
  if (precision) {
    const auto named = tenon::precision_from_name(*precision);
    tenon::throw_if_error(named.status());
    options.precision = named.value();
  }
  options.passes = exact ? tenon::onnx::Passes::exact : tenon::onnx::Passes::bounded;
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
      .def("run", &run)
      .def("info", [](const Model& model) {
        const tenon::onnx::ModelInfo& info = model.info();
        nb::dict made;
        made["producer"] = info.producer;
        made["domain"] = info.domain;
        made["graph"] = info.graph;
        made["description"] = info.description;
        made["ir_version"] = info.ir_version;
        made["opset"] = info.opset;
        made["nodes"] = info.nodes;
        made["weights"] = info.weights;
        nb::dict metadata;
        for (const auto& [key, value] : info.metadata) metadata[text_of(key)] = value;
        made["metadata"] = metadata;
        return made;
      });
  using Name = std::optional<std::string>;
  m.def(
      "_load",
      [](const std::string& path, const std::string& device, bool eager, bool exact, const Name& precision) {
        const nb::gil_scoped_release unlocked;
        return tenon::onnx::load(path, options_of(device, eager, exact, precision));
      },
      nb::arg("path"), nb::arg("device"), nb::arg("eager"), nb::arg("exact"), nb::arg("precision").none());
  m.def(
      "_load_bytes",
      [](const nb::bytes& bytes, const std::string& device, bool eager, bool exact, const Name& precision) {
        const std::string_view view(bytes.c_str(), bytes.size());
        const nb::gil_scoped_release unlocked;
        return tenon::onnx::load_bytes(view, options_of(device, eager, exact, precision));
      },
      nb::arg("bytes"), nb::arg("device"), nb::arg("eager"), nb::arg("exact"), nb::arg("precision").none());
  m.def("_export", &exported, nb::arg("function"), nb::arg("examples"), nb::arg("name"), nb::arg("inputs"),
        nb::arg("outputs"), nb::arg("dynamic_axes").none(), nb::arg("parameters"));
  m.def("_exported_ops", [] {
    nb::dict made;
    for (const tenon::onnx::ExportedOp& each : tenon::onnx::exported_ops()) {
      made[text_of(each.op)] = text_of(each.onnx);
    }
    return made;
  });
}
