// Libraries of ops: ops that an application or a package adds beside those of ops.yaml. The same generator makes their
// tables from a list of the same form (sdk/app/README.md says how). An op of a library is called by the name of its
// library and its own, "mypkg::swish2". A library stays for the life of the process.
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

// The tables of one library, which the generator makes. All but `dynamic` are in the order of `rows`.
struct OpLibrary {
  std::string_view name;               // "mypkg"
  std::span<OpInfo> rows;              // they get their ids when the library is added
  std::span<const DynamicOp> dynamic;  // sorted by name
  const autograd::GradientRow* gradients = nullptr;
  const std::span<const AttributeField>* fields = nullptr;
  const RecordShape* shapes = nullptr;
};

// The sizes of what the tables are made of, as one number: a library of another layout is refused.
constexpr uint64_t kOpTableLayout = sizeof(OpInfo) + 1000 * (sizeof(DynamicOp) + sizeof(Signature)) +
                                    1'000'000 * (sizeof(Parameter) + sizeof(AttributeField) + sizeof(RecordShape)) +
                                    1'000'000'000 * (sizeof(OpCall) + sizeof(TensorImpl));

// What is read of a library first: the symbol `tenon_ops_card` of a shared library.
struct OpLibraryCard {
  const char* version;  // of the Tenon that it was made for
  uint64_t layout;      // kOpTableLayout
  OpLibrary& (*library)();
};

// Adds the ops of a library that the program is linked with; a second time it does nothing.
// Errors: version (made for another one), invalid_argument (another library has its name or its ops).
TENON_API const OpLibrary& add_ops(const OpLibraryCard& card);
// Adds the ops of the shared library `path`. Errors: those of add_ops; not_found (it is not there, cannot be loaded or
// holds no ops).
TENON_API const OpLibrary& load_ops(const std::string& path);
// The libraries that were added, those in the folders of TENON_OPS_PATH among them.
TENON_API std::vector<const OpLibrary*> op_libraries();

// ---- internal ----

// The row called `name` of a library; null: there is none.
const OpInfo* find_library_row(std::string_view name);
// The op of the dynamic call that a library has under `name`. Errors: not_found.
const DynamicOp& find_library_op(std::string_view name);
// The row of the op with an id above those of ops.yaml, in the tables of its library.
struct LibraryRow {
  const OpLibrary* library;
  size_t index;
};
LibraryRow library_row(uint16_t id);
// True if `op` is of a library.
bool is_of_library(const OpInfo& op);

}  // namespace tenon
