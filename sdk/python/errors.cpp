// tenon.Error, and below it one class per code of ep_status: tenon.InvalidArgument, tenon.DeviceLost.
#include <array>
#include <cctype>
#include <new>

#include "primitives/status/error.h"
#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

constexpr int32_t kCodes = EP_STATUS_INTERNAL + 1;

PyObject* base = nullptr;
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

// The exception of Python that people expect for `code`, besides tenon.Error; null: none.
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

void set(const Error& error) {
  const auto index = static_cast<size_t>(error.code());
  PyObject* type = index < by_code.size() && by_code[index] != nullptr ? by_code[index] : base;
  const std::string& text = error.status().message();
  const nb::object value = nb::borrow(type)(nb::str(text.data(), text.size()));
  const std::string_view code = code_name(error.code());
  nb::setattr(value, "code", nb::str(code.data(), code.size()));
  const nb::str remedy(error.remedy().data(), error.remedy().size());
  nb::setattr(value, "remedy", remedy);
  if (!error.remedy().empty() && nb::hasattr(value, "add_note")) value.attr("add_note")(remedy);
  PyErr_SetObject(type, value.ptr());
}

}  // namespace

void set_error() noexcept {
  try {
    try {
      throw;
    } catch (const Error& error) {
      set(error);
    }
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

void refuse(PyObject* type, const std::string& sentence) {
  PyErr_SetString(type, sentence.c_str());
  throw nb::python_error();
}

void add_errors(nb::module_& m) {
  base = PyErr_NewExceptionWithDoc(
      "tenon.Error", "What Tenon throws. `code` is the kind of failure, `remedy` what to do about it, if known.",
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
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      set(error);
    }
  });
}

}  // namespace tenon::python
