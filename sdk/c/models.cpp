#include "sdk/c/models.h"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include "loader/settings/settings.h"
#include "sdk/report/report.h"

using tenon::Code;
using tenon::Error;
using tenon::Tensor;
using tenon::TensorList;
using tenon::onnx::Inputs;
using tenon::onnx::Model;
using tenon::onnx::NodeExecution;
using tenon::onnx::Options;
using tenon::onnx::Value;
using tenon::onnx::ValueInfo;
namespace c = tenon::c;

static_assert(TENON_VALUE_NONE == static_cast<int>(Value::Kind::none) &&
              TENON_VALUE_TENSOR == static_cast<int>(Value::Kind::tensor) &&
              TENON_VALUE_STRINGS == static_cast<int>(Value::Kind::strings) &&
              TENON_VALUE_SEQUENCE == static_cast<int>(Value::Kind::sequence) &&
              TENON_VALUE_OPTIONAL == static_cast<int>(Value::Kind::optional) &&
              TENON_VALUE_MAP == static_cast<int>(Value::Kind::map));
static_assert(TENON_SHAPES_EXACT == static_cast<int>(tenon::onnx::Shapes::exact) &&
              TENON_SHAPES_RANK == static_cast<int>(tenon::onnx::Shapes::rank) &&
              TENON_SHAPES_ANY == static_cast<int>(tenon::onnx::Shapes::any));
static_assert(TENON_PRECISION_DEFAULT == EP_PRECISION_DEFAULT && TENON_PRECISION_RELAXED == EP_PRECISION_RELAXED &&
              TENON_PRECISION_PORTABLE == EP_PRECISION_PORTABLE && TENON_PRECISION_FULL == EP_PRECISION_FULL);

namespace {

// An option that counts from 0 to `last`.
int32_t numbered(int32_t option, int32_t last, std::string_view member) {
  if (option >= 0 && option <= last) return option;
  throw Error(Code::invalid_argument,
              fmt::format("The option `{}` is {}; it must be from 0 to {}.", member, option, last));
}

Options load_options(const tenon_model_options* given) {
  const tenon_model_options known = c::known_options(given);
  Options options;
  options.device = c::device_of(known.device);
  if (known.external_data != nullptr) options.external_data_root = known.external_data;
  options.eager = known.eager != 0;
  if (known.exact != 0) options.passes = tenon::onnx::Passes::exact;
  options.fuse = c::choice_of(known.fuse, "fuse");
  options.compile = c::compiling_of(known.wait);
  options.shapes = static_cast<tenon::onnx::Shapes>(numbered(known.shapes, TENON_SHAPES_ANY, "shapes"));
  if (const int32_t precision = numbered(known.precision, TENON_PRECISION_FULL, "precision"); precision != 0)
    options.precision = static_cast<tenon::Precision>(precision);
  if (known.kept_graphs != 0) options.max_recorded = known.kept_graphs;
  return options;
}

// Calls `body(name, input)` for each input.
template <class Input, class F>
void each_input(const Model& model, const char* const* names, const Input* const* inputs, size_t count, F body) {
  if (count > 0) c::needed(inputs, "inputs");
  if (names == nullptr && count != model.inputs().size()) {
    throw Error(Code::invalid_argument,
                fmt::format("The model has {} inputs, but `input_count` is {}.", model.inputs().size(), count),
                "Without `names` the inputs must be all of TENON_INPUTS, in their order.");
  }
  for (size_t i = 0; i < count; ++i) {
    const std::string name = names == nullptr ? model.inputs()[i].name : c::needed(names[i], "names");
    if (!body(name, inputs[i]))
      throw Error(Code::invalid_argument, fmt::format("The input '{}' is given twice.", name));
  }
}

Inputs inputs_of(const Model& model, const char* const* names, const tenon_tensor* const* tensors, size_t count) {
  Inputs inputs;
  each_input(model, names, tensors, count, [&](const std::string& name, const tenon_tensor* tensor) {
    return inputs.emplace(name, c::tensor_of(tensor, name)).second;
  });
  return inputs;
}

Inputs bound_of(const Model& model, const tenon_tensor* const* bound) {
  Inputs made;
  for (size_t i = 0; bound != nullptr && i < model.outputs().size(); ++i) {
    if (bound[i] != nullptr) made.emplace(model.outputs()[i].name, c::tensor_of(bound[i]));
  }
  return made;
}

void check_outputs(const Model& model, size_t count, const void* outputs) {
  if (count != model.outputs().size()) {
    throw Error(Code::invalid_argument,
                fmt::format("The model has {} outputs, but `output_count` is {}.", model.outputs().size(), count));
  }
  if (count > 0) c::needed(outputs, "outputs");
}

char* report_text(const std::vector<NodeExecution>& executions) {
  return c::owned_text(tenon::report::json_text(tenon::report::executions_json(executions)));
}

// Runs the model with all options. Waits for the outputs if `waits`. The report is written last, so that a run that
// fails writes none.
TensorList run(const Model& model, const Inputs& inputs, const tenon_run_options& options, bool waits) {
  const Inputs bound = bound_of(model, options.bound);
  if (options.report != nullptr && !bound.empty())
    throw Error(Code::unsupported, "A run cannot have both `bound` and `report`.");
  const c::CancelledBy scope(options.cancellation);
  std::vector<NodeExecution> executions;
  TensorList results = options.report != nullptr ? model.run(inputs, &executions)
                       : bound.empty()           ? model.run(inputs)
                                                 : model.run(inputs, bound);
  for (const Tensor& each : results) {
    if (waits) each.wait();
  }
  if (options.report != nullptr) *options.report = report_text(executions);
  return results;
}

// The threads of asynchronous runs, which the process's exit joins.
boost::asio::thread_pool& runners() {
  static boost::asio::thread_pool pool(static_cast<size_t>(tenon::loader::thread_limit()));
  return pool;
}

struct AsyncRun {
  Model model;
  Inputs inputs;
  tenon_run_options options;
  tenon_run_done done;
  void* context;

  void operator()() const noexcept {
    std::vector<tenon_tensor*> outputs;
    tenon_error* error = nullptr;
    const tenon_status status = c::guarded("tenon_model_run_async", &error, [&] {
      TensorList results = run(model, inputs, options, true);
      outputs.resize(results.size());
      c::write_handles(std::move(results), outputs.data());
    });
    done(context, status, outputs.data(), outputs.size(), error);
  }
};

const std::vector<tenon_model::Described>* described(const tenon_model* model, int32_t which) {
  return model == nullptr || which < TENON_INPUTS || which > TENON_DEFAULTS ? nullptr : &model->described[which];
}

nlohmann::json infos_json(const std::vector<ValueInfo>& infos) {
  nlohmann::json list = nlohmann::json::array();
  for (const ValueInfo& info : infos) list.push_back({{"name", info.name}, {"type", to_string(info)}});
  return list;
}

}  // namespace

tenon_model::Described::Described(const ValueInfo& described) : info(&described), text(to_string(described)) {
  for (const tenon::onnx::Dim& dim : info->dims) dims.push_back({dim.value, dim.name.c_str()});
}

tenon_model::tenon_model(Model loaded) : model(std::move(loaded)) {
  for (const ValueInfo& info : model.inputs()) described[TENON_INPUTS].emplace_back(info);
  for (const ValueInfo& info : model.outputs()) described[TENON_OUTPUTS].emplace_back(info);
  for (const ValueInfo& info : model.defaults()) described[TENON_DEFAULTS].emplace_back(info);
}

extern "C" {

tenon_status tenon_model_load(const char* path, const tenon_model_options* options, tenon_model** out,
                              tenon_error** error) {
  return c::guarded("tenon_model_load", error, [&] {
    c::needed(out, "out");
    *out = new tenon_model(tenon::onnx::load(c::needed(path, "path"), load_options(options)));
  });
}

tenon_status tenon_model_load_bytes(const void* data, size_t bytes, const tenon_model_options* options,
                                    tenon_model** out, tenon_error** error) {
  return c::guarded("tenon_model_load_bytes", error, [&] {
    c::needed(out, "out");
    const std::string_view view(static_cast<const char*>(c::needed(data, "data")), bytes);
    *out = new tenon_model(tenon::onnx::load_bytes(view, load_options(options)));
  });
}

void tenon_model_free(tenon_model* model) { delete model; }

tenon_status tenon_model_check(const char* path, const tenon_model_options* options, char** out_json,
                               tenon_error** error) {
  return c::guarded("tenon_model_check", error, [&] {
    c::needed(out_json, "out_json");
    const tenon::onnx::Checked checked = tenon::onnx::check(c::needed(path, "path"), load_options(options));
    *out_json = c::owned_text(tenon::report::json_text({{"producer", checked.info.producer},
                                                        {"opset", checked.info.opset},
                                                        {"nodes", checked.info.nodes},
                                                        {"weights", checked.info.weights},
                                                        {"weight_bytes", checked.info.weight_bytes},
                                                        {"inputs", infos_json(checked.inputs)},
                                                        {"outputs", infos_json(checked.outputs)},
                                                        {"defaults", infos_json(checked.defaults)},
                                                        {"refusals", checked.refusals}}));
  });
}

size_t tenon_model_count(const tenon_model* model, int32_t which) {
  const std::vector<tenon_model::Described>* list = described(model, which);
  return list == nullptr ? 0 : list->size();
}

tenon_status tenon_model_describe(const tenon_model* model, int32_t which, size_t index, tenon_value_info* info,
                                  tenon_error** error) {
  return c::guarded("tenon_model_describe", error, [&] {
    c::needed(model, "model");
    const std::vector<tenon_model::Described>* list = described(model, which);
    if (list == nullptr) throw Error(Code::invalid_argument, fmt::format("There is no list {} of values.", which));
    if (index >= list->size()) {
      throw Error(Code::invalid_argument,
                  fmt::format("The index is {}, and the model has {} of these.", index, list->size()));
    }
    const tenon_model::Described& one = (*list)[index];
    tenon_value_info known{};
    known.name = one.info->name.c_str();
    known.kind = static_cast<int32_t>(one.info->kind);
    known.is_optional = one.info->optional ? 1 : 0;
    known.dtype = static_cast<tenon_dtype>(one.info->dtype);
    known.rank = one.info->has_shape ? static_cast<int32_t>(one.dims.size()) : -1;
    known.dims = one.dims.data();
    known.text = one.text.c_str();
    c::write_info(info, known);
  });
}

const char* tenon_model_metadata(const tenon_model* model, const char* key) {
  if (model == nullptr || key == nullptr) return nullptr;
  const auto& metadata = model->model.info().metadata;
  const auto found = metadata.find(key);
  return found == metadata.end() ? nullptr : found->second.c_str();
}

tenon_status tenon_model_run(const tenon_model* model, const char* const* names, const tenon_tensor* const* inputs,
                             size_t input_count, tenon_tensor** outputs, size_t output_count,
                             const tenon_run_options* options, tenon_error** error) {
  return c::guarded("tenon_model_run", error, [&] {
    const Model& loaded = c::needed(model, "model")->model;
    check_outputs(loaded, output_count, outputs);
    c::write_handles(run(loaded, inputs_of(loaded, names, inputs, input_count), c::known_options(options), false),
                     outputs);
  });
}

tenon_status tenon_model_run_async(const tenon_model* model, const char* const* names,
                                   const tenon_tensor* const* inputs, size_t input_count,
                                   const tenon_run_options* options, tenon_run_done done, void* context,
                                   tenon_error** error) {
  return c::guarded("tenon_model_run_async", error, [&] {
    const Model& loaded = c::needed(model, "model")->model;
    if (done == nullptr) c::refuse_null("done");
    boost::asio::post(runners(), AsyncRun{loaded, inputs_of(loaded, names, inputs, input_count),
                                          c::known_options(options), done, context});
  });
}

tenon_status tenon_model_run_values(const tenon_model* model, const char* const* names,
                                    const tenon_value* const* inputs, size_t input_count, tenon_value** outputs,
                                    size_t output_count, const tenon_run_options* options, tenon_error** error) {
  return c::guarded("tenon_model_run_values", error, [&] {
    const Model& loaded = c::needed(model, "model")->model;
    check_outputs(loaded, output_count, outputs);
    const tenon_run_options known = c::known_options(options);
    if (known.bound != nullptr) throw Error(Code::unsupported, "A run of values cannot have `bound`.");
    tenon::onnx::Values values;
    each_input(loaded, names, inputs, input_count, [&](const std::string& name, const tenon_value* value) {
      return values.emplace(name, c::needed(value, name)->value).second;
    });
    std::vector<NodeExecution> executions;
    std::vector<std::unique_ptr<tenon_value>> made;
    {
      const c::CancelledBy scope(known.cancellation);
      for (Value& each : loaded.run_values(values, known.report == nullptr ? nullptr : &executions))
        made.emplace_back(c::value_handle(std::move(each)));
    }
    if (known.report != nullptr) *known.report = report_text(executions);
    for (size_t i = 0; i < made.size(); ++i) outputs[i] = made[i].release();
  });
}

}  // extern "C"
