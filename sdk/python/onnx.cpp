// The extension module tenon._onnx: models, as sdk/onnx loads, runs and writes them. tenon/onnx.py gives its names.
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

nb::dict run(const Model& model, const nb::dict& given) {
  tenon::onnx::Inputs inputs;
  for (const auto& [name, tensor] : given) inputs.emplace(nb::cast<std::string>(name), nb::cast<Tensor>(tensor));
  TensorList results;
  {
    const nb::gil_scoped_release unlocked;
    results = model.run(inputs);
  }
  nb::dict made;
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string& name = model.outputs()[i].name;
    made[name_text("onnx: an output of the model", name)] = nb::cast(std::move(results[i]));
  }
  return made;
}

tenon::onnx::Options options_of(const std::string& device, bool eager, bool exact) {
  tenon::onnx::Options options;
  if (!device.empty()) options.device = tenon::Device(device);
  options.eager = eager;
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
  m.def("_load", [](const std::string& path, const std::string& device, bool eager, bool exact) {
    const nb::gil_scoped_release unlocked;
    return tenon::onnx::load(path, options_of(device, eager, exact));
  });
  m.def("_load_bytes", [](const nb::bytes& bytes, const std::string& device, bool eager, bool exact) {
    const std::string_view view(bytes.c_str(), bytes.size());
    const nb::gil_scoped_release unlocked;
    return tenon::onnx::load_bytes(view, options_of(device, eager, exact));
  });
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
