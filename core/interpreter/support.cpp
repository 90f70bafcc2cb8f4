#include "core/interpreter/support.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/interpreter/inference.h"
#include "core/interpreter/lower.h"
#include "core/ops/call.h"
#include "core/ops/decompose/decompose.h"
#include "core/ops/libraries.h"
#include "core/ops/op_call.h"
#include "core/tensor/factory.h"
#include "core/tensor/opened_devices.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

// Asks `device` for the one primitive of `call`, whose outputs are `outputs`.
Status ask(const OpCall& call, const std::vector<TensorMeta>& outputs, const DeviceState* device) {
  LoweredCall lowered;
  TENON_RETURN_IF_ERROR(lower_call(call, outputs, &lowered));
  ep_support_info info{};
  info.struct_size = sizeof info;
  ep_error* error = nullptr;
  const ep_status code = device->ops.primitive_support(device->handle, &lowered.lowering.desc, &info, &error);
  return loader::take_error(code, error, {});
}

// Returns tensors without data for every op, and notes which rung would compute it.
class AskingInterpreter final : public Interpreter {
 public:
  explicit AskingInterpreter(DeviceState* device) : device_(device) {}

  void apply(const OpCall& call) override {
    switch (call.op->form) {
      case OpForm::composite: return compose(call, *this);
      case OpForm::view: return answer_view(call);
      default: break;
    }
    OpCall asked = call;
    asked.device = device_;
    std::vector<TensorMeta> outputs;
    throw_if_error(infer_outputs(asked, &outputs));
    if (call.op->form != OpForm::builtin) {
      note(asked, outputs);
    } else if (is_of_library(*call.op) && device_ != value_or_throw(host_device_state())) {
      served = std::max(served, Served::host);
    }
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (!call.outputs[i].defined()) call.outputs[i] = make_meta(device_, outputs[i]);
    }
  }

  std::string name() const override { return "asking who computes an op"; }
  bool host_value_known(const Tensor&) override { return false; }

  Served served = Served::native;
  std::string reason;

 private:
  void answer_view(const OpCall& call) {
    TensorImpl view;
    throw_if_error(call.op->view(call, &view));
    call.outputs[0] = make_meta(device_, {view.dtype, view.dims, view.strides});
  }

  void note(const OpCall& call, const std::vector<TensorMeta>& outputs) {
    const Status native = ask(call, outputs, device_);
    if (native.ok()) return;
    if (native.code() != Code::unsupported) throw Error(native);
    if (reason.empty()) reason = native.message();
    served = std::max(served, below_native(call, outputs));
  }

  Served below_native(const OpCall& call, const std::vector<TensorMeta>& outputs) {
    if (decomposes(call)) return Served::decomposed;
    DeviceState* host = value_or_throw(host_device_state());
    return host != device_ && ask(call, outputs, host).ok() ? Served::host : Served::refused;
  }

  // True if the decomposition of `call` uses only primitives that are native, or that decompose in turn.
  bool decomposes(const OpCall& call) {
    if (!ops::has_decomposition(call)) return false;
    AskingInterpreter parts(device_);
    const InterpreterScope scope(parts);
    std::vector<Tensor> outputs(call.outputs.size());
    OpCall inner = call;
    inner.outputs = outputs;
    try {
      ops::decompose(inner);
    } catch (const Error&) {
      return false;
    }
    return parts.served <= Served::decomposed;
  }

  DeviceState* device_;
};

// ---- finding a call that an op's rules accept ----

// The shapes of the tensors in one trial: of the first, the second, and all others.
struct Shapes {
  Dims first, second, others;
};

const std::vector<Shapes>& shapes_to_try() {
  static const std::vector<Shapes> all = {
      {{4, 6}, {4, 6}, {4, 6}},           // element-wise
      {{4, 6}, {6, 4}, {4, 4}},           // products
      {{4, 6}, {6}, {6}},                 // norms over the last axis
      {{2, 4, 6, 6}, {4, 4, 3, 3}, {4}},  // convolutions
      {{2, 4, 6, 6}, {4}, {4}},           // norms over channels
      {{2, 4, 6, 6}, {2, 4, 6, 6}, {2, 4, 6, 6}},
      {{2, 4, 5, 5, 5}, {4, 4, 3, 3, 3}, {4}},
      {{2, 4, 6}, {2, 6, 4}, {2, 4, 4}},  // batched products
      {{2, 4, 6}, {2, 4, 6}, {2, 4, 6}},
      {{4, 4}, {4, 4}, {4, 4}},
      {{6}, {6}, {6}},
      {{4, 6}, {4}, {4, 6}},  // an index and the selected elements
      {{4, 6}, {4}, {4}},
      {{6}, {4, 6}, {6}},
      {{}, {}, {}},
  };
  return all;
}

// Which tensors hold indices or conditions.
enum class Kinds : uint8_t {
  all_main,
  second_index,
  last_index,
  first_index,
  first_bool,
  second_bool,
  all_but_first_index
};
constexpr std::array kKinds = {Kinds::all_main,    Kinds::second_index, Kinds::last_index,         Kinds::first_bool,
                               Kinds::second_bool, Kinds::first_index,  Kinds::all_but_first_index};

DType dtype_of(Kinds kinds, size_t number, size_t count, DType main) {
  switch (kinds) {
    case Kinds::all_main: return main;
    case Kinds::second_index: return number == 1 ? DType::i64 : main;
    case Kinds::last_index: return number + 1 == count ? DType::i64 : main;
    case Kinds::first_index: return number == 0 ? DType::i64 : main;
    case Kinds::first_bool: return number == 0 ? DType::boolean : main;
    case Kinds::second_bool: return number == 1 ? DType::boolean : main;
    case Kinds::all_but_first_index: return number > 0 ? DType::i64 : main;
  }
  return main;
}

// The values to try for a parameter that is not a tensor.
std::vector<Value> values_to_try(const Parameter& parameter) {
  using Ints = Value::Ints;
  if ((parameter.accepts & kAcceptsDevice) != 0) return {Value(Device::host())};
  if ((parameter.accepts & kAcceptsDtype) != 0) return {Value(DType::f32)};
  if ((parameter.accepts & kAcceptsBool) != 0 && (parameter.accepts & kAcceptsInt) == 0) return {Value(false)};
  if ((parameter.accepts & kAcceptsFloat) != 0) return {Value(int64_t{1}), Value(0.5)};
  if ((parameter.accepts & kAcceptsInts) != 0) {
    return {Ints{1}, Ints{0},    Ints{4, 6},    Ints{2, 2},       Ints{1, 0},
            Ints{6}, Ints{1, 1}, Ints{1, 0, 2}, Ints{2, 4, 6, 6}, Ints{3, 3}};
  }
  if ((parameter.accepts & kAcceptsInt) != 0)
    return {Value(int64_t{1}), Value(int64_t{0}), Value(int64_t{2}), Value(int64_t{4})};
  if ((parameter.accepts & kAcceptsString) != 0) return {Value("none"), Value("mean"), Value("i,i->i"), Value("fro")};
  return {};
}

class Trial {
 public:
  Trial(const DynamicOp& op, DeviceState* device) : op_(op), device_(device) {}

  // Finds a call that the op accepts with `main` as the dtype of its tensors: with the required arguments only, else
  // with numbers for others too, since clamp needs one of two.
  bool find(DType main) { return find_with(main, false) || find_with(main, true); }

  // Asks about the call that was found, in another dtype.
  DTypeSupport ask_in(DType main) const {
    AskingInterpreter asking(device_);
    DTypeSupport support{main, Served::refused, run(main, chosen_, &asking)};
    if (!support.reason.empty()) return support;
    support.served = asking.served;
    support.reason = asking.reason;
    return support;
  }

  std::string text(DType main) const {
    std::string text;
    for (size_t i = 0; i < required_.size(); ++i) {
      text += fmt::format("{}{}", i == 0 ? "" : ", ", said(value(i, main, chosen_)));
    }
    return fmt::format("{}({})", op_.name, text);
  }

 private:
  static constexpr size_t kMostTrials = 200;

  static bool is_tensor(const Parameter& parameter) {
    return (parameter.accepts & (kAcceptsTensor | kAcceptsTensors)) != 0;
  }

  bool find_with(DType main, bool numbers) {
    for (const Signature& signature : op_.signatures) {
      signature_ = &signature;
      required_.clear();
      for (const Parameter& parameter : signature.parameters) {
        const bool number = (parameter.accepts & kAcceptsFloat) != 0 && !is_tensor(parameter);
        if (parameter.required || (numbers && number)) required_.push_back(&parameter);
      }
      const auto tensors = static_cast<size_t>(
          std::count_if(required_.begin(), required_.end(), [](const Parameter* p) { return is_tensor(*p); }));
      for (const Shapes& shapes : shapes_to_try()) {
        shapes_ = &shapes;
        for (const Kinds kinds : kKinds) {
          if (tensors > 0 && !holds_main(kinds, tensors)) continue;
          kinds_ = kinds;
          if (find_values(main)) return true;
          if (tensors == 0) break;
        }
        if (tensors == 0) break;
      }
    }
    return false;
  }

  // True if some tensor has the dtype that is asked about.
  static bool holds_main(Kinds kinds, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (dtype_of(kinds, i, count, DType::none) == DType::none) return true;
    }
    return false;
  }

  // Tries all combinations of values of the other parameters.
  bool find_values(DType main) {
    chosen_.assign(required_.size(), 0);
    for (size_t trial = 0; trial < kMostTrials; ++trial) {
      AskingInterpreter asking(device_);
      if (run(main, chosen_, &asking).empty()) return true;
      size_t i = 0;
      for (; i < required_.size(); ++i) {
        if (is_tensor(*required_[i])) continue;
        if (++chosen_[i] < values_to_try(*required_[i]).size()) break;
        chosen_[i] = 0;
      }
      if (i == required_.size()) return false;
    }
    return false;
  }

  Value value(size_t i, DType main, const std::vector<size_t>& chosen) const {
    const Parameter& parameter = *required_[i];
    if (!is_tensor(parameter)) {
      const std::vector<Value> values = values_to_try(parameter);
      return chosen[i] < values.size() ? values[chosen[i]] : Value();
    }
    size_t number = 0, count = 0;
    for (size_t j = 0; j < required_.size(); ++j) {
      if (j < i && is_tensor(*required_[j])) ++number;
      count += is_tensor(*required_[j]);
    }
    const Dims& dims = number == 0 ? shapes_->first : number == 1 ? shapes_->second : shapes_->others;
    const Tensor tensor = make_meta(device_, {dtype_of(kinds_, number, count, main), dims, contiguous_strides(dims)});
    if ((parameter.accepts & kAcceptsTensors) != 0) return Value(TensorList{tensor, tensor});
    return Value(tensor);
  }

  // Runs the call under `asking`. Returns why it was refused; empty if it was not.
  std::string run(DType main, const std::vector<size_t>& chosen, AskingInterpreter* asking) const {
    std::vector<Value> args;
    std::vector<Keyword> keywords;
    for (size_t i = 0; i < required_.size(); ++i) {
      Value argument = value(i, main, chosen);
      if (required_[i]->keyword_only) {
        keywords.push_back({required_[i]->name, std::move(argument)});
      } else {
        args.push_back(std::move(argument));
      }
    }
    // A factory makes its result in the dtype that is asked about.
    for (const Parameter& parameter : signature_->parameters) {
      if (!parameter.required && parameter.name == "dtype" && args_have_no_tensor(args))
        keywords.push_back({"dtype", Value(main)});
    }
    const InterpreterScope scope(*asking);
    try {
      call(op_, args, keywords);
      return {};
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  static bool args_have_no_tensor(const std::vector<Value>& args) {
    return std::none_of(args.begin(), args.end(),
                        [](const Value& v) { return v.tensor() != nullptr || v.get<TensorList>() != nullptr; });
  }

  static std::string said(const Value& value) {
    if (const Tensor* tensor = value.tensor()) return fmt::format("{} {}", dtype_name(tensor->dtype()), tensor->dims());
    if (const auto* list = value.get<TensorList>())
      return fmt::format("{} of {}", list->size(), said(Value(list->at(0))));
    if (const auto* ints = value.get<Value::Ints>()) return fmt::format("{}", Dims(std::span<const int64_t>(*ints)));
    if (const int64_t* integer = value.get<int64_t>()) return fmt::format("{}", *integer);
    if (const double* number = value.get<double>()) return fmt::format("{}", *number);
    if (const DType* dtype = value.get<DType>()) return std::string(dtype_name(*dtype));
    if (const auto* text = value.get<std::string>()) return fmt::format("'{}'", *text);
    return std::string(value.type_name());
  }

  const DynamicOp& op_;
  DeviceState* device_;
  const Signature* signature_ = nullptr;
  std::vector<const Parameter*> required_;
  const Shapes* shapes_ = nullptr;
  Kinds kinds_ = Kinds::all_main;
  std::vector<size_t> chosen_;
};

}  // namespace

std::string_view served_name(Served served) {
  constexpr std::string_view names[] = {"native", "decomposed", "host", "refused"};
  return names[static_cast<size_t>(served)];
}

OpSupport ask_support(const DynamicOp& op, Device device, const std::vector<DType>& dtypes) {
  OpSupport support;
  Trial trial(op, device.state());
  for (const DType main : {DType::f32, DType::i32, DType::i64, DType::boolean, DType::u8}) {
    if (!trial.find(main)) continue;
    support.call = trial.text(main);
    for (const DType dtype : dtypes) support.dtypes.push_back(trial.ask_in(dtype));
    break;
  }
  return support;
}

}  // namespace tenon
