// Tensors as files from Python: .npy and safetensors through core/tensor/files.h, and their bytes for pickle.
#include "core/tensor/files.h"

#include <nanobind/stl/map.h>

#include <cstring>

#include "core/tensor/file_access.h"
#include "primitives/text/format.h"
#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

std::string_view bytes_in(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

Metadata metadata_of(const nb::dict& texts) {
  Metadata metadata;
  for (const auto& [name, value] : texts) metadata.emplace(nb::cast<std::string>(name), nb::cast<std::string>(value));
  return metadata;
}

nb::dict dict_of(const NamedTensors& tensors) {
  nb::dict dict;
  for (const auto& [name, tensor] : tensors) dict[name_text("load(): a tensor", name)] = object_of(tensor);
  return dict;
}

// The elements in the host's representation, row-major. A pickle holds them.
nb::bytes elements_of(const Tensor& tensor) {
  const nb::bytes bytes = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, tensor.bytes()));
  if (!bytes.is_valid()) throw nb::python_error();
  char* data = PyBytes_AS_STRING(bytes.ptr());
  const Unlocked unlocked;
  if (tensor.bytes() > 0) tensor.copy_to_host(data);
  return bytes;
}

nb::object from_elements(const nb::bytes& bytes, const nb::tuple& shape, nb::handle dtype, nb::handle device) {
  Dims dims;
  for (const nb::handle each : shape) dims.push_back(nb::cast<int64_t>(each));
  Tensor made = Tensor::empty(dims, require_dtype(dtype.ptr(), "a pickle"), require_device(device.ptr(), "a pickle"));
  if (static_cast<size_t>(made.bytes()) != bytes.size()) {
    refuse(PyExc_ValueError,
           fmt::format("a pickle: {} bytes do not fill a tensor of {} bytes.", bytes.size(), made.bytes()));
  }
  if (bytes.size() > 0) made.copy_from(bytes.c_str());
  return object_of(std::move(made));
}

}  // namespace

NamedTensors named_tensors(const nb::dict& tensors, std::string_view what) {
  NamedTensors named;
  for (const auto& [name, value] : tensors) {
    const Tensor* tensor = tensor_in(value.ptr());
    if (!nb::isinstance<nb::str>(name) || tensor == nullptr) {
      refuse(PyExc_TypeError, fmt::format("{}: expected Tensors by names, not {} by {}.", what,
                                          Py_TYPE(value.ptr())->tp_name, Py_TYPE(name.ptr())->tp_name));
    }
    named.emplace(nb::cast<std::string>(name), *tensor);
  }
  return named;
}

void add_files(nb::module_& m) {
  m.def("_save_npy", [](const std::string& path, const Tensor& tensor) {
    const Unlocked unlocked;
    save_npy(path, tensor);
  });
  m.def(
      "_load_npy",
      [](const std::string& path, nb::handle device) {
        return object_of(load_npy(path, require_device(device.ptr(), "load()")));
      },
      nb::arg("path"), nb::arg("device").none());
  nb::class_<files::FileWriter>(m, "_FileWriter")
      .def(nb::init<const std::string&>())
      .def("fileno", &files::FileWriter::descriptor)
      .def("finish", &files::FileWriter::finish, nb::call_guard<Unlocked>());
  m.def("_npy_to_bytes", [](const Tensor& tensor) {
    const std::string bytes = npy_to_bytes(tensor);
    return nb::bytes(bytes.data(), bytes.size());
  });
  m.def(
      "_npy_from_bytes",
      [](const nb::bytes& bytes, nb::handle device) {
        return object_of(npy_from_bytes(bytes_in(bytes), require_device(device.ptr(), "load()")));
      },
      nb::arg("bytes"), nb::arg("device").none());
  m.def("_save_safetensors", [](const std::string& path, const nb::dict& tensors, const nb::dict& metadata) {
    const NamedTensors named = named_tensors(tensors, "save()");
    const Metadata texts = metadata_of(metadata);
    const Unlocked unlocked;
    save_safetensors(path, named, texts);
  });
  m.def(
      "_load_safetensors",
      [](const std::string& path, nb::handle device) {
        Metadata metadata;
        nb::dict tensors = dict_of(load_safetensors(path, require_device(device.ptr(), "load()"), &metadata));
        nb::dict texts;
        for (const auto& [name, text] : metadata) texts[name_text("load(): a text", name)] = text_of(text);
        return nb::make_tuple(tensors, texts);
      },
      nb::arg("path"), nb::arg("device").none());
  m.def("_elements_of", &elements_of);
  m.def("_from_elements", &from_elements);
}

}  // namespace tenon::python
