// Libraries of ops: ops that an application or a package adds to those of ops.yaml. The same generator makes their
// tables from a list of the same form (see sdk/app/README.md). An op of a library is called by the name of its library
// and its own, "mypkg::swish2". A library stays loaded until the process ends.
//
//   const OpLibrary& mypkg = tenon::load_ops("./libtenon_ops_mypkg.so");
//   TensorList y = tenon::call("mypkg::swish2", {x});
//
// Threads: every function is thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/export.h"
#include "core/ops/call.h"
#include "core/ops/op_call.h"
#include "core/ops/record_shape.h"

namespace tenon {

namespace autograd {
struct GradientRow;
}

// The generated tables of one library. All except `dynamic` are in the order of `rows`.
struct OpLibrary {
  std::string_view name;               // "mypkg"
  std::span<OpInfo> rows;              // their ids are set when the library is added
  std::span<const DynamicOp> dynamic;  // sorted by name
  const autograd::GradientRow* gradients = nullptr;
  const std::span<const AttributeField>* fields = nullptr;
  const RecordShape* shapes = nullptr;
};

// A checksum of the sizes of the tables' types: a library with another layout is refused.
constexpr uint64_t kOpTableLayout = sizeof(OpInfo) + 1000 * (sizeof(DynamicOp) + sizeof(Signature)) +
                                    1'000'000 * (sizeof(Parameter) + sizeof(AttributeField) + sizeof(RecordShape)) +
                                    1'000'000'000 * (sizeof(OpCall) + sizeof(TensorImpl));

// The first data read from a library: the symbol `tenon_ops_card` of the shared library.
struct OpLibraryCard {
  const char* version;  // the version of Tenon that it was built for
  uint64_t layout;      // must equal kOpTableLayout
  OpLibrary& (*library)();
};

// Adds the ops of a library that the program is linked with; a second call does nothing. Errors: version (built for
// another version), invalid_argument (another library has its name or its ops).
TENON_API const OpLibrary& add_ops(const OpLibraryCard& card);
// Adds the ops of the shared library `path`. Errors: those of add_ops; not_found (it does not exist, cannot be loaded
// or holds no ops).
TENON_API const OpLibrary& load_ops(const std::string& path);
// The libraries added so far, including those in the folders of TENON_OPS_PATH.
TENON_API std::vector<const OpLibrary*> op_libraries();

// ---- internal ----

// The row called `name` of a library; null if there is none.
const OpInfo* find_library_row(std::string_view name);
// The op of the dynamic call called `name` of a library. Errors: not_found.
const DynamicOp& find_library_op(std::string_view name);
// The row of an op whose id is above those of ops.yaml, in the tables of its library.
struct LibraryRow {
  const OpLibrary* library;
  size_t index;
};
LibraryRow library_row(uint16_t id);
// True if `op` belongs to a library.
bool is_of_library(const OpInfo& op);

}  // namespace tenon
