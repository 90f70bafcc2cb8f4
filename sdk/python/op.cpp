// Ops as Python objects: tenon.relu. An Op calls the dynamic call by name, so the signatures, defaults, conversions,
// error texts and the list of ops are those of core/ops/call.h.
#include <nanobind/nanobind.h>

#include <structmember.h>  // T_PYSSIZET, for Python before 3.12

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <new>
#include <string>

#include "core/ops/libraries.h"
#include "primitives/text/format.h"
#include "sdk/python/autocast.h"
#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

// An op on at least this many elements, or without a tensor, releases the interpreter lock while it computes. For fewer
// elements the release would take longer than the op.
constexpr int64_t kElementsWorthUnlocking = 4096;

struct OpObject {
  PyObject ob_base;
  vectorcallfunc call;
  const DynamicOp* op;
  PyTypeObject* results;      // a subclass of tuple with named elements, for calls with that many results; or null
  bool makes;                 // the op creates a tensor from nothing, so callers may pass requires_grad
  const DynamicOp* in_place;  // the variant that writes its first argument, so callers may pass inplace; or null
};

PyTypeObject* op_type = nullptr;
PyObject *inplace = nullptr, *requires_grad = nullptr;  // the keyword names, interned
PyObject* other_spelling = nullptr;  // the function to call if no signature accepts the arguments; or null

// The ops that are methods of Tensor, generated from ops.yaml.
constexpr std::string_view kMethods[] = {
#include "sdk/python/methods.inc"
};

// The ops that have an in-place variant, by name. `normal` is not among them, although there is a `normal_`.
constexpr std::string_view kInPlace[] = {
#include "sdk/python/in_place.inc"
};

const DynamicOp& op_in(PyObject* self) { return *reinterpret_cast<OpObject*>(self)->op; }

// An array of T for the arguments of one call. Up to kFew elements need no allocation.
template <class T, size_t kFew>
class Row {
 public:
  explicit Row(size_t room) : at_(room <= kFew ? few() : static_cast<T*>(::operator new(room * sizeof(T)))) {}
  ~Row() {
    if (owns_) std::destroy_n(at_, count_);
    if (at_ != few()) ::operator delete(at_);
  }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  // Constructs the result of `make` in place at the end. `owns`: the element must be destroyed.
  template <class Make>
  T& add(bool owns, const Make& make) {
    T* made = new (at_ + count_) T(make());
    ++count_;
    owns_ = owns_ || owns;
    return *made;
  }
  std::span<const T> all() const { return {at_, count_}; }

 private:
  T* few() { return reinterpret_cast<T*>(few_); }

  T* at_;
  size_t count_ = 0;
  bool owns_ = false;
  alignas(T) std::byte few_[kFew * sizeof(T)];  // not initialised
};

// NumPy's names of keywords, which PyTorch accepts beside its own.
struct NumpyName {
  std::string_view numpy, plain;
};
constexpr NumpyName kNumpyNames[] = {{"axis", "dim"}, {"axis", "dims"}, {"keepdims", "keepdim"}, {"x1", "input"},
                                     {"x2", "other"}, {"x", "input"},   {"a", "input"}};

bool has_parameter(const DynamicOp& op, std::string_view name) {
  return std::any_of(op.signatures.begin(), op.signatures.end(), [&](const Signature& signature) {
    return std::any_of(signature.parameters.begin(), signature.parameters.end(),
                       [&](const Parameter& p) { return p.name == name; });
  });
}

// The parameter of `op` that a caller means by the keyword `name`.
std::string_view parameter_called(const DynamicOp& op, std::string_view name) {
  for (const NumpyName& each : kNumpyNames) {
    if (each.numpy != name) continue;
    if (has_parameter(op, name)) return name;
    if (has_parameter(op, each.plain)) return each.plain;
  }
  return name;
}

// The arguments of one call. Tensor arguments borrow from Python objects, which the caller holds.
class Arguments {
 public:
  Arguments(const DynamicOp& op, PyObject* const* args, size_t count, PyObject* names)
      : named_(names == nullptr ? 0 : static_cast<size_t>(PyTuple_GET_SIZE(names))),
        values_(count - named_),
        keywords_(named_) {
    const size_t given = count - named_;
    for (size_t i = 0; i < given; ++i) add(&values_, args[i], [](auto make) { return Value(make()); });
    for (size_t i = 0; i < named_; ++i) {
      Py_ssize_t size = 0;
      const char* name = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i)), &size);
      if (name == nullptr) throw nb::python_error();
      add(&keywords_, args[given + i], [&](auto make) {
        return Keyword{parameter_called(op, std::string_view(name, static_cast<size_t>(size))), make()};
      });
    }
  }

  std::span<const Value> values() const { return values_.all(); }
  std::span<const Keyword> keywords() const { return keywords_.all(); }

  // True if the op may take longer than releasing the interpreter lock.
  bool worth_unlocking() const { return much_ || !tensors_; }

 private:
  // Converts the Value of `object` with `form` and adds it to `row`. Values that own nothing are constructed in place:
  // moving or destroying a Value costs more than the rest of this function.
  template <class Row, class Form>
  void add(Row* row, PyObject* object, const Form& form) {
    int64_t integer = 0;
    if (Tensor* tensor = tensor_in(object)) {
      consider(*tensor);
      row->add(false, [&] { return form([=] { return Value(Value::Borrowed{tensor}); }); });
    } else if (PyFloat_CheckExact(object)) {
      row->add(false, [&] { return form([=] { return Value(PyFloat_AS_DOUBLE(object)); }); });
    } else if (is_int64(object, &integer)) {
      row->add(false, [&] { return form([=] { return Value(integer); }); });
    } else if (PyBool_Check(object)) {
      row->add(false, [&] { return form([=] { return Value(object == Py_True); }); });
    } else {
      const auto& made = row->add(true, [&] { return form([=] { return value_of(object); }); });
      consider(made);
    }
  }

  void consider(const Keyword& keyword) { consider(keyword.value); }
  void consider(const Value& value) {
    if (const auto* list = value.get<TensorList>())
      for (const Tensor& each : *list) consider(each);
  }
  void consider(const Tensor& tensor) {
    if (!tensor.defined()) return;
    tensors_ = true;
    much_ = much_ || tensor.impl()->elements >= kElementsWorthUnlocking || !tensor.device().synchronous();
  }

  size_t named_;
  bool tensors_ = false, much_ = false;
  Row<Value, 6> values_;
  Row<Keyword, 4> keywords_;
};

// The Python object for `result`: the argument itself if the op returned it, as in-place ops do.
PyObject* object_of(Tensor result, PyObject* const* args, size_t count) {
  const bool shared = result.defined() && result.impl()->count.load(std::memory_order_relaxed) > 1;
  for (size_t i = 0; shared && i < count; ++i) {
    const Tensor* argument = tensor_in(args[i]);
    if (argument != nullptr && argument->impl() == result.impl()) return Py_NewRef(args[i]);
  }
  return new_tensor(std::move(result));
}

// True if the op returns a list even for one result. max() returns one tensor or two, depending on its arguments.
bool always_several(const DynamicOp& op) {
  return std::all_of(op.signatures.begin(), op.signatures.end(), [](const Signature& s) { return s.several; });
}

// `named`: see OpObject::results.
PyObject* called_as_given(const DynamicOp& op, PyTypeObject* named, PyObject* const* args, size_t count,
                          PyObject* names) {
  const Arguments arguments(op, args, count, names);
  Results given = [&] {
    const Unlocked unlocked(arguments.worth_unlocking());
    return call_for_results(op, arguments.values(), arguments.keywords());
  }();
  if (given.one) return object_of(*std::move(given.one), args, count);
  TensorList& results = given.several;
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

// Like called_as_given, inside a block of tenon.autocast.
[[gnu::noinline]] PyObject* called_in_block(const DynamicOp& op, PyTypeObject* named, PyObject* const* args,
                                            size_t count, PyObject* names) {
  CastArguments arguments;
  return called_as_given(op, named, arguments.cast(op, args, count, names) ? arguments.args() : args, count, names);
}

PyObject* called(const DynamicOp& op, PyTypeObject* named, PyObject* const* args, size_t count, PyObject* names) {
  if (autocast_dtype != DType::none) [[unlikely]]
    return called_in_block(op, named, args, count, names);
  return called_as_given(op, named, args, count, names);
}

// True for ops such as zeros, full and rand_like: a call may name a device, or the op only reads the shape of a tensor.
bool makes_tensors(const DynamicOp& op) {
  return op.name.ends_with("_like") ||
         std::any_of(op.signatures.begin(), op.signatures.end(), [](const Signature& signature) {
           return std::any_of(signature.parameters.begin(), signature.parameters.end(),
                              [](const Parameter& p) { return p.keyword_only && p.name == "device"; });
         });
}

// The op `add_` for `add`; null if there is none.
const DynamicOp* in_place_of(const DynamicOp& op) {
  if (!std::binary_search(std::begin(kInPlace), std::end(kInPlace), op.name)) return nullptr;
  const std::string name = fmt::format("{}_", op.name);
  const std::span<const DynamicOp> all = list_ops();
  const auto found = std::lower_bound(all.begin(), all.end(), name,
                                      [](const DynamicOp& each, const std::string& text) { return each.name < text; });
  return found != all.end() && found->name == name ? &*found : nullptr;
}

// The index of `keyword` in `names`; -1 if it is absent. Both are interned, as are the names in a program's source.
Py_ssize_t index_of(PyObject* keyword, PyObject* names) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    if (name == keyword || (!PyUnicode_CHECK_INTERNED(name) && PyUnicode_Compare(name, keyword) == 0)) return i;
  }
  return -1;
}

// A call without the keyword at `place`. Only Python knows this keyword; no signature has it.
struct WithoutKeyword {
  std::vector<PyObject*> args;
  nb::object names;
  bool value = false;  // the keyword's value

  WithoutKeyword(Py_ssize_t place, PyObject* const* all, size_t count, PyObject* all_names) : args(all, all + count) {
    const Py_ssize_t named = PyTuple_GET_SIZE(all_names);
    const auto at = args.end() - named + place;
    const int truth = PyObject_IsTrue(*at);
    if (truth < 0) throw nb::python_error();
    value = truth == 1;
    args.erase(at);
    nb::list others;
    for (Py_ssize_t i = 0; i < named; ++i)
      if (i != place) others.append(nb::borrow(PyTuple_GET_ITEM(all_names, i)));
    names = nb::tuple(others);
  }
};

// The call with keywords, including requires_grad for ops that make tensors and inplace for ops that can write in
// place.
PyObject* call_with_keywords(const OpObject& op, PyObject* const* args, size_t count, PyObject* names) {
  PyObject* own = op.in_place != nullptr ? inplace : op.makes ? requires_grad : nullptr;
  const Py_ssize_t place = own == nullptr ? -1 : index_of(own, names);
  if (place < 0) return called(*op.op, op.results, args, count, names);
  const WithoutKeyword rest(place, args, count, names);
  const DynamicOp& chosen = op.in_place != nullptr && rest.value ? *op.in_place : *op.op;
  nb::object result = nb::steal(called(chosen, op.results, rest.args.data(), rest.args.size(), rest.names.ptr()));
  if (!result.is_valid()) throw nb::python_error();
  if (op.in_place == nullptr && rest.value) tensor_in(result.ptr())->requires_grad_();
  return result.release().ptr();
}

// Repeats the call in a spelling that tenon/_spellings.py knows. If it knows none, the error that is set stays.
PyObject* called_otherwise(PyObject* self, PyObject* const* args, size_t count, PyObject* names) noexcept {
  PyObject *type = nullptr, *error = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &error, &trace);
  const size_t given = count - (names == nullptr ? 0 : static_cast<size_t>(PyTuple_GET_SIZE(names)));
  std::vector<PyObject*> all = {self};
  all.insert(all.end(), args, args + count);
  PyObject* result = PyObject_Vectorcall(other_spelling, all.data(), given + 1, names);
  if (result == Py_NotImplemented) {
    Py_DECREF(result);
    PyErr_Restore(type, error, trace);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(trace);
  return result;
}

PyObject* vectorcall(PyObject* self, PyObject* const* args, size_t flagged, PyObject* names) noexcept {
  const size_t named = names == nullptr ? 0 : static_cast<size_t>(PyTuple_GET_SIZE(names));
  const size_t count = static_cast<size_t>(PyVectorcall_NARGS(flagged)) + named;
  const OpObject& op = *reinterpret_cast<OpObject*>(self);
  try {
    if (named > 0) return call_with_keywords(op, args, count, names);
    return called(*op.op, op.results, args, count, nullptr);
  } catch (...) {
    if (!set_call_error(op.op->name) || other_spelling == nullptr) return nullptr;
  }
  return called_otherwise(self, args, count, names);
}

// Like a function, an Op in a class becomes a method.
PyObject* bind(PyObject* self, PyObject* object, PyObject*) noexcept {
  return object == nullptr ? Py_NewRef(self) : PyMethod_New(self, object);
}

// The path below the package tenon, such as "relu" or "ops.mypkg.swish2".
std::string place_of(PyObject* self) {
  const std::string_view name = op_in(self).name;
  const size_t library = name.find("::");
  return library == std::string_view::npos
             ? std::string(name)
             : fmt::format("ops.{}.{}", name.substr(0, library), name.substr(library + 2));
}

PyObject* repr(PyObject* self) noexcept { return new_text(fmt::format("<op {}>", op_in(self).name)); }
PyObject* name_of(PyObject* self, void*) noexcept { return new_text(op_in(self).name); }
PyObject* qualified_name_of(PyObject* self, void*) noexcept { return new_text(place_of(self)); }
PyObject* module_of(PyObject*, void*) noexcept { return new_text("tenon"); }
PyObject* doc_of(PyObject* self, void*) noexcept {
  std::string all;
  for (const Signature& signature : op_in(self).signatures) all += fmt::format("{}\n", signature.text);
  return new_text(fmt::format("{}\n{}", all, op_in(self).doc));
}
PyObject* signatures_of(PyObject* self, void*) noexcept {
  const std::span<const Signature> signatures = op_in(self).signatures;
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(signatures.size()));
  for (size_t i = 0; tuple != nullptr && i < signatures.size(); ++i) {
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), new_text(signatures[i].text));
  }
  return tuple;
}

// Copying and pickling an op keep its path only.
PyObject* reduce(PyObject* self, PyObject*) noexcept { return new_text(place_of(self)); }

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

// The module ops.<library>, which holds the ops of that library.
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

PyObject* call_op(const DynamicOp& op, PyObject* const* args, size_t count) noexcept {
  try {
    return called(op, nullptr, args, count, nullptr);
  } catch (...) {
    set_error();
    return nullptr;
  }
}

void add_ops(nb::module_& m, nb::handle tensor_type) {
  op_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  inplace = PyUnicode_InternFromString("inplace");
  requires_grad = PyUnicode_InternFromString("requires_grad");
  if (op_type == nullptr || inplace == nullptr || requires_grad == nullptr) throw nb::python_error();
  m.attr("Op") = nb::borrow(reinterpret_cast<PyObject*>(op_type));
  for (const DynamicOp& op : list_ops()) m.attr(std::string(op.name).c_str()) = new_op(op);
  for (const std::string_view method : kMethods) {
    const std::string name(method);
    tensor_type.attr(name.c_str()) = m.attr(name.c_str());
  }
  m.def(
      "_spell_otherwise", [](nb::handle function) { other_spelling = Py_NewRef(function.ptr()); },
      "function(op, *args, **kwargs) is called where no signature of the op takes the arguments; NotImplemented: it "
      "does "
      "not either.");
  nb::list numpy_names;
  for (const NumpyName& each : kNumpyNames)
    numpy_names.append(nb::make_tuple(text_of(each.numpy), text_of(each.plain)));
  m.attr("_numpy_names") = numpy_names;
  m.def(
      "_name_results",
      [](nb::handle op, nb::handle type) {
        reinterpret_cast<OpObject*>(op.ptr())->results = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.ptr()));
      },
      "Results of the op become a named tuple of this class, where it gives several.");
  nb::module_ ops =
      m.def_submodule("ops", "Ops of libraries: tenon.ops.mypkg.swish2, after tenon.ops.load has loaded mypkg.");
  ops.def(
      "load",
      [ops](nb::handle path) {
        const nb::object text = nb::steal(PyOS_FSPath(path.ptr()));
        if (!text.is_valid()) throw nb::python_error();
        if (!nb::isinstance<nb::str>(text)) refuse(PyExc_TypeError, "load(): path must be a str or a path of text.");
        return add_library(ops, load_ops(nb::cast<std::string>(text)));
      },
      nb::arg("path"), "Loads a library of ops and gives the module that holds them.");
  // Libraries in TENON_OPS_PATH are loaded when the first name is looked up, since settings are read then.
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
