// Arguments of ops inside a `with tenon.autocast(...)` block.
#pragma once

#include <vector>

#include "sdk/python/objects.h"

namespace tenon::python {

// The dtype of products in the innermost block of this thread; none outside of all blocks.
inline thread_local constinit DType autocast_dtype = DType::none;

// The arguments of one call in the dtypes that the block asks for.
class CastArguments {
 public:
  // False if the op takes its arguments as they are given. May throw, as casts are ops.
  bool cast(const DynamicOp& op, PyObject* const* args, size_t count, PyObject* names);
  PyObject* const* args() const { return args_.data(); }

 private:
  std::vector<nb::object> held_;
  std::vector<PyObject*> args_;
};

}  // namespace tenon::python
