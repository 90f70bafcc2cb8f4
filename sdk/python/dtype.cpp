// The dtype objects, one per row of dtypes.def: tenon.f32, which is also tenon.float32.
#include <vector>

#include "core/ops/conversions.h"
#include "primitives/text/format.h"
#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

std::vector<PyObject*> objects;  // by dtype id; borrowed from the module

std::vector<DType> all_dtypes() {
  std::vector<DType> all;
  for (int32_t id = 1; dtype_info(static_cast<DType>(id)).bits != 0; ++id) all.push_back(static_cast<DType>(id));
  return all;
}

// The dtype with this name in Tenon, PyTorch or NumPy. NumPy's type for bool is called "bool_".
std::optional<DType> named(std::string_view name) { return dtype_of_text(name == "bool_" ? "bool" : name); }

// The text of attribute `name` of `object`; empty if there is none.
std::string text_of(PyObject* object, const char* name) {
  const nb::object value = nb::steal(PyObject_GetAttrString(object, name));
  if (!value.is_valid()) PyErr_Clear();
  return value.is_valid() && PyUnicode_Check(value.ptr()) ? nb::str(value).c_str() : "";
}

bool brings_dtypes(const std::string& module) {
  return module == "numpy" || module == "ml_dtypes" || module.starts_with("numpy.");
}

}  // namespace

nb::object dtype_object(DType dtype) { return nb::borrow(objects.at(static_cast<size_t>(dtype))); }

std::optional<DType> dtype_in(PyObject* object) {
  if (const DTypeObject* dtype = held_in<DTypeObject>(object)) return dtype->value;
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::f64;
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::i64;
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::boolean;
  if (PyType_Check(object)) {
    return brings_dtypes(text_of(object, "__module__")) ? named(text_of(object, "__name__")) : std::nullopt;
  }
  const std::string_view type = Py_TYPE(object)->tp_name;  // "numpy.dtype[float32]"
  return type.starts_with("numpy.dtype") ? named(text_of(object, "name")) : std::nullopt;
}

DType require_dtype(PyObject* object, std::string_view what) {
  if (const std::optional<DType> dtype = dtype_in(object)) return *dtype;
  const Value value = value_of(object);
  const auto* text = value.get<std::string>();
  const std::optional<DType> dtype = text == nullptr ? std::nullopt : named(*text);
  if (text != nullptr && !dtype) refuse(PyExc_ValueError, fmt::format("{}: there is no dtype '{}'.", what, *text));
  if (!dtype) refuse(PyExc_TypeError, fmt::format("{}: dtype must be a dtype, not {}.", what, value.type_name()));
  return *dtype;
}

void add_dtypes(nb::module_& m) {
  nb::class_<DTypeObject>(m, "DType", "The type of the elements of a tensor.")
      .def_prop_ro("name",
                   [](const DTypeObject& d) { return nb::str(dtype_name(d.value).data(), dtype_name(d.value).size()); })
      .def_prop_ro("bits", [](const DTypeObject& d) { return dtype_info(d.value).bits; })
      .def_prop_ro("is_floating_point", [](const DTypeObject& d) { return is_floating(d.value); })
      .def("__repr__",
           [](const DTypeObject& d) {
             const std::string text = fmt::format("tenon.{}", dtype_long_name(d.value));
             return nb::str(text.data(), text.size());
           })
      // Copying and pickling keep the name only.
      .def("__reduce__", [](const DTypeObject& d) { return nb::str(dtype_long_name(d.value).c_str()); })
      .def(
          "__eq__", [](const DTypeObject& d, nb::handle other) { return dtype_in(other.ptr()) == d.value; },
          nb::arg("other").none())
      .def("__hash__", [](const DTypeObject& d) { return static_cast<int32_t>(d.value); });
  objects.assign(1, Py_None);
  for (const DType dtype : all_dtypes()) {
    const nb::object object = nb::cast(DTypeObject{dtype});
    objects.push_back(object.ptr());
    m.attr(std::string(dtype_name(dtype)).c_str()) = object;
    m.attr(dtype_long_name(dtype).c_str()) = object;
  }
}

}  // namespace tenon::python
