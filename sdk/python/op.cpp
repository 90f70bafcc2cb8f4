// Ops as Python objects: tenon.relu. An Op calls the dynamic call of its name, so signatures, defaults, conversions and
// the texts of errors are those of core/ops/call.h. The list of ops is the dynamic call's.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <structmember.h>  // T_PYSSIZET, before Python 3.12

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "core/ops/libraries.h"
#include "primitives/text/format.h"
#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

// An op on as many elements as this, or on none, gives up the interpreter lock while it is computed. Fewer take less
// time than giving it up does.
constexpr int64_t kElementsWorthUnlocking = 4096;

struct OpObject {
  PyObject ob_base;
  vectorcallfunc call;
  const DynamicOp* op;
};

PyTypeObject* op_type = nullptr;

const DynamicOp& op_in(PyObject* self) { return *reinterpret_cast<OpObject*>(self)->op; }

// The arguments of one call. Most calls fit in it; longer ones take memory of their own.
class Arguments {
 public:
  Arguments(PyObject* const* args, size_t count, PyObject* names)
      : named_(names == nullptr ? 0 : static_cast<size_t>(PyTuple_GET_SIZE(names))), given_(count - named_) {
    if (given_ > kFew) more_.reserve(given_);
    for (size_t i = 0; i < given_; ++i) {
      if (given_ <= kFew)
        few_[i] = value_of(args[i]);
      else
        more_.push_back(value_of(args[i]));
    }
    if (named_ > 0) keywords_.reserve(named_);
    for (size_t i = 0; i < named_; ++i) {
      Py_ssize_t size = 0;
      const char* name = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i)), &size);
      if (name == nullptr) throw nb::python_error();
      keywords_.push_back({std::string_view(name, static_cast<size_t>(size)), value_of(args[given_ + i])});
    }
  }

  std::span<const Value> values() const { return given_ <= kFew ? std::span(few_.data(), given_) : std::span(more_); }
  std::span<const Keyword> keywords() const { return keywords_; }

  // Whether the op may take longer than giving up the interpreter lock.
  bool worth_unlocking() const {
    bool tensors = false;
    const auto much = [&tensors](const Tensor* tensor) {
      if (tensor == nullptr || !tensor->defined()) return false;
      tensors = true;
      return tensor->impl()->elements >= kElementsWorthUnlocking || !tensor->device().synchronous();
    };
    const auto any_much = [&](const Value& value) {
      if (much(value.tensor())) return true;
      const auto* list = value.get<TensorList>();
      return list != nullptr &&
             std::any_of(list->begin(), list->end(), [&](const Tensor& each) { return much(&each); });
    };
    for (const Value& value : values())
      if (any_much(value)) return true;
    for (const Keyword& keyword : keywords_)
      if (any_much(keyword.value)) return true;
    return !tensors;
  }

 private:
  static constexpr size_t kFew = 6;

  size_t named_, given_;
  std::array<Value, kFew> few_;
  std::vector<Value> more_;
  std::vector<Keyword> keywords_;
};

// The object for `result`: the argument itself where the op gave it back, as in-place ops do.
PyObject* object_of(Tensor result, PyObject* const* args, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const Tensor* argument = tensor_in(args[i]);
    if (argument != nullptr && argument->impl() == result.impl() && result.defined()) return Py_NewRef(args[i]);
  }
  return new_tensor(std::move(result));
}

// Whether one result is a list of one. max() gives one tensor or two, as it is called.
bool always_several(const DynamicOp& op) {
  return std::all_of(op.signatures.begin(), op.signatures.end(), [](const Signature& s) { return s.several; });
}

PyObject* called(const DynamicOp& op, PyObject* const* args, size_t count, PyObject* names) {
  const Arguments arguments(args, count, names);
  TensorList results;
  {
    const Unlocked unlocked(arguments.worth_unlocking());
    results = call(op, arguments.values(), arguments.keywords());
  }
  if (results.size() == 1 && !always_several(op)) return object_of(std::move(results[0]), args, count);
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(results.size()));
  for (size_t i = 0; tuple != nullptr && i < results.size(); ++i) {
    PyObject* each = object_of(std::move(results[i]), args, count);
    if (each == nullptr) {
      Py_DECREF(tuple);
      return nullptr;
    }
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), each);
  }
  return tuple;
}

PyObject* vectorcall(PyObject* self, PyObject* const* args, size_t flagged, PyObject* names) noexcept {
  const size_t named = names == nullptr ? 0 : static_cast<size_t>(PyTuple_GET_SIZE(names));
  return call_op(op_in(self), args, static_cast<size_t>(PyVectorcall_NARGS(flagged)) + named, names);
}

// As a function, an Op in a class becomes a method.
PyObject* bind(PyObject* self, PyObject* object, PyObject*) noexcept {
  return object == nullptr ? Py_NewRef(self) : PyMethod_New(self, object);
}

PyObject* text(std::string_view view) {
  return PyUnicode_FromStringAndSize(view.data(), static_cast<Py_ssize_t>(view.size()));
}

// "relu", or "ops.mypkg.swish2": where the package tenon has it.
std::string place_of(PyObject* self) {
  const std::string_view name = op_in(self).name;
  const size_t library = name.find("::");
  return library == std::string_view::npos
             ? std::string(name)
             : fmt::format("ops.{}.{}", name.substr(0, library), name.substr(library + 2));
}

PyObject* repr(PyObject* self) noexcept { return text(fmt::format("<op {}>", op_in(self).name)); }
PyObject* name_of(PyObject* self, void*) noexcept { return text(op_in(self).name); }
PyObject* qualified_name_of(PyObject* self, void*) noexcept { return text(place_of(self)); }
PyObject* module_of(PyObject*, void*) noexcept { return text("tenon"); }
PyObject* doc_of(PyObject* self, void*) noexcept {
  std::string all;
  for (const Signature& signature : op_in(self).signatures) all += fmt::format("{}\n", signature.text);
  return text(fmt::format("{}\n{}", all, op_in(self).doc));
}
PyObject* signatures_of(PyObject* self, void*) noexcept {
  const std::span<const Signature> signatures = op_in(self).signatures;
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(signatures.size()));
  for (size_t i = 0; tuple != nullptr && i < signatures.size(); ++i) {
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), text(signatures[i].text));
  }
  return tuple;
}

// An op is copied and pickled as its place.
PyObject* reduce(PyObject* self, PyObject*) noexcept { return text(place_of(self)); }

PyMethodDef methods[] = {{"__reduce__", &reduce, METH_NOARGS, nullptr}, {}};
PyGetSetDef properties[] = {{"__name__", &name_of, nullptr, nullptr, nullptr},
                            {"__qualname__", &qualified_name_of, nullptr, nullptr, nullptr},
                            {"__module__", &module_of, nullptr, nullptr, nullptr},
                            {"__doc__", &doc_of, nullptr, nullptr, nullptr},
                            {"signatures", &signatures_of, nullptr, nullptr, nullptr},
                            {}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(OpObject, call), READONLY, nullptr}, {}};
PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(&bind)},
                       {Py_tp_repr, reinterpret_cast<void*>(&repr)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, properties},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec spec = {
    "tenon.Op", sizeof(OpObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots};

nb::object new_op(const DynamicOp& op) {
  OpObject* made = PyObject_New(OpObject, op_type);
  if (made == nullptr) throw nb::python_error();
  made->call = &vectorcall;
  made->op = &op;
  return nb::steal(reinterpret_cast<PyObject*>(made));
}

// The module ops.<library>, which holds its ops.
nb::module_ add_library(nb::module_ ops, const OpLibrary& library) {
  const std::string name(library.name);
  const nb::dict held = nb::borrow<nb::dict>(ops.attr("__dict__"));
  if (held.contains(name.c_str())) return nb::borrow<nb::module_>(held[name.c_str()]);
  nb::module_ made = ops.def_submodule(name.c_str());
  for (const DynamicOp& op : library.dynamic) {
    made.attr(std::string(op.name.substr(name.size() + 2)).c_str()) = new_op(op);
  }
  return made;
}

}  // namespace

PyObject* call_op(const DynamicOp& op, PyObject* const* args, size_t count, PyObject* names) noexcept {
  try {
    return called(op, args, count, names);
  } catch (...) {
    set_error();
    return nullptr;
  }
}

void add_ops(nb::module_& m) {
  op_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (op_type == nullptr) throw nb::python_error();
  m.attr("Op") = nb::borrow(reinterpret_cast<PyObject*>(op_type));
  for (const DynamicOp& op : list_ops()) m.attr(std::string(op.name).c_str()) = new_op(op);
  nb::module_ ops = m.def_submodule("ops", "Ops of libraries: tenon.ops.mypkg.swish2, once tenon.ops.load has it.");
  ops.def(
      "load",
      [ops](nb::handle path) {
        const nb::object text = nb::steal(PyOS_FSPath(path.ptr()));
        if (!text.is_valid()) throw nb::python_error();
        if (!nb::isinstance<nb::str>(text)) refuse(PyExc_TypeError, "load(): path must be a str or a path of text.");
        return add_library(ops, load_ops(nb::cast<std::string>(text)));
      },
      nb::arg("path"), "Loads a library of ops and gives the module that holds them.");
  // Those in TENON_OPS_PATH are looked for when the first name is, since settings are read then.
  ops.def("__getattr__", [ops](const std::string& name) -> nb::object {
    if (!name.starts_with("__")) {
      for (const OpLibrary* library : op_libraries()) {
        if (library->name == name) return add_library(ops, *library);
      }
    }
    const std::string sentence = fmt::format("tenon.ops holds no library '{}'; tenon.ops.load loads one.", name);
    throw nb::attribute_error(sentence.c_str());
  });
}

}  // namespace tenon::python
