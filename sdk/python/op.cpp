// Ops as Python objects: tenon.relu. An Op calls the dynamic call of its name, so signatures, defaults, conversions and
// the texts of errors are those of core/ops/call.h. The list of ops is the dynamic call's.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <structmember.h>  // T_PYSSIZET, before Python 3.12

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <new>
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
  PyTypeObject* results;      // a class below tuple whose elements have names, for calls that give as many; or null
  bool makes;                 // it makes a tensor of no other's elements, so callers may add requires_grad
  const DynamicOp* in_place;  // the one that writes its first argument, so callers may add inplace; or null
};

PyTypeObject* op_type = nullptr;

// The ops that are methods of Tensor, generated from ops.yaml.
constexpr std::string_view kMethods[] = {
#include "sdk/python/methods.inc"
};

// The ops that have an in-place variant, by name: `normal` has none, though there is a normal_.
constexpr std::string_view kInPlace[] = {
#include "sdk/python/in_place.inc"
};

const DynamicOp& op_in(PyObject* self) { return *reinterpret_cast<OpObject*>(self)->op; }

// The arguments of one call. Most calls fit in it; longer ones take memory of their own.
class Arguments {
 public:
  Arguments(PyObject* const* args, size_t count, PyObject* names) : Arguments() {
    const size_t named = names == nullptr ? 0 : static_cast<size_t>(PyTuple_GET_SIZE(names));
    const size_t given = count - named;
    if (given <= kFew) {
      for (; made_ < given; ++made_) new (few() + made_) Value(value_of(args[made_]));
    } else {
      more_.reserve(given);
      for (size_t i = 0; i < given; ++i) more_.push_back(value_of(args[i]));
    }
    if (named > 0) keywords_.reserve(named);
    for (size_t i = 0; i < named; ++i) {
      Py_ssize_t size = 0;
      const char* name = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i)), &size);
      if (name == nullptr) throw nb::python_error();
      keywords_.push_back({std::string_view(name, static_cast<size_t>(size)), value_of(args[given + i])});
    }
  }
  ~Arguments() { std::destroy_n(few(), made_); }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  std::span<const Value> values() const { return more_.empty() ? std::span(few(), made_) : std::span(more_); }
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

  // The constructor above goes on after this one, so that its values are destroyed if it throws.
  Arguments() noexcept {}
  Value* few() { return std::launder(reinterpret_cast<Value*>(few_)); }
  const Value* few() const { return std::launder(reinterpret_cast<const Value*>(few_)); }

  size_t made_ = 0;                                     // values in few_
  alignas(Value) std::byte few_[kFew * sizeof(Value)];  // not initialised: most calls have one or two
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

PyObject* called(const OpObject& object, PyObject* const* args, size_t count, PyObject* names) {
  const DynamicOp& op = *object.op;
  PyTypeObject* named = object.results;
  const Arguments arguments(args, count, names);
  TensorList results;
  {
    const Unlocked unlocked(arguments.worth_unlocking());
    results = call(op, arguments.values(), arguments.keywords());
  }
  if (results.size() == 1 && !always_several(op)) return object_of(std::move(results[0]), args, count);
  const auto size = static_cast<Py_ssize_t>(results.size());
  PyObject* tuple = named != nullptr ? named->tp_alloc(named, size) : PyTuple_New(size);
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

// Whether `op` is one of zeros, full, rand_like: a call may name a device, or the op takes only the form of a tensor.
bool makes_tensors(const DynamicOp& op) {
  return op.name.ends_with("_like") ||
         std::any_of(op.signatures.begin(), op.signatures.end(), [](const Signature& signature) {
           return std::any_of(signature.parameters.begin(), signature.parameters.end(),
                              [](const Parameter& p) { return p.keyword_only && p.name == "device"; });
         });
}

// `add_` of `add`; null where there is none.
const DynamicOp* in_place_of(const DynamicOp& op) {
  if (!std::binary_search(std::begin(kInPlace), std::end(kInPlace), op.name)) return nullptr;
  const std::string name = fmt::format("{}_", op.name);
  const std::span<const DynamicOp> all = list_ops();
  const auto found = std::lower_bound(all.begin(), all.end(), name,
                                      [](const DynamicOp& each, const std::string& text) { return each.name < text; });
  return found != all.end() && found->name == name ? &*found : nullptr;
}

// A call with a keyword of Python's own, which no signature has.
struct WithoutKeyword {
  std::vector<PyObject*> args;
  nb::object names;
  bool given = false;  // whether the call has the keyword
  bool value = false;

  WithoutKeyword(const char* keyword, PyObject* const* all, size_t count, PyObject* all_names) {
    const size_t named = static_cast<size_t>(PyTuple_GET_SIZE(all_names));
    nb::list others;
    args.assign(all, all + (count - named));
    for (size_t i = 0; i < named; ++i) {
      PyObject* name = PyTuple_GET_ITEM(all_names, static_cast<Py_ssize_t>(i));
      PyObject* held = all[count - named + i];
      if (PyUnicode_CompareWithASCIIString(name, keyword) != 0) {
        others.append(nb::borrow(name));
        args.push_back(held);
        continue;
      }
      const int truth = PyObject_IsTrue(held);
      if (truth < 0) throw nb::python_error();
      given = true;
      value = truth == 1;
    }
    if (given) names = nb::tuple(others);
  }
};

// The call, if it has keywords, with requires_grad=True of ops that make tensors, and inplace=True of those that can.
PyObject* call_with_keywords(const OpObject& op, PyObject* const* args, size_t count, PyObject* names) {
  if (op.in_place != nullptr) {
    const WithoutKeyword rest("inplace", args, count, names);
    if (!rest.given) return called(op, args, count, names);
    OpObject written = op;
    if (rest.value) written.op = op.in_place;
    return called(written, rest.args.data(), rest.args.size(), rest.names.ptr());
  }
  const WithoutKeyword rest("requires_grad", args, count, names);
  if (!rest.given) return called(op, args, count, names);
  const nb::object result = nb::steal(called(op, rest.args.data(), rest.args.size(), rest.names.ptr()));
  if (!result.is_valid()) throw nb::python_error();
  if (rest.value) tensor_in(result.ptr())->requires_grad_();
  return nb::object(result).release().ptr();
}

PyObject* vectorcall(PyObject* self, PyObject* const* args, size_t flagged, PyObject* names) noexcept {
  const size_t named = names == nullptr ? 0 : static_cast<size_t>(PyTuple_GET_SIZE(names));
  const size_t count = static_cast<size_t>(PyVectorcall_NARGS(flagged)) + named;
  const OpObject& op = *reinterpret_cast<OpObject*>(self);
  try {
    if (named > 0 && (op.makes || op.in_place != nullptr)) return call_with_keywords(op, args, count, names);
    return called(op, args, count, names);
  } catch (...) {
    set_call_error(op.op->name);
    return nullptr;
  }
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
  const DynamicOp* written = reinterpret_cast<OpObject*>(self)->in_place;
  const std::string more = written == nullptr ? "" : fmt::format(" With inplace=True as {}.", written->name);
  return text(fmt::format("{}\n{}{}", all, op_in(self).doc, more));
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
  made->results = nullptr;
  made->makes = makes_tensors(op);
  made->in_place = in_place_of(op);
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
    return called({{}, nullptr, &op, nullptr, false, nullptr}, args, count, names);
  } catch (...) {
    set_error();
    return nullptr;
  }
}

void add_ops(nb::module_& m, nb::handle tensor_type) {
  op_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (op_type == nullptr) throw nb::python_error();
  m.attr("Op") = nb::borrow(reinterpret_cast<PyObject*>(op_type));
  for (const DynamicOp& op : list_ops()) m.attr(std::string(op.name).c_str()) = new_op(op);
  for (const std::string_view method : kMethods) {
    const std::string name(method);
    tensor_type.attr(name.c_str()) = m.attr(name.c_str());
  }
  m.def(
      "_name_results",
      [](nb::handle op, nb::handle type) {
        reinterpret_cast<OpObject*>(op.ptr())->results = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.ptr()));
      },
      "Results of the op become a named tuple of this class, where it gives several.");
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
