// DLPack in Python: capsules with and without a version (the headers we build with lack the versioned form of DLPack
// 1.0).
#include <dlpack/dlpack.h>

#include <cstring>
#include <memory>

#include "core/tensor/dlpack.h"
#include "primitives/text/format.h"
#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

// DLManagedTensorVersioned of DLPack 1.0.
struct Versioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(Versioned* self);
  uint64_t flags;
  DLTensor tensor;
};
constexpr uint64_t kReadOnly = 1, kCopied = 2;
constexpr const char *kPlainName = "dltensor", *kVersionedName = "dltensor_versioned";

// A consumer renames the capsule that it takes. A capsule that still has its first name was never taken.
void drop_plain(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kPlainName) == 0) return;
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kPlainName));
  managed->deleter(managed);
}

void drop_versioned(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kVersionedName) == 0) return;
  auto* managed = static_cast<Versioned*>(PyCapsule_GetPointer(capsule, kVersionedName));
  managed->deleter(managed);
}

Versioned* versioned(DLManagedTensor* plain, bool copied) {
  auto* made = new Versioned{1, 0, plain, nullptr, copied ? kCopied : 0, plain->dl_tensor};
  made->deleter = [](Versioned* self) {
    auto* inner = static_cast<DLManagedTensor*>(self->context);
    inner->deleter(inner);
    delete self;
  };
  return made;
}

nb::object export_tensor(const Tensor& tensor, const nb::object& stream, const nb::object& max_version,
                         const nb::object& device, const nb::object& copy) {
  if (!stream.is_none()) refuse(PyExc_ValueError, "__dlpack__(): memory of the CPU has no streams.");
  if (!device.is_none() && nb::cast<nb::tuple>(device)[0].equal(nb::int_(int{kDLCPU})) == false) {
    refuse(PyExc_BufferError, "__dlpack__(): Tenon gives its memory to the CPU (device type 1) only.");
  }
  const bool copied = !copy.is_none() && nb::cast<bool>(copy);
  DLManagedTensor* plain = nullptr;
  {
    const Unlocked unlocked;
    Tensor given = tensor;
    if (copied || tensor.data() == nullptr) {
      if (!copied && !copy.is_none()) {
        throw Error(Code::unsupported,
                    fmt::format("__dlpack__(): memory of {} must be copied.", tensor.device().spelling()));
      }
      given = call("clone", {tensor.to(Device::host())}).at(0);
    }
    plain = to_dlpack(given);
  }
  const bool new_form = !max_version.is_none() && nb::cast<int>(nb::cast<nb::tuple>(max_version)[0]) >= 1;
  PyObject* capsule = new_form ? PyCapsule_New(versioned(plain, copied), kVersionedName, &drop_versioned)
                               : PyCapsule_New(plain, kPlainName, &drop_plain);
  if (capsule == nullptr) throw nb::python_error();
  return nb::steal(capsule);
}

template <class Managed>
void drop_taken(PyObject* owner) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(owner, nullptr));
  if (managed->deleter != nullptr) managed->deleter(managed);
}

// A tensor over `managed`, which it takes out of `capsule`. The deleter of another library may need the interpreter
// lock, so the tensor holds a Python object that calls the deleter.
template <class Managed>
Tensor take(PyObject* capsule, Managed* managed, const DLTensor& described, const char* used_name) {
  struct Kept {
    DLManagedTensor plain;
    PyObject* owner;
  };
  auto kept = std::make_unique<Kept>(Kept{{described, nullptr, nullptr}, nullptr});
  kept->plain.manager_ctx = kept.get();
  kept->plain.deleter = [](DLManagedTensor* self) {
    auto* mine = static_cast<Kept*>(self->manager_ctx);
    if (mine->owner != nullptr) release(mine->owner);
    delete mine;
  };
  Tensor tensor = from_dlpack(&kept->plain);
  PyCapsule_SetName(capsule, used_name);
  kept->owner = PyCapsule_New(managed, nullptr, &drop_taken<Managed>);
  if (kept.release()->owner == nullptr) throw nb::python_error();
  return tensor;
}

}  // namespace

std::optional<Tensor> borrow_dlpack(PyObject* object) {
  nb::object capsule = nb::borrow(object);
  if (!PyCapsule_CheckExact(object)) {
    const nb::object method = nb::getattr(object, "__dlpack__", nb::none());
    if (method.is_none()) return std::nullopt;
    try {
      capsule = method(nb::arg("max_version") = nb::make_tuple(1, 0));
    } catch (nb::python_error& error) {  // the producer is older than DLPack 1.0
      if (!error.matches(PyExc_TypeError)) throw;
      capsule = method();
    }
  }
  if (PyCapsule_IsValid(capsule.ptr(), kVersionedName) != 0) {
    auto* source = static_cast<Versioned*>(PyCapsule_GetPointer(capsule.ptr(), kVersionedName));
    if (source->major != 1) {
      refuse(PyExc_BufferError, fmt::format("from_dlpack(): the tensor has DLPack version {}.{}; Tenon reads 1.",
                                            source->major, source->minor));
    }
    if ((source->flags & kReadOnly) != 0) {
      refuse(PyExc_ValueError,
             "from_dlpack(): the array is read-only, and a tensor over it could be written; tenon.tensor copies it.");
    }
    return take(capsule.ptr(), source, source->tensor, "used_dltensor_versioned");
  }
  if (PyCapsule_IsValid(capsule.ptr(), kPlainName) != 0) {
    auto* source = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kPlainName));
    return take(capsule.ptr(), source, source->dl_tensor, "used_dltensor");
  }
  refuse(PyExc_TypeError,
         "from_dlpack(): the object's __dlpack__ gave no capsule of DLPack, or one that was used before.");
}

void add_dlpack(nb::class_<Tensor>& tensor) {
  tensor
      .def("__dlpack__", &export_tensor, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack_device__", [](const Tensor&) { return nb::make_tuple(int{kDLCPU}, 0); });
}

}  // namespace tenon::python
