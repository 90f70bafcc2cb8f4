// Gradients from Python: modes that record ops or not, backward and grad, hooks, and functions written by the user.
#include "core/autograd/autograd.h"

#include <memory>
#include <utility>
#include <vector>

#include "core/autograd/history.h"
#include "core/autograd/interpreter.h"
#include "core/ops/op_call.h"
#include "primitives/text/format.h"
#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

// ---- recording of ops for gradients ----

// One open `with` block. The innermost block of a thread decides.
struct Mode {
  bool enabled = true;
  bool inference = false;
  std::unique_ptr<InferenceMode> inference_scope;
  std::unique_ptr<NoGrad> off;
  std::unique_ptr<autograd::GradientInterpreter> remembering;
  std::unique_ptr<InterpreterScope> on;

  ~Mode() {
    on.reset();
    off.reset();
  }
};

thread_local std::vector<std::unique_ptr<Mode>> modes;

// Also false while no tensor of the process requires a gradient.
bool remembers() { return dynamic_cast<autograd::GradientInterpreter*>(&current_interpreter()) != nullptr; }

void enter_mode(bool enabled, bool inference) {
  auto mode = std::make_unique<Mode>();
  mode->enabled = enabled;
  mode->inference = inference || (!modes.empty() && modes.back()->inference);
  if (inference) {
    mode->inference_scope = std::make_unique<InferenceMode>();
  } else if (!enabled) {
    mode->off = std::make_unique<NoGrad>();
  } else if (!grad_enabled() && !remembers()) {
    mode->remembering = std::make_unique<autograd::GradientInterpreter>(current_interpreter());
    mode->on = std::make_unique<InterpreterScope>(*mode->remembering);
  }
  modes.push_back(std::move(mode));
}

void leave_modes(size_t depth) {
  while (modes.size() > depth) modes.pop_back();
}

// ---- `with` blocks ----

// `__exit__` of a Context. It must end the block even when no memory is left, so it allocates nothing.
template <class Context>
PyObject* end_block(PyObject* self, PyObject* const*, Py_ssize_t) noexcept {
  nb::inst_ptr<Context>(self)->leave();
  Py_RETURN_NONE;
}

template <class Context>
PyMethodDef block_methods[] = {
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&end_block<Context>)), METH_FASTCALL,
     "Ends the block."},
    {nullptr, nullptr, 0, nullptr},
};

template <class Context>
PyType_Slot block_slots[] = {{Py_tp_methods, block_methods<Context>}, {0, nullptr}};

// A class whose objects are `with` blocks. Context has enter() and leave().
template <class Context>
nb::class_<Context> block_class(nb::module_& m, const char* name) {
  return nb::class_<Context>(m, name, nb::type_slots(block_slots<Context>)).def("__enter__", [](nb::handle self) {
    nb::inst_ptr<Context>(self)->enter();
    return nb::borrow(self);
  });
}

// One Scope per open `with` block of the same object.
template <class Scope>
class OpenScopes {
 public:
  OpenScopes() = default;
  OpenScopes(const OpenScopes&) = delete;
  OpenScopes& operator=(const OpenScopes&) = delete;

  template <class... Arguments>
  void enter(Arguments&&... arguments) {
    scopes_.reserve(scopes_.size() + 1);
    scopes_.push_back(std::make_unique<Scope>(std::forward<Arguments>(arguments)...));
  }
  void leave() noexcept {
    if (!scopes_.empty()) scopes_.pop_back();
  }

 private:
  std::vector<std::unique_ptr<Scope>> scopes_;
};

// tenon.no_grad() and the other modes, as `with` blocks.
class ModeContext {
 public:
  ModeContext(bool enabled, bool inference) : enabled_(enabled), inference_(inference) {}

  void enter() {
    if (std::exchange(begun_, false)) return;
    depths_.reserve(depths_.size() + 1);
    const size_t depth = modes.size();
    enter_mode(enabled_, inference_);
    depths_.push_back(depth);
  }
  // The mode holds from now on. A `with` block entered later only ends it.
  void begin() {
    enter();
    begun_ = true;
  }
  void leave() noexcept {
    if (depths_.empty()) return;
    begun_ = false;
    leave_modes(depths_.back());
    depths_.pop_back();
  }

 private:
  bool enabled_, inference_;
  bool begun_ = false;
  std::vector<size_t> depths_;  // for each open `with` block of this object: how many blocks were open around it
};

// tenon.precision(name) as a `with` block.
class PrecisionContext {
 public:
  explicit PrecisionContext(const std::string& name) {
    const Result<Precision> named = precision_from_name(name);
    throw_if_error(named.status());
    precision_ = named.value();
  }
  void enter() { scopes_.enter(precision_); }
  void leave() noexcept { scopes_.leave(); }

 private:
  Precision precision_ = Precision::stated;
  OpenScopes<PrecisionScope> scopes_;
};

}  // namespace

nb::list list_of(const TensorList& tensors) {
  nb::list list;
  for (const Tensor& each : tensors) list.append(object_of(each));
  return list;
}

bool grad_enabled() { return modes.empty() || modes.back()->enabled; }

TensorList tensors_of(const nb::handle& sequence, std::string_view what) {
  TensorList tensors;
  for (const nb::handle each : sequence) {
    const Tensor* tensor = tensor_in(each.ptr());
    if (tensor == nullptr && !each.is_none()) {
      refuse(PyExc_TypeError, fmt::format("{}: expected a Tensor, not {}.", what, Py_TYPE(each.ptr())->tp_name));
    }
    tensors.push_back(tensor == nullptr ? Tensor() : *tensor);
  }
  return tensors;
}

CalledBack::CalledBack(bool remembered) : depth_(modes.size()) {
  auto mode = std::make_unique<Mode>();
  mode->enabled = remembered;
  mode->inference = !modes.empty() && modes.back()->inference;
  modes.push_back(std::move(mode));
}
CalledBack::~CalledBack() { leave_modes(depth_); }

std::shared_ptr<PyObject> kept(PyObject* object) {
  return std::shared_ptr<PyObject>(Py_NewRef(object), [](PyObject* held) { release(held); });
}

namespace {

// ---- backward ----

void backward_of(nb::handle outputs, nb::handle gradients, bool retain_graph, bool create_graph) {
  const TensorList from = tensors_of(outputs, "backward()");
  const TensorList weights = tensors_of(gradients, "backward()");
  const Unlocked unlocked;
  backward(from, weights, {retain_graph, create_graph});
}

nb::list grad_of(nb::handle outputs, nb::handle inputs, nb::handle gradients, bool retain_graph, bool create_graph,
                 bool allow_unused) {
  const TensorList from = tensors_of(outputs, "grad()"), to = tensors_of(inputs, "grad()");
  const TensorList weights = tensors_of(gradients, "grad()");
  TensorList results;
  {
    const Unlocked unlocked;
    results = grad(from, to, weights, {retain_graph, create_graph, allow_unused});
  }
  return list_of(results);
}

// ---- hooks ----

HookHandle add_hook(const Tensor& tensor, nb::handle hook) {
  return register_hook(tensor, [function = kept(hook.ptr())](const Tensor& gradient) -> Tensor {
    const nb::gil_scoped_acquire locked;
    const CalledBack called(remembers());
    const nb::object result = nb::borrow(function.get())(object_of(gradient));
    if (result.is_none()) return Tensor();
    const Tensor* other = tensor_in(result.ptr());
    if (other == nullptr) {
      refuse(PyExc_TypeError,
             fmt::format("hook: expected a Tensor or None as its result, not {}.", Py_TYPE(result.ptr())->tp_name));
    }
    return *other;
  });
}

HookHandle add_hook_after(const Tensor& leaf, nb::handle hook) {
  return register_hook_after_accumulation(leaf, [function = kept(hook.ptr())] {
    const nb::gil_scoped_acquire locked;
    const CalledBack called(remembers());
    nb::borrow(function.get())();
  });
}

// with tenon.autograd.saved_tensors_hooks(pack, unpack): tensors that ops save pass through two Python functions.
struct SavedHooksContext {
  std::shared_ptr<PyObject> pack, unpack;
  OpenScopes<SavedTensorHooks> scopes = {};

  void leave() noexcept { scopes.leave(); }
  void enter() {
    scopes.enter([pack = pack, unpack = unpack](const Tensor& tensor) {
      const nb::gil_scoped_acquire locked;
      const CalledBack called(false);
      const std::shared_ptr<PyObject> packed = kept(nb::object(nb::borrow(pack.get())(object_of(tensor))).ptr());
      return [packed, unpack]() -> Tensor {
        const nb::gil_scoped_acquire again;
        const CalledBack called_again(false);
        const nb::object result = nb::borrow(unpack.get())(nb::borrow(packed.get()));
        const Tensor* unpacked = tensor_in(result.ptr());
        if (unpacked == nullptr) {
          refuse(PyExc_TypeError,
                 fmt::format("unpack: expected a Tensor as its result, not {}.", Py_TYPE(result.ptr())->tp_name));
        }
        return *unpacked;
      };
    });
  }
};

// with tenon.autograd.detect_anomaly(): ops record the Python lines that called them.
struct AnomalyContext {
  std::shared_ptr<PyObject> where;
  OpenScopes<DetectAnomaly> scopes = {};

  void leave() noexcept { scopes.leave(); }
  void enter() {
    scopes.enter([where = where] {
      const nb::gil_scoped_acquire locked;
      return std::string(nb::str(nb::borrow(where.get())()).c_str());
    });
  }
};

// ---- functions written by the user ----

// `context` is a Python object. Its run_forward(inputs) and run_backward(gradients) take and return lists. Its `saved`
// holds the tensors that forward keeps; they are set again before backward.
class PythonFunction final : public Function {
 public:
  PythonFunction(PyObject* context, std::string name) : context_(kept(context)), name_(std::move(name)) {}

  std::string name() const override { return name_; }

  TensorList forward(const TensorList& inputs) override {
    const nb::gil_scoped_acquire locked;
    const CalledBack called(false);
    const nb::object results = context().attr("run_forward")(list_of(inputs));
    const nb::object saved = context().attr("saved");
    for (const nb::handle each : saved) {
      const Tensor* tensor = tensor_in(each.ptr());
      given_.push_back(tensor != nullptr);
      if (tensor != nullptr) save(*tensor);
    }
    // The node keeps the saved tensors without their history; otherwise node and tensors would keep each other for
    // ever.
    context().attr("saved") = nb::make_tuple();
    return tensors_of(results, name_);
  }

  TensorList backward(const TensorList& gradients) override {
    TensorList saved_now;
    size_t count = 0;
    for (const bool given : given_) saved_now.push_back(given ? saved(count++) : Tensor());
    const nb::gil_scoped_acquire locked;
    const CalledBack called(remembers());
    context().attr("saved") = nb::tuple(list_of(saved_now));
    const nb::object results = context().attr("run_backward")(list_of(gradients));
    context().attr("saved") = nb::make_tuple();
    return tensors_of(results, name_);
  }

 private:
  nb::object context() const { return nb::borrow(context_.get()); }

  std::shared_ptr<PyObject> context_;
  std::string name_;
  std::vector<bool> given_;  // by position in save_for_backward: false for None
};

nb::list called_function(nb::handle context, const std::string& name, nb::handle inputs) {
  const TensorList given = tensors_of(inputs, name);
  auto function = std::make_shared<PythonFunction>(context.ptr(), name);
  TensorList results;
  {
    const Unlocked unlocked;
    results = call_function(std::move(function), given);
  }
  return list_of(results);
}

// The recorded op that made `tensor`; an empty object if there is none.
nb::object maker_of(const Tensor& tensor) {
  if (!tensor.requires_grad() || tensor.is_leaf()) return nb::none();
  const autograd::History* history = autograd::history_of(tensor);
  const std::string_view name = history->edge.node.get()->name();
  return text_of(name);
}

}  // namespace

void add_gradients(nb::module_& m) {
  block_class<ModeContext>(m, "_Mode")
      .def(nb::init<bool, bool>(), nb::arg("enabled"), nb::arg("inference"))
      .def("_begin", &ModeContext::begin);
  block_class<PrecisionContext>(m, "_Precision").def(nb::init<const std::string&>(), nb::arg("name"));
  m.def(
      "current_precision", [] { return text_of(precision_name(current_precision())); },
      "The name of the precision that ops of this thread ask for; see tenon.precision.");
  m.def("is_grad_enabled", &grad_enabled, "True if ops of this thread are recorded for gradients.");
  m.def(
      "is_inference_mode_enabled", [] { return !modes.empty() && modes.back()->inference; },
      "True if an inference_mode block is open on this thread.");
  m.def("_backward", &backward_of);
  m.def("_grad", &grad_of);
  nb::class_<HookHandle>(m, "_HookHandle").def("remove", &HookHandle::remove);
  block_class<SavedHooksContext>(m, "_SavedHooks")
      .def("__init__", [](SavedHooksContext* self, nb::handle pack, nb::handle unpack) {
        new (self) SavedHooksContext{kept(pack.ptr()), kept(unpack.ptr())};
      });
  block_class<AnomalyContext>(m, "_Anomaly").def("__init__", [](AnomalyContext* self, nb::handle where) {
    new (self) AnomalyContext{kept(where.ptr())};
  });
  m.def("_add_hook", &add_hook);
  m.def("_add_hook_after", &add_hook_after);
  m.def("_call_function", &called_function);
  m.def("_maker_of", &maker_of);
}

}  // namespace tenon::python
