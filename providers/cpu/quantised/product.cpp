// matmul and convolution of bytes by bytes, summed in i32. The zero points are taken out of the sums: with a and w as
// they lie, sum (a - za)(w - zw) = sum a w - za sum w - zw sum a + terms za zw. A convolution reads the pixels of each
// tap where they lie, and za where a tap lies beside the image. Images of few channels, or with channels that do not
// follow each other, are copied into a frame of za first; then the taps of a line are one tap of more channels.
#include "providers/cpu/quantised/product.h"

#include <algorithm>
#include <cstring>

#include "providers/cpu/quantised/quantised.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t kFewChannels = 16;
constexpr int64_t kGroupBytes = 256 * 1024;  // of the panels that several blocks read one after the other

int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class T>
T read(const ep_launch& launch, int32_t operand, int64_t at = 0) {
  T value;
  std::memcpy(&value, address_of(launch.operands[operand]) + at * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

// A number of 8 bits.
int32_t read_byte(const ep_launch& launch, int32_t operand, int64_t at, bool is_signed) {
  return is_signed ? read<int8_t>(launch, operand, at) : read<uint8_t>(launch, operand, at);
}

struct Batch {
  int64_t count = 1, src = 0, weight = 0, dst = 0;  // steps in elements
};

DotResult result_of(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_i32: return DotResult::i32;
    case EP_DTYPE_f32: return DotResult::f32;
    case EP_DTYPE_u8: return DotResult::u8;
    default: return DotResult::i8;
  }
}

// The step along `axis` of a scale or zero point: 0 where one number is for all.
int64_t step_along(const ep_primitive_desc& desc, int32_t index, int32_t axis) {
  if (index < 0) return 0;
  const ep_operand_desc& operand = desc.operands[index];
  return operand.dims[axis] == 1 ? 0 : operand.strides[axis];
}

class Product final : public ep_primitive {
 public:
  Product(const ep_device& on, const ep_primitive_desc& desc, const ByteProduct& product, const Batch& batch,
          int32_t weight_role, int32_t column_axis)
      : desc_(desc),
        product_(product),
        batch_(batch),
        numbers_(desc),
        src_(find_operand(desc, EP_ROLE_SRC)),
        weight_(find_operand(desc, weight_role)),
        column_axis_(column_axis),
        framed_(wants_frame(product)),
        joined_(framed_ && product.dilation[1] == 1),
        direct_(stores_directly(product)),
        panels_(product, joined_),
        kernel_(dot_kernel(on.simd)),
        result_(result_of(desc.operands[0].dtype)),
        flips_src_(desc.operands[src_].dtype == EP_DTYPE_i8),
        flips_weight_(desc.operands[weight_].dtype == EP_DTYPE_u8),
        packed_((desc.operands[weight_].flags & EP_OPERAND_FLAG_CONSTANT) != 0) {
    for (int i = 0; i < 2; ++i) {
      frame_[i] = (product.dst_size[i] - 1) * product.stride[i] + (product.kernel[i] - 1) * product.dilation[i] + 1;
    }
    pixels_ = product.images * product.pixels();
    blocks_ = divided_up(pixels_, kDotRows);
    const int64_t few = std::max<int64_t>(panels_.count * blocks_ * batch.count / 16, 1);
    group_ = std::clamp<int64_t>(kGroupBytes / panels_.panel_bytes(), 1, std::min(few, panels_.count));
    columns_ = panels_.count * kDotColumns;
    sets_ = batch.weight == 0 ? 1 : batch.count;
    place_parts();
  }

  const Panels& panels() const { return panels_; }
  bool packed() const { return packed_; }
  int32_t weight() const { return weight_; }
  uint64_t workspace(const ep_shape*) const override { return static_cast<uint64_t>(bytes_); }
  bool has_workspace() const override { return true; }

  ep_status pack(char* dst, const char* src, ep_error**) override {
    panels_.pack(dst, src, product_, flips_weight_);
    return EP_STATUS_OK;
  }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    if (launch.workspace.memory == nullptr) {
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "The launch of a product of bytes has no workspace.");
    }
    const WideLease lease(device->threads, nanoseconds());
    Run run{launch, address_of(launch.workspace)};
    run.src_zero = zero_of_src(launch);
    run.weights = packed_ ? address_of(launch.operands[weight_]) : run.room + weights_at_;
    const auto on_all = [&](int64_t work, const auto& body) {
      lease.width() == 1 ? body(0, 1) : run_parts(lease.width(), work, body);
    };
    if (!packed_) on_all(sets_ * panels_.bytes(), [&](int32_t part, int32_t parts) { pack_sets(run, part, parts); });
    fill_numbers(run);
    if (framed_) on_all(frame_bytes() / 4, [&](int32_t part, int32_t parts) { fill_frame(run, part, parts); });
    on_all(nanoseconds(), [&](int32_t part, int32_t parts) { run_units(run, part, parts); });
    if (!direct_) on_all(pixels_ * product_.out, [&](int32_t part, int32_t parts) { store(run, part, parts); });
    return EP_STATUS_OK;
  }

 private:
  // A launch.
  struct Run {
    const ep_launch& launch;
    char* room;
    const char* weights = nullptr;
    int32_t src_zero = 0;   // of the bytes that the kernel reads
    bool row_sums = false;  // some weight's zero point is not 0
  };

  static bool wants_frame(const ByteProduct& product) {
    const bool apart = product.in != 1 && product.src_strides[1] != 1;
    return apart || (product.in < kFewChannels && product.kernel[1] > 1 && product.dilation[1] == 1);
  }
  // Results of neighbouring pixels have one step, and channels follow each other.
  static bool stores_directly(const ByteProduct& p) {
    const int64_t row = p.dst_strides[3];
    return (p.out == 1 || p.dst_strides[1] == 1) && (p.dst_size[0] == 1 || p.dst_strides[2] == row * p.dst_size[1]) &&
           (p.images == 1 || p.dst_strides[0] == row * p.pixels());
  }

  int64_t frame_bytes() const { return batch_.count * product_.images * frame_[0] * frame_[1] * product_.in + 64; }
  int64_t nanoseconds() const { return batch_.count * pixels_ * panels_.taps * panels_.groups * columns_ / 50; }
  int64_t result_bytes() const { return dtype_size(desc_.operands[0].dtype); }

  void place_parts() {
    const auto place = [&](int64_t bytes) {
      const int64_t at = bytes_;
      bytes_ += aligned(bytes);
      return at;
    };
    weights_at_ = place(packed_ ? 0 : sets_ * aligned(panels_.bytes()));
    frame_at_ = place(framed_ ? frame_bytes() : 0);
    outside_at_ = place(panels_.depth + 64);
    added_at_ = place(sets_ * columns_ * 4);
    zeros_at_ = place(columns_ * 4);
    factor_at_ = place(columns_ * 4);
    bias_at_ = place(columns_ * 4);
    results_at_ = place(direct_ ? 0 : batch_.count * pixels_ * product_.out * result_bytes());
  }

  const char* packed_set(const Run& run, int64_t batch) const {
    return run.weights + (sets_ == 1 ? 0 : batch * aligned(panels_.bytes()));
  }

  void pack_sets(const Run& run, int32_t part, int32_t parts) const {
    const char* src = address_of(run.launch.operands[weight_]);
    for (int64_t set = sets_ * part / parts; set < sets_ * (part + 1) / parts; ++set) {
      panels_.pack(run.room + weights_at_ + set * aligned(panels_.bytes()), src + set * batch_.weight, product_,
                   flips_weight_);
    }
  }

  int32_t zero_of_src(const ep_launch& launch) const {
    const int32_t zero = numbers_.src_zero < 0 ? 0 : read_byte(launch, numbers_.src_zero, 0, flips_src_);
    return flips_src_ ? zero + 128 : zero;
  }

  void fill_numbers(Run& run) const {
    const ep_launch& launch = run.launch;
    auto* added = reinterpret_cast<int32_t*>(run.room + added_at_);
    auto* zeros = reinterpret_cast<int32_t*>(run.room + zeros_at_);
    auto* factor = reinterpret_cast<float*>(run.room + factor_at_);
    auto* bias = reinterpret_cast<float*>(run.room + bias_at_);
    std::memset(run.room + outside_at_, run.src_zero ^ (flips_src_ ? 0x80 : 0),
                static_cast<size_t>(panels_.depth + 64));
    const float src = numbers_.src_scale < 0 ? 1.0f : read<float>(launch, numbers_.src_scale);
    const float dst = numbers_.dst_scale < 0 ? 1.0f : read<float>(launch, numbers_.dst_scale);
    const int64_t scale_step = step_along(desc_, numbers_.weight_scale, column_axis_);
    const int64_t zero_step = step_along(desc_, numbers_.weight_zero, column_axis_);
    const int32_t bias_axis = column_axis_ == 0 ? 0 : desc_.operands[0].rank - 1;
    const int64_t bias_step = step_along(desc_, numbers_.bias, bias_axis);
    for (int64_t c = 0; c < columns_; ++c) {
      const bool there = c < product_.out;
      const float weight =
          there && numbers_.weight_scale >= 0 ? read<float>(launch, numbers_.weight_scale, c * scale_step) : 1;
      const float addend = there && numbers_.bias >= 0 ? read<float>(launch, numbers_.bias, c * bias_step) : 0;
      factor[c] = src * weight / dst;
      bias[c] = addend / dst;
      zeros[c] = there && numbers_.weight_zero >= 0
                     ? read_byte(launch, numbers_.weight_zero, c * zero_step, !flips_weight_)
                     : 0;
      if (flips_weight_) zeros[c] -= 128;
      run.row_sums = run.row_sums || zeros[c] != 0;
    }
    const auto terms = static_cast<int32_t>(panels_.taps * panels_.depth);
    for (int64_t set = 0; set < sets_; ++set) {
      const int32_t* sums = panels_.sums(packed_set(run, set));
      for (int64_t c = 0; c < columns_; ++c) {
        added[set * columns_ + c] = run.src_zero * (terms * zeros[c] - sums[c]);
      }
    }
  }

  void fill_frame(const Run& run, int32_t part, int32_t parts) const {
    const ByteProduct& p = product_;
    const char* src = address_of(run.launch.operands[src_]);
    const int outside = run.room[outside_at_];
    const int64_t lines = batch_.count * p.images * frame_[0], row = frame_[1] * p.in;
    for (int64_t line = lines * part / parts; line < lines * (part + 1) / parts; ++line) {
      const int64_t image = line / frame_[0] % p.images, batch = line / frame_[0] / p.images;
      const int64_t y = line % frame_[0] - p.pad[0];
      char* to = run.room + frame_at_ + line * row;
      std::memset(to, outside, static_cast<size_t>(row));
      if (y < 0 || y >= p.src_size[0]) continue;
      const char* from = src + batch * batch_.src + image * p.src_strides[0] + y * p.src_strides[2];
      const int64_t first = std::max<int64_t>(-p.pad[1], 0), end = std::min(p.src_size[1], frame_[1] - p.pad[1]);
      to += p.pad[1] * p.in;
      if (p.src_strides[1] == 1 && p.src_strides[3] == p.in) {
        if (end > first) std::memcpy(to + first * p.in, from + first * p.in, static_cast<size_t>((end - first) * p.in));
        continue;
      }
      for (int64_t c = 0; c < p.in; ++c) {
        const char* one = from + c * p.src_strides[1];
        for (int64_t x = first; x < end; ++x) to[x * p.in + c] = one[x * p.src_strides[3]];
      }
    }
  }

  // Where the taps of `rows` pixels from `pixel` on lie.
  void find_taps(const Run& run, int64_t batch, int64_t pixel, int32_t rows, const uint8_t** taps) const {
    const ByteProduct& p = product_;
    const auto* outside = reinterpret_cast<const uint8_t*>(run.room + outside_at_);
    const auto* src = reinterpret_cast<const uint8_t*>(address_of(run.launch.operands[src_])) + batch * batch_.src;
    const auto* frame = reinterpret_cast<const uint8_t*>(run.room + frame_at_);
    for (int32_t row = 0; row < rows; ++row, ++pixel) {
      const int64_t x = pixel % p.dst_size[1], y = pixel / p.dst_size[1] % p.dst_size[0];
      const int64_t image = pixel / p.pixels();
      const uint8_t** to = taps + row;
      if (framed_) {
        const int64_t line = (batch * p.images + image) * frame_[0] + y * p.stride[0];
        const int64_t columns = joined_ ? 1 : p.kernel[1];
        for (int64_t tap = 0; tap < panels_.taps; ++tap, to += rows) {
          const int64_t down = tap / columns * p.dilation[0], right = tap % columns * p.dilation[1];
          *to = frame + ((line + down) * frame_[1] + x * p.stride[1] + right) * p.in;
        }
        continue;
      }
      const int64_t top = y * p.stride[0] - p.pad[0], left = x * p.stride[1] - p.pad[1];
      const uint8_t* origin = src + image * p.src_strides[0];
      for (int64_t down = 0; down < p.kernel[0]; ++down) {
        const int64_t at_y = top + down * p.dilation[0];
        const bool in_lines = static_cast<uint64_t>(at_y) < static_cast<uint64_t>(p.src_size[0]);
        for (int64_t right = 0; right < p.kernel[1]; ++right, to += rows) {
          const int64_t at_x = left + right * p.dilation[1];
          const bool inside = in_lines && static_cast<uint64_t>(at_x) < static_cast<uint64_t>(p.src_size[1]);
          *to = inside ? origin + at_y * p.src_strides[2] + at_x * p.src_strides[3] : outside;
        }
      }
    }
  }

  // A unit is a block of pixels by a group of panels.
  void run_units(const Run& run, int32_t part, int32_t parts) const {
    std::vector<const uint8_t*> taps(static_cast<size_t>(panels_.taps * kDotRows));
    const int64_t groups = divided_up(panels_.count, group_), all = batch_.count * groups * blocks_;
    for (int64_t unit = all * part / parts; unit < all * (part + 1) / parts; ++unit) {
      const int64_t batch = unit / (groups * blocks_), group = unit / blocks_ % groups;
      run_unit(run, batch, unit % blocks_, group * group_, taps.data());
    }
  }

  void run_unit(const Run& run, int64_t batch, int64_t block, int64_t first_panel, const uint8_t** taps) const {
    const int64_t pixel = pixels_ * block / blocks_;
    const auto rows = static_cast<int32_t>(pixels_ * (block + 1) / blocks_ - pixel);
    find_taps(run, batch, pixel, rows, taps);
    int32_t sums[kDotRows] = {};
    for (int64_t tap = 0; run.row_sums && tap < panels_.taps; ++tap) {
      for (int32_t row = 0; row < rows; ++row)
        sums[row] += sum_bytes(taps[tap * rows + row], panels_.depth, flips_src_);
    }
    DotTile tile;
    tile.src = taps;
    tile.taps = panels_.taps;
    tile.depth = panels_.depth;
    tile.rows = rows;
    tile.flips = flips_src_;
    tile.reads_on = framed_;
    tile.row_sums = sums;
    tile.result = result_;
    tile.zero_point = numbers_.dst_zero < 0 ? 0 : read_byte(run.launch, numbers_.dst_zero, 0, result_ == DotResult::i8);
    char* dst = direct_ ? address_of(run.launch.operands[0]) + batch * batch_.dst * result_bytes()
                        : run.room + results_at_ + batch * pixels_ * product_.out * result_bytes();
    tile.dst_row = direct_ ? product_.dst_strides[3] : product_.out;
    const char* weights = packed_set(run, batch);
    const int64_t set = sets_ == 1 ? 0 : batch;
    for (int64_t panel = first_panel; panel < std::min(first_panel + group_, panels_.count); ++panel) {
      const int64_t column = panel * kDotColumns;
      tile.weights = reinterpret_cast<const int8_t*>(weights) + panel * panels_.panel_bytes();
      tile.columns = static_cast<int32_t>(std::min<int64_t>(kDotColumns, product_.out - column));
      tile.added = reinterpret_cast<const int32_t*>(run.room + added_at_) + set * columns_ + column;
      tile.weight_zero = run.row_sums ? reinterpret_cast<const int32_t*>(run.room + zeros_at_) + column : nullptr;
      tile.factor = reinterpret_cast<const float*>(run.room + factor_at_) + column;
      tile.bias = reinterpret_cast<const float*>(run.room + bias_at_) + column;
      tile.dst = dst + (pixel * tile.dst_row + column) * result_bytes();
      kernel_(tile);
    }
  }

  // From the workspace into DST, whose channels do not follow each other.
  void store(const Run& run, int32_t part, int32_t parts) const {
    const ByteProduct& p = product_;
    const int64_t bytes = result_bytes(), all = batch_.count * pixels_;
    char* dst = address_of(run.launch.operands[0]);
    for (int64_t i = all * part / parts; i < all * (part + 1) / parts; ++i) {
      const int64_t pixel = i % pixels_, x = pixel % p.dst_size[1], y = pixel / p.dst_size[1] % p.dst_size[0];
      const int64_t place = i / pixels_ * batch_.dst + pixel / p.pixels() * p.dst_strides[0] + y * p.dst_strides[2] +
                            x * p.dst_strides[3];
      const char* from = run.room + results_at_ + i * p.out * bytes;
      if (bytes == 1) {
        for (int64_t c = 0; c < p.out; ++c) dst[place + c * p.dst_strides[1]] = from[c];
        continue;
      }
      for (int64_t c = 0; c < p.out; ++c) std::memcpy(dst + (place + c * p.dst_strides[1]) * 4, from + c * 4, 4);
    }
  }

  const ep_primitive_desc desc_;
  const ByteProduct product_;
  const Batch batch_;
  const NumberOperands numbers_;
  const int32_t src_, weight_, column_axis_;
  const bool framed_, joined_, direct_;
  const Panels panels_;
  const DotKernel kernel_;
  const DotResult result_;
  const bool flips_src_, flips_weight_, packed_;
  int64_t frame_[2], pixels_, blocks_, group_, columns_, sets_;
  int64_t bytes_ = 0, weights_at_, frame_at_, outside_at_, added_at_, zeros_at_, factor_at_, bias_at_, results_at_;
};

bool is_byte(const ep_operand_desc& operand) { return operand.dtype == EP_DTYPE_i8 || operand.dtype == EP_DTYPE_u8; }

// Strides that count: of an axis of length 1 any stride will do.
int64_t stride_of(const ep_operand_desc& operand, int32_t axis) {
  return operand.dims[axis] == 1 ? 0 : operand.strides[axis];
}

Refusal why_not_bytes(const ep_primitive_desc& desc, int32_t weight_role) {
  if (is_dynamic(desc)) return Refusal::because("products of bytes are made for static dims");
  if (desc.epilogue_count != 0) return Refusal::because("%u epilogues of quantised operands", desc.epilogue_count);
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* weight = operand(desc, weight_role);
  const ep_operand_desc& dst = desc.operands[0];
  if (src == nullptr || weight == nullptr || dst.role != EP_ROLE_DST) return Refusal::because("an operand is missing");
  if (!is_byte(*src) || !is_byte(*weight)) {
    return Refusal::because("%s by %s, not bytes by bytes", dtype_name(src->dtype), dtype_name(weight->dtype));
  }
  if (!is_byte(dst) && dst.dtype != EP_DTYPE_f32 && dst.dtype != EP_DTYPE_i32) {
    return Refusal::because("a result of %s", dtype_name(dst.dtype));
  }
  const NumberOperands numbers(desc);
  if (is_byte(dst) && numbers.dst_scale < 0 && numbers.dst_zero < 0) {
    return Refusal::because("a result of %s that wraps", dtype_name(dst.dtype));
  }
  return why_no_numbers(desc, weight_role);
}

// Sums of that many products of bytes, zero points taken out, fit 32 bits.
bool may_overflow(int64_t terms) { return terms > (int64_t{1} << 31) / (255 * 255); }

Refusal make_product(ep_device& device, const ep_primitive_desc& desc, const ByteProduct& product, const Batch& batch,
                     int32_t weight_role, int32_t column_axis, ep_primitive** out, ep_primitive_info& info) {
  auto* made = make_primitive<Product>(device, device, desc, product, batch, weight_role, column_axis);
  if (made->packed()) {
    info.pack_operand = 1 + static_cast<uint32_t>(made->weight());
    info.pack_bytes = static_cast<uint64_t>(made->panels().bytes());
    info.pack_layout = 0x62797465 + static_cast<uint64_t>(made->panels().depth);  // "byte"
  }
  *out = made;
  return {};
}

}  // namespace

NumberOperands::NumberOperands(const ep_primitive_desc& desc)
    : src_scale(find_operand(desc, EP_ROLE_SRC_SCALE)),
      src_zero(find_operand(desc, EP_ROLE_SRC_ZERO_POINT)),
      weight_scale(find_operand(desc, EP_ROLE_WEIGHT_SCALE)),
      weight_zero(find_operand(desc, EP_ROLE_WEIGHT_ZERO_POINT)),
      dst_scale(find_operand(desc, EP_ROLE_DST_SCALE)),
      dst_zero(find_operand(desc, EP_ROLE_DST_ZERO_POINT)),
      bias(find_operand(desc, EP_ROLE_BIAS)) {}

Refusal why_no_numbers(const ep_primitive_desc& desc, int32_t weight_role) {
  const bool conv = weight_role == EP_ROLE_WEIGHT;
  const ep_quantisation& src = conv ? desc.attributes.convolution.src : desc.attributes.matmul.src;
  const ep_quantisation& weight = conv ? desc.attributes.convolution.weight : desc.attributes.matmul.weight;
  const ep_quantisation& dst = conv ? desc.attributes.convolution.dst : desc.attributes.matmul.dst;
  const uint32_t columns = conv ? 1 : uint32_t{1} << (desc.operands[0].rank - 1);
  if (src.axes != 0 || dst.axes != 0) return Refusal::because("a source or result of several scales");
  if (weight.block[0] != 0 || (weight.axes != 0 && weight.axes != columns)) {
    return Refusal::because("scales of weights along axes 0x%x", weight.axes);
  }
  for (int32_t role : {EP_ROLE_SRC_SCALE, EP_ROLE_WEIGHT_SCALE, EP_ROLE_DST_SCALE, EP_ROLE_BIAS}) {
    const ep_operand_desc* scale = operand(desc, role);
    if (scale != nullptr && scale->dtype != EP_DTYPE_f32)
      return Refusal::because("a scale or bias of %s", dtype_name(scale->dtype));
  }
  return {};
}

void Panels::pack(char* dst, const char* src, const ByteProduct& product, bool flips) const {
  const ByteProduct& p = product;
  std::memset(dst, 0, static_cast<size_t>(bytes()));
  auto* sums = reinterpret_cast<int32_t*>(dst + count * panel_bytes());
  const char flip = flips ? static_cast<char>(0x80) : 0;
  const bool joined = taps != p.taps();
  for (int64_t column = 0; column < p.out; ++column) {
    char* panel = dst + column / kDotColumns * panel_bytes() + column % kDotColumns * 4;
    int32_t sum = 0;
    for (int64_t number = 0; number < p.taps(); ++number) {
      const int64_t y = number / p.kernel[1], x = number % p.kernel[1];
      const char* from = src + column * p.weight_strides[0] + y * p.weight_strides[2] + x * p.weight_strides[3];
      char* tap = panel + (joined ? y : number) * groups * kDotColumns * 4;
      int64_t k = joined ? x * p.in : 0;
      for (int64_t channel = 0; channel < p.in; ++channel, ++k) {
        const auto value = static_cast<int8_t>(from[channel * p.weight_strides[1]] ^ flip);
        tap[k / 4 * (kDotColumns * 4) + k % 4] = static_cast<char>(value);
        sum += value;
      }
    }
    sums[column] = sum;
  }
}

Refusal QuantisedMatmul::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info&) {
  if (Refusal refusal = why_not_bytes(desc, EP_ROLE_SRC_B)) return refusal;
  const ep_operand_desc& dst = desc.operands[0];
  const ep_operand_desc& src = *operand(desc, EP_ROLE_SRC);
  const int32_t rank = dst.rank;
  if (rank < 2 || rank > 3) return Refusal::because("rank %d", rank);
  const int64_t terms = src.dims[rank - 1];
  if (may_overflow(terms)) return Refusal::because("sums of %lld products", static_cast<long long>(terms));
  if (terms != 1 && src.strides[rank - 1] != 1) return Refusal::because("rows whose elements do not follow each other");
  const ep_operand_desc* bias = operand(desc, EP_ROLE_BIAS);
  for (int32_t axis = 0; bias != nullptr && axis < rank - 1; ++axis) {
    if (stride_of(*bias, axis) != 0) return Refusal::because("a bias that is not one number per column");
  }
  return {};
}

Refusal QuantisedMatmul::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                              ep_primitive_info& info) {
  const ep_operand_desc& dst = desc.operands[0];
  const ep_operand_desc& src = *operand(desc, EP_ROLE_SRC);
  const ep_operand_desc& weight = *operand(desc, EP_ROLE_SRC_B);
  const int32_t rank = dst.rank, row = rank - 2, column = rank - 1;
  ByteProduct product;
  product.in = src.dims[column];
  product.out = dst.dims[column];
  product.src_size[1] = product.dst_size[1] = dst.dims[row];
  product.src_strides[1] = 1;
  product.src_strides[3] = stride_of(src, row);
  product.dst_strides[1] = stride_of(dst, column);
  product.dst_strides[3] = dst.dims[row] == 1 ? product.out : dst.strides[row];
  product.weight_strides[0] = stride_of(weight, column);
  product.weight_strides[1] = stride_of(weight, row);
  Batch batch;
  if (rank == 3) batch = {dst.dims[0], stride_of(src, 0), stride_of(weight, 0), stride_of(dst, 0)};
  if (batch.count > 1 && batch.weight != 0 && (weight.flags & EP_OPERAND_FLAG_CONSTANT) != 0) {
    return Refusal::because("a batch of constant matrices");
  }
  return make_product(device, desc, product, batch, EP_ROLE_SRC_B, column, out, info);
}

Refusal QuantisedConvolution::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_convolution_attributes& at = desc.attributes.convolution;
  if (at.transposed != 0) return Refusal::because("a transposed convolution");
  if (at.groups != 1) return Refusal::because("%lld groups", static_cast<long long>(at.groups));
  if (at.spatial_rank > 2) return Refusal::because("%d spatial dims", at.spatial_rank);
  if (Refusal refusal = why_not_bytes(desc, EP_ROLE_WEIGHT)) return refusal;
  const ep_operand_desc& src = *operand(desc, EP_ROLE_SRC);
  const ep_operand_desc& weight = *operand(desc, EP_ROLE_WEIGHT);
  int64_t terms = 1;
  for (int32_t axis = 1; axis < weight.rank; ++axis) terms *= weight.dims[axis];
  if (may_overflow(terms)) return Refusal::because("sums of %lld products", static_cast<long long>(terms));
  for (const ep_operand_desc* moved : {&desc.operands[0], &src}) {
    if (moved->dims[1] == 1 || moved->strides[1] == 1) continue;
    int64_t bytes = dtype_size(moved->dtype);
    for (int32_t axis = 0; axis < moved->rank; ++axis) bytes *= moved->dims[axis];
    info.penalty_bytes += static_cast<uint64_t>(bytes);
  }
  return {};
}

Refusal QuantisedConvolution::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                   ep_primitive_info& info) {
  const ep_convolution_attributes& at = desc.attributes.convolution;
  const ep_operand_desc& dst = desc.operands[0];
  const ep_operand_desc& src = *operand(desc, EP_ROLE_SRC);
  const ep_operand_desc& weight = *operand(desc, EP_ROLE_WEIGHT);
  ByteProduct product;
  product.images = dst.dims[0];
  product.in = src.dims[1];
  product.out = dst.dims[1];
  for (int32_t i = 0; i < 2; ++i) {
    product.src_strides[i] = stride_of(src, i);
    product.dst_strides[i] = stride_of(dst, i);
    product.weight_strides[i] = stride_of(weight, i);
  }
  for (int32_t i = 0; i < at.spatial_rank; ++i) {
    const int32_t to = 2 - at.spatial_rank + i, axis = 2 + i;  // one spatial dim is a line
    product.src_size[to] = src.dims[axis];
    product.dst_size[to] = dst.dims[axis];
    product.kernel[to] = weight.dims[axis];
    product.stride[to] = at.stride[i];
    product.dilation[to] = at.dilation[i];
    product.pad[to] = at.pad_low[i];
    product.src_strides[2 + to] = stride_of(src, axis);
    product.dst_strides[2 + to] = stride_of(dst, axis);
    product.weight_strides[2 + to] = stride_of(weight, axis);
  }
  // The step from pixel to pixel, where there is one pixel per line, is that from line to line.
  if (product.dst_size[1] == 1)
    product.dst_strides[3] = product.dst_size[0] == 1 ? product.dst_strides[0] : product.dst_strides[2];
  if (product.dst_strides[3] == 0) product.dst_strides[3] = product.out;
  return make_product(device, desc, product, {}, EP_ROLE_WEIGHT, 0, out, info);
}

}  // namespace tenon::provider::cpu
