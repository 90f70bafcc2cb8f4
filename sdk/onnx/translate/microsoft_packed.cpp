// Products and look-ups with weights of few bits: a byte holds several numbers, and each block has a scale.
#include <algorithm>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/translate/microsoft.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

constexpr int64_t kMost = int64_t{1} << 31;

std::string bits_why_not(const Node& node) {
  const auto bits = node.attributes.find("bits");
  const int64_t count = bits == node.attributes.end() ? 4 : bits->second.i;
  return count == 2 || count == 4 || count == 8 ? std::string() : fmt::format("its weights have {} bits.", count);
}

// Unpacks numbers of `bits` bits along the last axis of u8, low bits first.
Tensor unpacked(const Tensor& bytes, int64_t bits) {
  if (bits == 8) return bytes;
  TensorList parts;
  for (int64_t shift = 0; shift < 8; shift += bits)
    parts.push_back(bitwise_and(bitwise_right_shift(bytes, Scalar(shift)), Scalar((1 << bits) - 1)));
  return flatten(stack(parts, -1), -2, -1);
}

// Converts weights [n, k] to the matrix [k, n] that quantized_matmul takes, and subtracts `offset`.
Tensor as_matrix(const Tensor& numbers, int64_t offset, DType dtype) {
  const Tensor turned = contiguous(t(numbers));
  return offset == 0 ? cast(turned, dtype) : cast(sub(cast(turned, DType::i32), Scalar(offset)), dtype);
}

// The weights of a MatMulNBits: [rows, columns] numbers with blocks along the columns.
struct BlockedWeights {
  Tensor numbers;
  int64_t rows = 0, columns = 0, bits = 0, block = 0, blocks = 0;
};

BlockedWeights read_weights(NodeContext& n) {
  BlockedWeights w;
  w.bits = n.integer("bits", 4);
  w.block = n.require("block_size", Attribute::Kind::integer).i;
  w.rows = n.require("N", Attribute::Kind::integer).i;
  w.columns = n.require("K", Attribute::Kind::integer).i;
  if (w.rows < 1 || w.columns < 1 || w.block < 1 || w.rows > kMost || w.columns > kMost || w.block > kMost)
    n.invalid(fmt::format(
        "its weights have {} rows and {} columns in blocks of {}; each number must be at least 1 and not too large",
        w.rows, w.columns, w.block));
  w.blocks = (w.columns + w.block - 1) / w.block;
  if (n.dtype(1) != DType::u8)
    n.unsupported(fmt::format("its weights are {}; u8 is translated", dtype_name(n.dtype(1))));
  const Tensor whole = reshape(unpacked(n.input(1), w.bits), {w.rows, w.blocks * w.block});
  w.numbers = narrow(whole, 1, 0, w.columns);
  return w;
}

// The zero points in input `i`: one number per block, [rows, blocks].
Tensor zero_points(NodeContext& n, size_t i, const BlockedWeights& w) {
  if (n.dtype(i) != DType::u8) return reshape(n.input(i), {w.rows, w.blocks});
  const Tensor bytes = reshape(n.input(i), {w.rows, (w.blocks * w.bits + 7) / 8});
  return narrow(unpacked(bytes, w.bits), 1, 0, w.blocks);
}

Tensor as_f32(const Tensor& x) { return x.defined() ? cast(x, DType::f32) : x; }

// The product of packed weights, computed on integers. Without zero points the numbers are centred on the middle and
// become signed.
TensorList matmul_numbers(NodeContext& n, const BlockedWeights& w) {
  const DType dtype = n.has(3) ? w.bits == 4 ? DType::u4 : DType::u8 : w.bits == 4 ? DType::i4 : DType::i8;
  const Tensor zero = n.has(3) ? as_matrix(zero_points(n, 3, w), 0, dtype) : Tensor();
  const Tensor scale = contiguous(t(reshape(as_f32(n.input(2)), {w.rows, w.blocks})));
  const int64_t middle = n.has(3) ? 0 : 1 << (w.bits - 1);
  const Tensor y = quantized_matmul(as_f32(n.input(0)), {}, {}, as_matrix(w.numbers, middle, dtype), scale, zero,
                                    as_f32(n.optional(5)), {}, {}, w.block);
  return {cast(y, n.dtype(0))};
}

// Multiplies a by the transpose of weights [n, k]. Each block has a scale and a zero point. Column i belongs to block i
// / block_size, or to block g_idx[i].
TensorList matmul_bits(NodeContext& n) {
  const BlockedWeights w = read_weights(n);
  const bool plain_zero = !n.has(3) || n.dtype(3) == DType::u8;
  if (w.bits >= 4 && w.block % 8 == 0 && n.rank(0) >= 2 && plain_zero && !n.has(4)) return matmul_numbers(n, w);
  const Tensor of_column = n.has(4) ? n.input(4) : floor_divide(n.positions(w.columns), Scalar(w.block));
  if (of_column.rank() != 1 || of_column.dim(0) != w.columns)
    n.invalid(fmt::format("its g_idx has shape {}; one number for each of the {} columns is needed", of_column.dims(),
                          w.columns));
  const auto by_column = [&](const Tensor& by_block) {
    return gather_slices(cast(by_block, DType::f32), 1, of_column);
  };
  Tensor real = cast(w.numbers, DType::f32);
  real =
      n.has(3) ? sub(real, by_column(zero_points(n, 3, w))) : sub(real, Scalar(static_cast<double>(1 << (w.bits - 1))));
  real = mul(real, by_column(reshape(n.input(2), {w.rows, w.blocks})));
  const Tensor y = matmul(as_f32(n.input(0)), t(real));
  return {cast(n.has(5) ? add(y, as_f32(n.input(5))) : y, n.dtype(0))};
}

// ---- 4-bit indices into a table of numbers ----

// The tables of bitsandbytes, scaled to absolute values up to 1 (https://arxiv.org/abs/2305.14314).
constexpr float kFp4[16] = {0.0f,  5.208333333e-03f,  2.0f / 3,  1.0f,  1.0f / 3,  0.5f,  1.0f / 6,  0.25f,
                            -0.0f, -5.208333333e-03f, -2.0f / 3, -1.0f, -1.0f / 3, -0.5f, -1.0f / 6, -0.25f};
constexpr float kNf4[16] = {-1.0f,
                            -0.6961928009986877f,
                            -0.5250730514526367f,
                            -0.39491748809814453f,
                            -0.28444138169288635f,
                            -0.18477343022823334f,
                            -0.09105003625154495f,
                            0.0f,
                            0.07958029955625534f,
                            0.16093020141124725f,
                            0.24611230194568634f,
                            0.33791524171829224f,
                            0.44070982933044434f,
                            0.5626170039176941f,
                            0.7229568362236023f,
                            1.0f};

std::string table_why_not(const Node& node) {
  const auto type = node.attributes.find("quant_type");
  if (type == node.attributes.end() || type->second.i == 0 || type->second.i == 1) return {};
  return fmt::format("its quant_type is {}; 0 (FP4) and 1 (NF4) are known.", type->second.i);
}

// The weights [n, k] are stored in one row, the first of each pair in the high bits, with one largest value per block.
TensorList matmul_of_table(NodeContext& n) {
  const int64_t rows = n.require("N", Attribute::Kind::integer).i, columns = n.require("K", Attribute::Kind::integer).i;
  const int64_t block = n.require("block_size", Attribute::Kind::integer).i;
  if (rows < 1 || columns < 1 || block < 1 || rows > kMost || columns > kMost || block > kMost)
    n.invalid(fmt::format(
        "its weights have {} rows and {} columns in blocks of {}; each number must be at least 1 and not too large",
        rows, columns, block));
  const int64_t count = rows * columns;
  if (n.input(1).elements() != (count + 1) / 2 || n.input(2).elements() != (count + block - 1) / block)
    n.invalid(fmt::format("{} bytes and {} scales do not fit {} weights in blocks of {}", n.input(1).elements(),
                          n.input(2).elements(), count, block));
  const Tensor bytes = reshape(n.input(1), {-1});
  const Tensor places =
      flatten(stack({bitwise_right_shift(bytes, Scalar(4)), bitwise_and(bytes, Scalar(15))}, -1), 0, 1);
  const float* numbers = n.require("quant_type", Attribute::Kind::integer).i == 0 ? kFp4 : kNf4;
  const Tensor& table =
      n.kept<Tensor>("table", [&] { return Tensor::copy_from_host(numbers, {16}, DType::f32, n.device()); });
  const Tensor values = gather_slices(table, 0, cast(narrow(places, 0, 0, count), DType::i64));
  const Tensor scales = narrow(repeat_interleave(cast(reshape(n.input(2), {-1}), DType::f32), block, 0), 0, 0, count);
  const Tensor weights = reshape(mul(values, scales), {rows, columns});
  return {cast(matmul(as_f32(n.input(0)), n.flag("transB", true) ? t(weights) : weights), n.dtype(0))};
}

// ---- look-ups ----

// Rows of a quantised table, and the parameters that make them real.
struct BlockedTable {
  Tensor numbers, scales, zero_points;  // zero_points may be undefined
  double zero = 0;                      // the zero point if there is no tensor of them
};

BlockedTable read_table(NodeContext& n) {
  BlockedTable table{n.input(0), n.input(2), n.optional(3), 0};
  const DType dtype = n.dtype(0);
  if (dtype == DType::u8) {
    const int64_t bits = n.integer("bits", 4);
    table.numbers = unpacked(table.numbers, bits);
    table.zero = static_cast<double>(1 << (bits - 1));
    if (table.zero_points.defined())
      table.zero_points = narrow(unpacked(table.zero_points, bits), -1, 0, table.scales.dim(-1));
  } else if (dtype == DType::i4 || dtype == DType::u4) {
    const DType wide = dtype == DType::i4 ? DType::i8 : DType::u8;
    table.numbers = cast(table.numbers, wide);
    if (table.zero_points.defined()) table.zero_points = cast(table.zero_points, wide);
  }
  return table;
}

// (numbers - zero point) * scale, with the block of each index along `axis`.
Tensor real_table(NodeContext& n, const BlockedTable& table, int64_t axis, int64_t block) {
  const Tensor of_index = floor_divide(n.positions(table.numbers.dim(axis)), Scalar(block));
  const auto spread = [&](const Tensor& by_block) { return gather_slices(cast(by_block, DType::f32), axis, of_index); };
  const Tensor floats = cast(table.numbers, DType::f32);
  const Tensor centred =
      table.zero_points.defined() ? sub(floats, spread(table.zero_points)) : sub(floats, Scalar(table.zero));
  return cast(mul(centred, spread(table.scales)), n.dtype(2));
}

// Looks up quantised numbers and dequantises only those, unless blocks lie along the axis of the look-up.
TensorList gather_block_quantised(NodeContext& n) {
  BlockedTable table = read_table(n);
  const int32_t rank = table.numbers.rank();
  const int64_t along = n.normalise_axis(n.integer("gather_axis", 0), rank);
  int64_t axis = n.normalise_axis(n.integer("quantize_axis", 1), rank);
  int64_t block = n.integer("block_size", 128);
  if (table.scales.rank() != rank || (table.zero_points.defined() && table.zero_points.dims() != table.scales.dims()))
    n.invalid(fmt::format("its scales of shape {} do not fit its table of shape {}", table.scales.dims(),
                          table.numbers.dims()));
  if (block == 0) block = std::max<int64_t>(1, table.numbers.dim(axis));
  const int64_t blocks = block < 1 ? 0 : (table.numbers.dim(axis) + block - 1) / block;
  if (table.scales.dim(axis) != blocks)
    n.invalid(fmt::format("it has {} scales for {} numbers in blocks of {}", table.scales.dim(axis),
                          table.numbers.dim(axis), block));
  const Tensor& index = n.input(1);
  if (along == axis) return {gather_slices(real_table(n, table, axis, block), along, index)};
  for (Tensor* part : {&table.numbers, &table.scales, &table.zero_points}) {
    if (!part->defined()) continue;
    const bool one_for_all = part != &table.numbers && part->dim(along) == 1;
    *part = gather_slices(*part, along, one_for_all ? mul(index, Scalar(0)) : index);
  }
  if (axis > along) axis += index.rank() - 1;
  return {real_table(n, table, axis, block)};
}

constexpr Translator kMicrosoftPackedRows[] = {
    {.domain = kMicrosoft,
     .op_type = "GatherBlockQuantized",
     .since = 1,
     .translate = gather_block_quantised,
     .why_not = bits_why_not},
    {.domain = kMicrosoft, .op_type = "MatMulBnb4", .since = 1, .translate = matmul_of_table, .why_not = table_why_not},
    {.domain = kMicrosoft, .op_type = "MatMulNBits", .since = 1, .translate = matmul_bits, .why_not = bits_why_not},
};

}  // namespace

std::span<const Translator> microsoft_packed_translators() { return kMicrosoftPackedRows; }

}  // namespace tenon::onnx
