#include "core/compile/compile.h"
#include "core/ops/call.h"
#include "sdk/c/border.h"

using tenon::Code;
using tenon::Device;
using tenon::Error;
using tenon::Status;
using tenon::Tensor;
using tenon::TensorList;
using tenon::Value;
namespace c = tenon::c;

namespace {

const tenon::DynamicOp& op_of(const tenon_op* op) {
  return *reinterpret_cast<const tenon::DynamicOp*>(c::needed(op, "op"));
}

template <class T, class List>
List list_of(const T* values, uint32_t count) {
  return count == 0 ? List() : List(c::needed(values, "value"), values + count);
}

Value value_of(const tenon_argument& argument) {
  switch (argument.kind) {
    case TENON_ARGUMENT_NONE: return {};
    case TENON_ARGUMENT_TENSOR: return c::tensor_of(argument.value.tensor, "value.tensor");
    case TENON_ARGUMENT_BOOL: return argument.value.integer != 0;
    case TENON_ARGUMENT_INTEGER: return argument.value.integer;
    case TENON_ARGUMENT_NUMBER: return argument.value.number;
    case TENON_ARGUMENT_INTEGERS: return list_of<int64_t, Value::Ints>(argument.value.integers, argument.count);
    case TENON_ARGUMENT_NUMBERS: return list_of<double, Value::Floats>(argument.value.numbers, argument.count);
    case TENON_ARGUMENT_TENSORS: return c::tensors_of(argument.value.tensors, argument.count, "value.tensors");
    case TENON_ARGUMENT_DTYPE: return c::dtype_of(static_cast<tenon_dtype>(argument.value.integer));
    case TENON_ARGUMENT_DEVICE: return c::device_of(argument.value.text);
    case TENON_ARGUMENT_TEXT: return c::needed(argument.value.text, "value.text");
    default: throw Error(Code::invalid_argument, fmt::format("There is no kind {} of arguments.", argument.kind));
  }
}

void check_room(size_t results, size_t capacity) {
  if (results > capacity)
    throw Error(Code::invalid_argument, fmt::format("There are {} results, and room for {}.", results, capacity));
}

}  // namespace

// The function of a program, and what keeps its recordings.
struct tenon_program {
  tenon_program(tenon_function made, void* its_context, size_t count, tenon::CompileOptions options)
      : function(made),
        context(its_context),
        outputs(count),
        compiled([this](const TensorList& inputs) { return call(inputs); }, std::move(options)) {}
  ~tenon_program() {
    if (release != nullptr) release(context);
  }
  tenon_program(const tenon_program&) = delete;
  tenon_program& operator=(const tenon_program&) = delete;

  TensorList call(const TensorList& inputs) const;

  tenon_function function;
  void* context;
  size_t outputs;
  void (*release)(void* context) = nullptr;
  tenon::CompiledList compiled;
};

TensorList tenon_program::call(const TensorList& inputs) const {
  std::vector<tenon_tensor*> given(inputs.size()), made(outputs, nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) given[i] = reinterpret_cast<tenon_tensor*>(inputs[i].impl());
  tenon_error* error = nullptr;
  const tenon_status status = function(context, given.data(), given.size(), made.data(), outputs, &error);
  TensorList results;
  for (tenon_tensor* each : made) results.emplace_back(c::impl_of(each));
  const Status told = error == nullptr ? Status() : error->status;
  tenon_error_free(error);
  if (status != TENON_OK) {
    throw Error(told.ok()
                    ? Status(Code::internal, fmt::format("The function of the program returned status {}.", status))
                    : told);
  }
  for (size_t i = 0; i < outputs; ++i) {
    if (!results[i].defined())
      throw Error(Code::invalid_argument, fmt::format("The function of the program wrote no output {}.", i));
  }
  return results;
}

extern "C" {

tenon_status tenon_op_find(const char* name, const tenon_op** out, tenon_error** error) {
  return c::guarded("tenon_op_find", error, [&] {
    c::needed(out, "out");
    *out = reinterpret_cast<const tenon_op*>(&tenon::find_op(c::needed(name, "name")));
  });
}

tenon_status tenon_op_call(const tenon_op* op, const tenon_argument* arguments, size_t argument_count,
                           tenon_tensor** outputs, size_t capacity, size_t* count, tenon_error** error) {
  return c::guarded("tenon_op_call", error, [&] {
    if (argument_count > 0) c::needed(arguments, "arguments");
    if (capacity > 0) c::needed(outputs, "outputs");
    c::needed(count, "count");
    std::vector<Value> positional;
    std::vector<tenon::Keyword> named;
    positional.reserve(argument_count);
    for (size_t i = 0; i < argument_count; ++i) {
      const tenon_argument& argument = arguments[i];
      if (argument.name != nullptr) {
        named.push_back({argument.name, value_of(argument)});
      } else if (named.empty()) {
        positional.push_back(value_of(argument));
      } else {
        throw Error(Code::invalid_argument,
                    fmt::format("Argument {} has no name, but follows one that has a name.", i));
      }
    }
    tenon::Results results = tenon::call_for_results(op_of(op), positional, named);
    if (results.one) {
      check_room(1, capacity);
      outputs[0] = c::handle_of(std::move(*results.one));
      *count = 1;
      return;
    }
    check_room(results.several.size(), capacity);
    *count = results.several.size();
    c::write_handles(std::move(results.several), outputs);
  });
}

tenon_status tenon_program_create(tenon_function function, void* context, size_t output_count,
                                  const tenon_program_options* options, tenon_program** out, tenon_error** error) {
  return c::guarded("tenon_program_create", error, [&] {
    if (function == nullptr) c::refuse_null("function");
    c::needed(out, "out");
    const tenon_program_options known = c::known_options(options);
    tenon::CompileOptions compile;
    compile.name = known.name == nullptr ? "a program" : known.name;
    compile.exact = known.exact != 0;
    compile.fuse = c::choice_of(known.fuse, "fuse");
    compile.compile = c::compiling_of(known.wait);
    auto* program = new tenon_program(function, context, output_count, std::move(compile));
    program->release = known.release;
    *out = program;
  });
}

tenon_status tenon_program_run(const tenon_program* program, const tenon_tensor* const* inputs, size_t input_count,
                               tenon_tensor** outputs, size_t output_count, const tenon_cancellation* cancellation,
                               tenon_error** error) {
  return c::guarded("tenon_program_run", error, [&] {
    c::needed(program, "program");
    if (output_count != program->outputs) {
      throw Error(Code::invalid_argument,
                  fmt::format("The program has {} outputs, but `output_count` is {}.", program->outputs, output_count));
    }
    if (output_count > 0) c::needed(outputs, "outputs");
    const TensorList given = c::tensors_of(inputs, input_count, "inputs");
    const c::CancelledBy scope(cancellation);
    c::write_handles(program->compiled(given), outputs);
  });
}

void tenon_program_free(tenon_program* program) { delete program; }

}  // extern "C"
