#include "core/autograd/saved.h"

#include "core/autograd/history.h"
#include "core/autograd/interpreter.h"
#include "core/vm/storage.h"
#include "primitives/text/format.h"

namespace tenon::autograd {

// The packed form that a hook made of a tensor, and the metadata of the tensor.
struct SavedTensor::Packed {
  Unpack unpack;
  Dims dims;
  DType dtype = DType::none;
  DeviceState* device = nullptr;
  SharedStorage
      shared;  // the tensor's storage if the hook keeps it, so that no other storage gets its address; else null
};

void SavedTensor::End::operator()(Packed* packed) const { delete packed; }

void SavedTensor::pack(std::string_view saver) {
  const PackHook& hook = *call_context.pack_hook;
  const bool recorded = tensor_.impl()->storage == nullptr;
  if (recorded && !hook.takes_recorded) {
    throw Error(Subject{saver}, Code::invalid_argument,
                "it saves a tensor inside of SavedTensorHooks, which a recording cannot hold.",
                "Close the scope of the hooks, or run this step without recording it.");
  }
  std::unique_ptr<Packed, End> packed(new Packed);
  packed->dims = tensor_.impl()->dims;
  packed->dtype = tensor_.dtype();
  packed->device = tensor_.impl()->device;
  const SharedStorage storage = tensor_.impl()->storage;
  const int32_t before = recorded ? 0 : storage.tensor_count();
  {
    const PackScope scope(nullptr);
    const InterpreterScope interpreter(interpreter_below());
    packed->unpack = hook.pack(without_history(tensor_));
  }
  if (!recorded && storage.tensor_count() > before) packed->shared = storage;
  tensor_ = Tensor();
  packed_ = std::move(packed);
}

Tensor SavedTensor::unpack(std::string_view saver, std::string_view what) const {
  const Packed& packed = *packed_;
  Tensor tensor;
  {
    const PackScope scope(nullptr);
    const InterpreterScope interpreter(interpreter_below());
    tensor = packed.unpack();
  }
  const bool fits = tensor.defined() && tensor.dtype() == packed.dtype && tensor.impl()->dims == packed.dims &&
                    tensor.impl()->device == packed.device;
  if (!fits) {
    throw Error(Subject{"backward"}, Code::invalid_argument,
                fmt::format("{} saved {} of {} {}, and the hook that unpacks it gave {}.", saver, what,
                            dtype_name(packed.dtype), packed.dims,
                            tensor.defined() ? fmt::format("{} {} on {}", dtype_name(tensor.dtype()), tensor.dims(),
                                                           tensor.device().spelling())
                                             : "an undefined tensor"));
  }
  const SharedStorage storage = tensor.impl()->storage;
  if (storage != nullptr && storage == packed.shared && write_count(tensor) != version_) refuse(tensor, saver, what);
  return history_of(tensor) == nullptr ? tensor : without_history(tensor);
}

void SavedTensor::refuse(const Tensor& written, std::string_view saver, std::string_view what) const {
  throw Error(Subject{"backward"}, Code::invalid_argument,
              fmt::format("{} saved {} of shape {} for its gradient, and {} has written into that tensor "
                          "since (version {} was saved, it is version {} now).",
                          saver, what, written.dims(), last_writer(written), version_, write_count(written)),
              "Write into a clone() of the tensor, or write before the op uses it.");
}

}  // namespace tenon::autograd
