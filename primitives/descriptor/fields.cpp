#include "primitives/descriptor/fields.h"

#include <bit>
#include <charconv>
#include <cstring>

#include "primitives/descriptor/descriptor.h"
#include "primitives/dtype/dtype.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::descriptor {
namespace {

constexpr Field rows[] = {
#define EP_FIELD(kind, member, type, count) \
  {EP_PRIMITIVE_##kind, #member, offsetof(ep_attributes, kind.member), FieldType::type, count},
#define EP_QUANTISATION(kind, member) \
  EP_FIELD(kind, member.axes, MASK, 1) EP_FIELD(kind, member.block_axis, I32, 1) EP_FIELD(kind, member.block, I32, 2)
#include "primitives/descriptor/kinds.def"
};

struct Name {
  FieldType type;
  int32_t value;
  std::string_view text;
};

constexpr Name names[] = {
    {FieldType::POOLING, EP_POOLING_MAX, "max"},
    {FieldType::POOLING, EP_POOLING_AVERAGE, "average"},
    {FieldType::POOLING, EP_POOLING_AVERAGE_INCLUDE_PAD, "average_include_pad"},
    {FieldType::POOLING, EP_POOLING_LP, "lp"},
    {FieldType::GATHER, EP_GATHER_SLICES, "slices"},
    {FieldType::GATHER, EP_GATHER_ELEMENTS, "elements"},
    {FieldType::GATHER, EP_GATHER_COORDINATES, "coordinates"},
    {FieldType::PAD, EP_PAD_CONSTANT, "constant"},
    {FieldType::PAD, EP_PAD_REFLECT, "reflect"},
    {FieldType::PAD, EP_PAD_EDGE, "edge"},
    {FieldType::SCATTER, EP_SCATTER_ASSIGN, "assign"},
    {FieldType::SCATTER, EP_SCATTER_ADD, "add"},
    {FieldType::SCATTER, EP_SCATTER_MUL, "mul"},
    {FieldType::SCATTER, EP_SCATTER_MIN, "min"},
    {FieldType::SCATTER, EP_SCATTER_MAX, "max"},
    {FieldType::RANDOM, EP_RANDOM_UNIFORM, "uniform"},
    {FieldType::RANDOM, EP_RANDOM_NORMAL, "normal"},
    {FieldType::SCAN, EP_SCAN_SUM, "sum"},
    {FieldType::SCAN, EP_SCAN_PROD, "prod"},
    {FieldType::SCAN, EP_SCAN_MAX, "max"},
    {FieldType::SCAN, EP_SCAN_MIN, "min"},
    {FieldType::SCAN, EP_SCAN_LOG_SUM_EXP, "log_sum_exp"},
    {FieldType::UNIQUE, EP_UNIQUE_SORTED, "sorted"},
    {FieldType::UNIQUE, EP_UNIQUE_FIRST, "first"},
    {FieldType::UNIQUE, EP_UNIQUE_CONSECUTIVE, "consecutive"},
    {FieldType::ATTENTION, EP_ATTENTION_START, "start"},
    {FieldType::ATTENTION, EP_ATTENTION_END, "end"},
    {FieldType::ROTARY, EP_ROTARY_HALVES, "halves"},
    {FieldType::ROTARY, EP_ROTARY_INTERLEAVED, "interleaved"},
    {FieldType::RANDOM, EP_RANDOM_BITS, "bits"},
    {FieldType::RESIZE, EP_RESIZE_NEAREST, "nearest"},
    {FieldType::RESIZE, EP_RESIZE_LINEAR, "linear"},
    {FieldType::RESIZE, EP_RESIZE_CUBIC, "cubic"},
    {FieldType::CELL, EP_CELL_TANH, "tanh"},
    {FieldType::CELL, EP_CELL_RELU, "relu"},
    {FieldType::CELL, EP_CELL_LSTM, "lstm"},
    {FieldType::CELL, EP_CELL_GRU, "gru"},
    {FieldType::FFT, EP_FFT_COMPLEX, "complex"},
    {FieldType::FFT, EP_FFT_REAL_TO_HALF, "real_to_half"},
    {FieldType::FFT, EP_FFT_HALF_TO_REAL, "half_to_real"},
    {FieldType::LINEAR, EP_LINEAR_SOLVE, "solve"},
    {FieldType::LINEAR, EP_LINEAR_TRIANGULAR_SOLVE, "triangular_solve"},
    {FieldType::LINEAR, EP_LINEAR_LEAST_SQUARES, "least_squares"},
    {FieldType::LINEAR, EP_LINEAR_CHOLESKY, "cholesky"},
    {FieldType::LINEAR, EP_LINEAR_INVERSE, "inverse"},
    {FieldType::LINEAR, EP_LINEAR_DETERMINANT, "determinant"},
    {FieldType::LINEAR, EP_LINEAR_LOG_DETERMINANT, "log_determinant"},
    {FieldType::LINEAR, EP_LINEAR_LU, "lu"},
    {FieldType::LINEAR, EP_LINEAR_QR, "qr"},
    {FieldType::LINEAR, EP_LINEAR_SVD, "svd"},
    {FieldType::LINEAR, EP_LINEAR_EIGEN, "eigen"},
};

bool is_number(FieldType type) {
  return type == FieldType::I32 || type == FieldType::MASK || type == FieldType::I64 || type == FieldType::F64;
}

// The name of `value`; empty if it has none.
std::string_view name_of(FieldType type, int64_t value) {
  const auto id = static_cast<int32_t>(value);
  const table::ScalarRow* row = nullptr;
  if (type == FieldType::UNARY) row = table::unary_row(id);
  if (type == FieldType::BINARY) row = table::binary_row(id);
  if (type == FieldType::TERNARY) row = table::ternary_row(id);
  if (row != nullptr) return row->name;
  if (const table::ReduceRow* reduce = table::reduce_row(id); type == FieldType::REDUCE && reduce != nullptr) {
    return reduce->name;
  }
  for (const Name& name : names) {
    if (name.type == type && name.value == id) return name.text;
  }
  return {};
}

// The value named `text`; 0 if there is none.
int64_t value_of(FieldType type, std::string_view text) {
  const table::ScalarRow* row = nullptr;
  if (type == FieldType::UNARY) row = table::scalar_row(1, text);
  if (type == FieldType::BINARY) row = table::scalar_row(2, text);
  if (type == FieldType::TERNARY) row = table::scalar_row(3, text);
  if (row != nullptr) return row->id;
  if (const table::ReduceRow* reduce = table::reduce_row(text); type == FieldType::REDUCE && reduce != nullptr) {
    return reduce->id;
  }
  for (const Name& name : names) {
    if (name.type == type && name.text == text) return name.value;
  }
  return 0;
}

}  // namespace

std::span<const Field> fields() { return rows; }

int64_t get_field(const ep_attributes& attributes, const Field& field, int32_t index) {
  const char* at =
      reinterpret_cast<const char*>(&attributes) + field.offset + field_size(field) * static_cast<size_t>(index);
  int64_t wide = 0;
  int32_t narrow = 0;
  if (field_size(field) == 8) {
    std::memcpy(&wide, at, 8);
    return wide;
  }
  std::memcpy(&narrow, at, 4);
  return field.type == FieldType::MASK ? static_cast<uint32_t>(narrow) : narrow;
}

void set_field(ep_attributes& attributes, const Field& field, int32_t index, int64_t value) {
  char* at = reinterpret_cast<char*>(&attributes) + field.offset + field_size(field) * static_cast<size_t>(index);
  const auto narrow = static_cast<int32_t>(value);
  if (field_size(field) == 8) {
    std::memcpy(at, &value, 8);
  } else {
    std::memcpy(at, &narrow, 4);
  }
}

std::string value_text(FieldType type, int64_t value) {
  if (type == FieldType::F64) return fmt::format("{:.17g}", std::bit_cast<double>(value));
  const std::string_view name = name_of(type, value);
  return name.empty() ? fmt::format("{}", value) : std::string(name);
}

Result<int64_t> value_from_text(FieldType type, std::string_view text) {
  if (const int64_t id = value_of(type, text); id != 0) return id;
  int64_t number = 0;
  double real = 0;
  const bool is_real = type == FieldType::F64;
  const auto [end, error] = is_real ? std::from_chars(text.data(), text.data() + text.size(), real)
                                    : std::from_chars(text.data(), text.data() + text.size(), number);
  if (is_real) number = std::bit_cast<int64_t>(real);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return Status(Subject{"descriptor"}, Code::invalid_argument,
                fmt::format("'{}' is neither a number nor a name known here.", text));
}

bool is_known(FieldType type, int64_t value) { return is_number(type) || !name_of(type, value).empty(); }

uint64_t greatest_penalty(const ep_primitive_desc& desc) {
  if (has_any(desc) || has_opaque(desc)) return 0;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if ((operand.flags & EP_OPERAND_FLAG_SCALAR) != 0) continue;
    int64_t elements = 1;
    for (int32_t axis = 0; axis < operand.rank; ++axis) elements *= operand.dims[axis];
    bytes += static_cast<uint64_t>(dtype_bytes(static_cast<DType>(operand.dtype), elements));
  }
  return bytes;
}

}  // namespace tenon::descriptor
