// tenon.Error, and one subclass per code of ep_status, such as tenon.InvalidArgument and tenon.DeviceLost.
#include <array>
#include <cctype>
#include <new>

#include "core/ops/call.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"
#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

constexpr int32_t kCodes = EP_STATUS_INTERNAL + 1;

PyObject* base = nullptr;
PyObject* invalid_index = nullptr;
PyObject* invalid_call = nullptr;
std::array<PyObject*, kCodes> by_code{};

// "out of device memory" -> "OutOfDeviceMemory"
std::string class_name(Code code) {
  std::string name;
  bool begins = true;
  for (const char c : code_name(code)) {
    if (c != ' ') name += begins ? static_cast<char>(std::toupper(c)) : c;
    begins = c == ' ';
  }
  return name;
}

// The built-in exception that callers expect for `code`, besides tenon.Error; null if there is none.
PyObject* also(Code code) {
  switch (code) {
    case Code::invalid_argument: return PyExc_ValueError;
    case Code::not_found: return PyExc_LookupError;
    case Code::unsupported: return PyExc_NotImplementedError;
    case Code::out_of_host_memory:
    case Code::out_of_device_memory: return PyExc_MemoryError;
    default: return nullptr;
  }
}

PyObject* type_of(Code code) {
  const auto index = static_cast<size_t>(code);
  return index < by_code.size() && by_code[index] != nullptr ? by_code[index] : base;
}

// Where the op was cancelled for a signal, the exception is the one of the signal's handler.
void set(const Error& error, PyObject* type) {
  if (error.code() == Code::cancelled && PyErr_CheckSignals() != 0) return;
  const std::string& text = error.status().message();
  const nb::object value = nb::borrow(type)(text_of(text));
  const std::string_view code = code_name(error.code());
  nb::setattr(value, "code", nb::str(code.data(), code.size()));
  const nb::str remedy = text_of(error.remedy());
  nb::setattr(value, "remedy", remedy);
  if (!error.remedy().empty() && nb::hasattr(value, "add_note")) value.attr("add_note")(remedy);
  PyErr_SetObject(type, value.ptr());
}

}  // namespace

namespace {

// `narrow` returns the exception class of a refused argument; null selects the class of the error's code.
template <class F>
void set_error_of(F narrow) noexcept {
  try {
    try {
      throw;
    } catch (const Error& error) {
      PyObject* type = error.code() == Code::invalid_argument ? narrow(error) : nullptr;
      set(error, type != nullptr ? type : type_of(error.code()));
    }
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetObject(PyExc_RuntimeError, text_of(error.what()).ptr());
  }
}

}  // namespace

void set_error() noexcept {
  set_error_of([](const Error&) -> PyObject* { return nullptr; });
}

void set_index_error() noexcept {
  set_error_of([](const Error&) { return invalid_index; });
}

bool set_call_error(std::string_view name) noexcept {
  bool refused = false;
  set_error_of([name, &refused](const Error& error) -> PyObject* {
    const auto* call = dynamic_cast<const CallError*>(&error);
    refused = call != nullptr && call->op() == name;
    return refused ? invalid_call : nullptr;
  });
  return refused;
}

void refuse_index(const std::string& sentence) { refuse(invalid_index, sentence); }

void refuse(PyObject* type, const std::string& sentence) {
  PyErr_SetObject(type, text_of(sentence).ptr());
  throw nb::python_error();
}

void add_errors(nb::module_& m) {
  base = PyErr_NewExceptionWithDoc(
      "tenon.Error",
      "The exception that Tenon raises. `code` is the kind of failure; `remedy` says what to do, if known.",
      PyExc_RuntimeError, nullptr);
  if (base == nullptr) throw nb::python_error();
  m.attr("Error") = nb::borrow(base);
  for (int32_t id = 1; id < kCodes; ++id) {
    const auto code = static_cast<Code>(id);
    PyObject* other = also(code);
    const nb::object bases = other == nullptr ? nb::borrow(base) : nb::make_tuple(nb::borrow(base), nb::borrow(other));
    const std::string name = class_name(code);
    const std::string qualified = "tenon." + name;
    PyObject* type = PyErr_NewException(qualified.c_str(), bases.ptr(), nullptr);
    if (type == nullptr) throw nb::python_error();
    by_code[static_cast<size_t>(id)] = type;
    m.attr(name.c_str()) = nb::borrow(type);
  }
  // Subclasses of InvalidArgument that are also the built-in exceptions which Python's own functions would raise.
  const auto also_of_python = [&m](const char* name, PyObject* other) {
    const nb::object bases = nb::make_tuple(nb::borrow(type_of(Code::invalid_argument)), nb::borrow(other));
    const std::string qualified = fmt::format("tenon.{}", name);
    PyObject* type = PyErr_NewException(qualified.c_str(), bases.ptr(), nullptr);
    if (type == nullptr) throw nb::python_error();
    nb::setattr(nb::borrow(type), "code", nb::str("invalid argument"));
    nb::setattr(nb::borrow(type), "remedy", nb::str(""));
    m.attr(name) = nb::borrow(type);
    return type;
  };
  invalid_index = also_of_python("InvalidIndex", PyExc_IndexError);
  invalid_call = also_of_python("InvalidCall", PyExc_TypeError);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      set(error, type_of(error.code()));
    }
  });
}

}  // namespace tenon::python
