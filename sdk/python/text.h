// C++ text in Python. The names of files, plug-ins and folders may hold bytes that are not UTF-8, which a str cannot
// hold. In plain text such bytes are escaped, as "\xff". In a name that must find its object again, they are an error.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::python {

// A new str. Null, with Python's error set, if memory ran out.
inline PyObject* new_text(std::string_view text) noexcept {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
}

inline nanobind::str text_of(std::string_view text) {
  PyObject* made = new_text(text);
  if (made == nullptr) throw nanobind::python_error();
  return nanobind::steal<nanobind::str>(made);
}

// `name` as a str. `what` says whose name it is, for the error text: "load(): a tensor". Errors: invalid_argument if it
// is not UTF-8.
inline nanobind::str name_text(std::string_view what, std::string_view name) {
  PyObject* made = PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
  if (made != nullptr) return nanobind::steal<nanobind::str>(made);
  if (PyErr_ExceptionMatches(PyExc_UnicodeDecodeError) == 0) throw nanobind::python_error();
  PyErr_Clear();
  throw Error(Code::invalid_argument,
              fmt::format("{} has the name '{}', which is not UTF-8.", what, text_of(name).c_str()),
              "Give it another name where it is made; from C++ it can be used as it is.");
}

}  // namespace tenon::python

// Replaces nanobind/stl/string.h, which refuses text that is not UTF-8.
namespace nanobind::detail {

template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle source, uint32_t, cleanup_list*) noexcept {
    if (!PyUnicode_Check(source.ptr())) return false;
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(source.ptr(), &size);
    if (text == nullptr) {
      PyErr_Clear();
      return false;
    }
    value = std::string(text, static_cast<size_t>(size));
    return true;
  }

  static handle from_cpp(const std::string& value, rv_policy, cleanup_list*) noexcept {
    return tenon::python::new_text(value);
  }
};

}  // namespace nanobind::detail
