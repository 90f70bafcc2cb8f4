// matmul of f32 by a constant quantised matrix, as in decoders. For few rows, x becomes integers, or weights become
// floats in registers, because reading the matrix dominates. For more rows, blocks of weights become floats in the
// cache, and all rows use them.
#include <algorithm>
#include <cstring>
#include <vector>

#include "providers/cpu/quantised/numbers.h"
#include "providers/cpu/quantised/quantised.h"
#include "providers/cpu/quantised/weight_digits.h"
#include "providers/cpu/quantised/weight_rows.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t kChunk = 512;                 // rows of a panel converted to floats at a time
constexpr int32_t kWidest = 2 * kPanelColumns;  // columns processed at a time for one row

int32_t bits_of(int32_t dtype) { return dtype == EP_DTYPE_i4 || dtype == EP_DTYPE_u4 ? 4 : 8; }

// Element `at` of a list of 4-bit or 8-bit integers.
int32_t integer_at(const char* list, int64_t at, int32_t dtype) {
  if (bits_of(dtype) == 8) {
    return dtype == EP_DTYPE_i8 ? static_cast<int8_t>(list[at]) : static_cast<uint8_t>(list[at]);
  }
  const int32_t value = static_cast<uint8_t>(list[at / 2]) >> (at % 2 * 4) & 15;
  return dtype == EP_DTYPE_i4 && value >= 8 ? value - 16 : value;
}

class Weights final : public ep_primitive {
 public:
  Weights(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc), numbers_(desc), kernels_(weight_kernels(on.simd)), digits_(digit_kernels(on.simd)) {
    const ep_operand_desc& weight = desc_.operands[weight_at()];
    rows_ = desc_.operands[0].dims[0];
    columns_ = desc_.operands[0].dims[1];
    depth_ = weight.dims[0];
    padded_ = (depth_ + kDigitGroup - 1) / kDigitGroup * kDigitGroup;
    panels_ = (columns_ + kPanelColumns - 1) / kPanelColumns;
    const ep_quantisation& how = desc_.attributes.matmul.weight;
    block_ = how.block[0] != 0 ? how.block[0] : padded_;
    blocks_ = (depth_ + block_ - 1) / block_;
    dtype_ = weight.dtype;
    offset_ = dtype_ == EP_DTYPE_i4 ? -8 : dtype_ == EP_DTYPE_i8 ? -128 : 0;
    few_ = kernels_.few != nullptr && rows_ <= kFewRows;
    splits_ = digits_.split != nullptr && rows_ <= kFewRows && block_ % kDigitGroup == 0;
  }

  int32_t weight_at() const { return find_operand(desc_, EP_ROLE_SRC_B); }
  int64_t panel_bytes() const { return padded_ * kPanelColumns * bits_of(dtype_) / 8; }
  int64_t packed_bytes() const { return panels_ * panel_bytes(); }
  int64_t groups() const { return padded_ / kDigitGroup; }  // per row
  uint64_t workspace(const ep_shape*) const override {
    const uint64_t split = splits_ ? static_cast<uint64_t>(rows_ * groups()) * sizeof(DigitGroup) : 0;
    return static_cast<uint64_t>((rows_ * padded_ + rows_ * blocks_) * 4) + split;
  }
  bool has_workspace() const override { return true; }

  ep_status pack(char* dst, const char* src, ep_error**) override {
    const ep_operand_desc& weight = desc_.operands[weight_at()];
    const int64_t bits = bits_of(dtype_);
    std::memset(dst, 0, static_cast<size_t>(packed_bytes()));
    for (int64_t c = 0; c < columns_; ++c) {
      const int64_t column = c % kPanelColumns;
      char* const panel = dst + c / kPanelColumns * panel_bytes() + (bits == 4 ? column % 16 : column) * 4;
      const int64_t shift = bits == 4 ? column / 16 * 4 : 0;
      for (int64_t k = 0; k < depth_; ++k) {
        const int32_t value = integer_at(src, k * weight.strides[0] + c * weight.strides[1], dtype_) - offset_;
        char& byte = panel[k / 4 * 16 * bits + k % 4];
        byte = static_cast<char>(byte | value << shift);
      }
    }
    return EP_STATUS_OK;
  }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    if (launch.workspace.memory == nullptr) {
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT,
                       "The launch of a product of f32 by numbers has no workspace.");
    }
    auto* x = reinterpret_cast<float*>(address_of(launch.workspace));
    float* sums = x + rows_ * padded_;
    gather(launch, x, sums);
    auto* digits = reinterpret_cast<DigitGroup*>(sums + rows_ * blocks_);
    if (!splits_ || !digits_.split(x, rows_ * groups(), offset_, digits)) digits = nullptr;
    const int64_t wide = digits != nullptr && rows_ == 1 ? kWidest : kPanelColumns;
    const int64_t runs = (columns_ + wide - 1) / wide;
    const int64_t nanoseconds = packed_bytes() / 16 + rows_ * depth_ * columns_ / 64;
    parallel(device->threads, nanoseconds, [&](int32_t part, int32_t parts) {
      Room room;
      room.reals.resize(few_ ? 0 : static_cast<size_t>(kChunk * kPanelColumns));
      for (int64_t i = runs * part / parts; i < runs * (part + 1) / parts; ++i) {
        run(launch, x, sums, digits, i * wide, static_cast<int32_t>(std::min(wide, columns_ - i * wide)), &room);
      }
    });
    return EP_STATUS_OK;
  }

 private:
  // The buffers of a thread.
  struct Room {
    std::vector<float> scales, zeros, reals;
  };

  // Copies the rows of SRC, padded with zeros, and computes the sums of their blocks.
  void gather(const ep_launch& launch, float* x, float* sums) const {
    const int32_t at = find_operand(desc_, EP_ROLE_SRC);
    const ep_operand_desc& src = desc_.operands[at];
    const auto* from = reinterpret_cast<const float*>(address_of(launch.operands[at]));
    for (int64_t row = 0; row < rows_; ++row, x += padded_, sums += blocks_) {
      if (src.strides[1] == 1) {
        std::copy_n(from + row * src.strides[0], depth_, x);
      } else {
        for (int64_t k = 0; k < depth_; ++k) x[k] = from[row * src.strides[0] + k * src.strides[1]];
      }
      std::fill(x + depth_, x + padded_, 0.0f);
      for (int64_t b = 0; b < blocks_; ++b) sums[b] = sum_of(x, b * block_, std::min((b + 1) * block_, padded_));
    }
  }

  // Sums elements with eight partial sums; the range is a multiple of eight.
  static float sum_of(const float* x, int64_t begin, int64_t end) {
    float part[8] = {};
    for (int64_t k = begin; k < end; k += 8) {
      for (int64_t i = 0; i < 8; ++i) part[i] += x[k + i];
    }
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
  }

  // Fills `list` [blocks, columns of whole panels] from operand `at`, a scale or zero point.
  template <class Read>
  void spread(int32_t at, int64_t column, int32_t columns, std::vector<float>* list, const Read& read) const {
    const ep_operand_desc& operand = desc_.operands[at];
    const int64_t down = operand.dims[0] == 1 ? 0 : operand.strides[0];
    const int64_t across = operand.dims[1] == 1 ? 0 : operand.strides[1];
    const int64_t row = whole(columns);
    list->resize(static_cast<size_t>(blocks_ * row));
    for (int64_t b = 0; b < blocks_; ++b) {
      for (int64_t c = 0; c < columns; ++c) {
        (*list)[static_cast<size_t>(b * row + c)] = read(b * down + (column + c) * across);
      }
    }
  }

  // Rounds `columns` up to whole panels.
  static int64_t whole(int32_t columns) { return (columns + kPanelColumns - 1) / kPanelColumns * kPanelColumns; }

  // `digits` are those of x, or NULL. Computes the columns from `column` on: one panel, or kWidest columns for one row
  // with digits.
  void run(const ep_launch& launch, const float* x, const float* sums, const DigitGroup* digits, int64_t column,
           int32_t columns, Room* room) const {
    WeightPanel panel{address_of(launch.operands[weight_at()]) + column / kPanelColumns * panel_bytes(),
                      panel_bytes(),
                      bits_of(dtype_),
                      offset_,
                      depth_,
                      block_,
                      nullptr,
                      whole(columns),
                      nullptr,
                      whole(columns)};
    const auto floats = [&](int32_t at) { return reinterpret_cast<const float*>(address_of(launch.operands[at])); };
    const ep_operand_desc& scale = desc_.operands[numbers_.weight_scale];
    if (columns == whole(columns) && scale.dims[1] != 1 && scale.strides[1] == 1) {
      panel.scale = floats(numbers_.weight_scale) + column;
      panel.scale_row = scale.dims[0] == 1 ? 0 : scale.strides[0];
    } else {
      const float* from = floats(numbers_.weight_scale);
      spread(numbers_.weight_scale, column, columns, &room->scales, [&](int64_t at) { return from[at]; });
      panel.scale = room->scales.data();
    }
    if (numbers_.weight_zero >= 0) {
      const char* from = address_of(launch.operands[numbers_.weight_zero]);
      spread(numbers_.weight_zero, column, columns, &room->zeros,
             [&](int64_t at) { return static_cast<float>(integer_at(from, at, dtype_)); });
      panel.zero = room->zeros.data();
    }
    float bias[kWidest] = {};
    if (numbers_.bias >= 0) {
      const int64_t step = desc_.operands[numbers_.bias].dims[1] == 1 ? 0 : desc_.operands[numbers_.bias].strides[1];
      for (int32_t c = 0; c < columns; ++c) bias[c] = floats(numbers_.bias)[(column + c) * step];
    }
    const int64_t dst_row = desc_.operands[0].strides[0];
    float* dst = reinterpret_cast<float*>(address_of(launch.operands[0])) + column;
    if (digits != nullptr) {
      panel.depth = padded_;
      return digits_.few(panel, digits, groups(), sums, static_cast<int32_t>(rows_), dst, dst_row, bias, columns);
    }
    if (few_) {
      return kernels_.few(panel, x, padded_, sums, static_cast<int32_t>(rows_), dst, dst_row, bias, columns);
    }
    for (int64_t row = 0; row < rows_; ++row) std::copy_n(bias, columns, dst + row * dst_row);
    for (int64_t k = 0; k < depth_; k += kChunk) {
      const int64_t end = std::min(k + kChunk, depth_);
      kernels_.reals(panel, k, end, room->reals.data());
      kernels_.many(x + k, padded_, room->reals.data(), end - k, static_cast<int32_t>(rows_), dst, dst_row, columns);
    }
  }

  const ep_primitive_desc desc_;
  const NumberOperands numbers_;
  const WeightKernels& kernels_;
  const DigitKernels digits_;
  int64_t rows_, columns_, depth_, padded_, panels_, block_, blocks_;
  int32_t dtype_, offset_;
  bool few_;
  bool splits_;
};

}  // namespace

Refusal QuantisedWeights::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info&) {
  if (is_dynamic(desc)) return Refusal::because("products by quantised weights need static dims");
  if (desc.epilogue_count != 0) return Refusal::because("%u epilogues of quantised operands", desc.epilogue_count);
  const NumberOperands numbers(desc);
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* weight = operand(desc, EP_ROLE_SRC_B);
  const ep_operand_desc& dst = desc.operands[0];
  if (src == nullptr || weight == nullptr || dst.role != EP_ROLE_DST) return Refusal::because("an operand is missing");
  if (src->dtype != EP_DTYPE_f32 || dst.dtype != EP_DTYPE_f32) {
    return Refusal::because("%s to %s, not f32 to f32", dtype_name(src->dtype), dtype_name(dst.dtype));
  }
  if (weight->dtype != EP_DTYPE_i8 && weight->dtype != EP_DTYPE_u8 && weight->dtype != EP_DTYPE_i4 &&
      weight->dtype != EP_DTYPE_u4) {
    return Refusal::because("a matrix of %s", dtype_name(weight->dtype));
  }
  if ((weight->flags & EP_OPERAND_FLAG_CONSTANT) == 0) return Refusal::because("the matrix is not constant");
  if (dst.rank != 2) return Refusal::because("rank %d", dst.rank);
  if (numbers.weight_scale < 0 || desc.operands[numbers.weight_scale].dtype != EP_DTYPE_f32) {
    return Refusal::because("no scale of f32");
  }
  if (dst.dims[1] != 1 && dst.strides[1] != 1) return Refusal::because("the columns of the result are not contiguous");
  const ep_quantisation& how = desc.attributes.matmul.weight;
  const bool blocks = how.block[0] != 0;
  if (blocks ? how.axes != 3 || how.block_axis != 0 || how.block[1] > 1 || how.block[0] % 8 != 0
             : (how.axes & 1) != 0) {
    return Refusal::because("scales along axes 0x%x in blocks of %d and %d", how.axes, how.block[0], how.block[1]);
  }
  if (numbers.bias >= 0) {
    const ep_operand_desc& bias = desc.operands[numbers.bias];
    if (bias.dims[0] != 1 && bias.strides[0] != 0) return Refusal::because("a bias that is not one number per column");
  }
  return {};
}

Refusal QuantisedWeights::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                               ep_primitive_info& info) {
  auto* made = make_primitive<Weights>(device, device, desc);
  info.pack_operand = 1 + static_cast<uint32_t>(made->weight_at());
  info.pack_bytes = static_cast<uint64_t>(made->packed_bytes());
  info.pack_layout = 0x666f7572;  // "four"
  *out = made;
  return {};
}

}  // namespace tenon::provider::cpu
