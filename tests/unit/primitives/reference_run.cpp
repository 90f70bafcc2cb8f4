// Runs primitives of the reference for a script: reads requests from stdin and writes responses to stdout, until the
// end.
//
// A request is a line with a descriptor (in the form of primitives/descriptor), a line with the launch scalars
// (`f32:0.5 f32:2`, may be empty), and the bytes of each input in turn, from its first to its last element. A response
// is a line, `ok`, `fault <code> <operand> <value> <limit>` or `error <sentence>`, and, unless it is an error, the
// bytes of each output. With --rows the program prints the scalar functions of scalar_ops.def instead: arity, name,
// result, parameters, and the dtypes of the domain.
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "primitives/descriptor/descriptor.h"
#include "primitives/dtype/dtype.h"
#include "primitives/reference/reference.h"
#include "primitives/table/table.h"

namespace tenon {
namespace {

constexpr DType all_types[] = {
#define EP_DTYPE(name, id, bits, type_class) static_cast<DType>(id),
#include "ep_api/dtypes.def"
#undef EP_DTYPE
};

void print_row(const char* arity, std::string_view name, const char* result, int parameters, table::Domain domain) {
  std::cout << arity << ' ' << name << ' ' << result << ' ' << parameters;
  for (DType dtype : all_types) {
    if (table::in_domain(domain, dtype)) std::cout << ' ' << dtype_name(dtype);
  }
  std::cout << '\n';
}

void print_rows() {
  const auto print = [](const char* arity, std::span<const table::ScalarRow> rows) {
    for (const table::ScalarRow& row : rows) {
      print_row(arity, row.name, row.result == table::ResultType::BOOL ? "bool" : "same", row.parameters, row.domain);
    }
  };
  print("unary", table::unary_rows());
  print("binary", table::binary_rows());
  print("ternary", table::ternary_rows());
  for (const table::ReduceRow& row : table::reduce_rows()) print_row("reduce", row.name, "same", 0, row.domain);
}

size_t extent_bytes(const ep_operand_desc& operand) {
  if (operand.flags & EP_OPERAND_FLAG_SCALAR) return 0;
  int64_t last = 0;
  for (int32_t axis = 0; axis < operand.rank; ++axis) last += (operand.dims[axis] - 1) * operand.strides[axis];
  return static_cast<size_t>(dtype_bytes(static_cast<DType>(operand.dtype), last + 1));
}

std::vector<ep_scalar> parse_scalars(const std::string& line) {
  std::vector<ep_scalar> scalars;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const size_t colon = word.find(':');
    const auto dtype = dtype_from_name(std::string_view(word).substr(0, colon)).value_or(DType::f64);
    const std::string number = word.substr(colon + 1);
    ep_scalar scalar = {};
    scalar.dtype = static_cast<int32_t>(dtype);
    if (is_floating(dtype)) {
      scalar.value.f64 = std::stod(number);
    } else if (dtype_info(dtype).type_class == DTypeClass::INT) {
      scalar.value.i64 = std::stoll(number);
    } else {
      scalar.value.u64 = std::stoull(number);
    }
    scalars.push_back(scalar);
  }
  return scalars;
}

bool serve() {
  std::string line, scalar_line;
  if (!std::getline(std::cin, line) || !std::getline(std::cin, scalar_line)) return false;
  const auto desc = descriptor::parse_descriptor(line);
  if (!desc.ok()) {
    std::cout << "error " << desc.status().message() << std::endl;
    return false;
  }
  std::vector<std::vector<char>> memory(desc->operand_count);
  std::vector<void*> operands;
  for (uint32_t i = 0; i < desc->operand_count; ++i) {
    memory[i].assign(extent_bytes(desc->operands[i]), '\x55');
    operands.push_back(memory[i].empty() ? nullptr : memory[i].data());
    if (table::is_output(desc->kind, desc->operands[i].role)) continue;
    std::cin.read(memory[i].data(), static_cast<std::streamsize>(memory[i].size()));
  }
  const std::vector<ep_scalar> scalars = parse_scalars(scalar_line);
  ep_fault fault = {};
  const Status status =
      reference::run(desc.value(), operands.data(), scalars.data(), static_cast<uint32_t>(scalars.size()), &fault);
  if (!status.ok() && status.code() != Code::fault) {
    std::cout << "error " << status.message() << std::endl;
    return true;
  }
  if (status.ok()) {
    std::cout << "ok\n";
  } else {
    std::cout << "fault " << fault.code << ' ' << fault.operand << ' ' << fault.value << ' ' << fault.limit << '\n';
  }
  for (uint32_t i = 0; i < desc->operand_count; ++i) {
    if (!table::is_output(desc->kind, desc->operands[i].role)) continue;
    std::cout.write(memory[i].data(), static_cast<std::streamsize>(memory[i].size()));
  }
  std::cout.flush();
  return true;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  if (argc > 1 && std::strcmp(argv[1], "--rows") == 0) {
    tenon::print_rows();
    return 0;
  }
  while (tenon::serve()) {
  }
  return 0;
}
