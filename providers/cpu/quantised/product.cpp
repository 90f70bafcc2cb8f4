// matmul and convolution of bytes by bytes, summed in i32. The zero points are subtracted from the sums: for stored
// values a and w, sum (a - za)(w - zw) = sum a w - za sum w - zw sum a + terms za zw. A convolution reads the pixels of
// each tap in place, and za where a tap lies outside the image. Images with few channels, or with channels that are not
// contiguous, are first copied into a frame of za; the taps of a kernel row are then one tap with more channels.
#include "providers/cpu/quantised/product.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "providers/cpu/quantised/depth_tile.h"
#include "providers/cpu/quantised/numbers.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t kGroupBytes = 256 * 1024;  // bytes of the panels that several blocks read, one block after the other

int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class T>
T read(const ep_launch& launch, int32_t operand, int64_t at = 0) {
  T value;
  std::memcpy(&value, address_of(launch.operands[operand]) + at * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

// Reads an 8-bit integer.
int32_t read_byte(const ep_launch& launch, int32_t operand, int64_t at, bool is_signed) {
  return is_signed ? read<int8_t>(launch, operand, at) : read<uint8_t>(launch, operand, at);
}

DotResult result_of(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_i32: return DotResult::i32;
    case EP_DTYPE_f32: return DotResult::f32;
    case EP_DTYPE_u8: return DotResult::u8;
    default: return DotResult::i8;
  }
}

// The stride along `axis` of a scale or zero point; 0 if one number serves all.
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
        joined_(framed_ && product.dilation[1] == 1 && !product.depthwise),
        direct_(stores_directly(product)),
        one_step_(!framed_ && has_one_step(product)),
        panels_(product, joined_),
        kernel_(dot_kernel(on.simd)),
        depth_kernel_(depth_kernel(on.simd)),
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
    sets_ = batch.weight == 0 && !batch.groups ? 1 : batch.count;
    terms_ = panels_.taps * (product.depthwise ? panels_.groups * 4 : panels_.depth);
    if (product.depthwise) find_columns();
    place_parts();
  }

  bool packed() const { return packed_; }
  int32_t weight() const { return weight_; }
  uint64_t workspace(const ep_shape*) const override { return static_cast<uint64_t>(bytes_); }
  bool has_workspace() const override { return true; }

  int64_t packed_bytes() const { return sets_ == 1 ? panels_.bytes() : sets_ * aligned(panels_.bytes()); }
  // An id of the packed layout. The layout depends on these numbers.
  uint64_t layout() const {
    const auto number = [](int64_t n) { return static_cast<uint64_t>(n); };
    return (uint64_t{0x62797465} << 32) + (number(sets_) << 17) +  // "byte"
           (product_.depthwise ? uint64_t{1} << 16 : 0) + number(product_.depthwise ? 0 : panels_.depth);
  }

  ep_status pack(char* dst, const char* src, ep_error**) override {
    for (int64_t set = 0; set < sets_; ++set) {
      panels_.pack(dst + set * aligned(panels_.bytes()), src + set * batch_.weight, product_, flips_weight_);
    }
    return EP_STATUS_OK;
  }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    if (launch.workspace.memory == nullptr) {
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "The launch of a product of bytes has no workspace.");
    }
    const WideLease lease(device->threads, nanoseconds());
    Run run{launch, address_of(launch.workspace)};
    run.src_zero = zero_of_src(launch);
    run.dst_zero = numbers_.dst_zero < 0 ? 0 : read_byte(launch, numbers_.dst_zero, 0, result_ == DotResult::i8);
    run.weights = packed_ ? address_of(launch.operands[weight_]) : run.room + weights_at_;
    const auto on_all = [&](int64_t work, const auto& body) { run_parts(lease.width(), work, body); };
    if (!packed_) on_all(sets_ * panels_.bytes(), [&](int32_t part, int32_t parts) { pack_sets(run, part, parts); });
    fill_numbers(run);
    if (framed_) on_all(frame_bytes() / 4, [&](int32_t part, int32_t parts) { fill_frame(run, part, parts); });
    on_all(nanoseconds(), [&](int32_t part, int32_t parts) {
      product_.depthwise ? run_lines(run, part, parts) : run_units(run, part, parts);
    });
    if (!direct_) on_all(pixels_ * product_.out, [&](int32_t part, int32_t parts) { store(run, part, parts); });
    return EP_STATUS_OK;
  }

 private:
  // The arguments of one launch.
  struct Run {
    const ep_launch& launch;
    char* room;
    const char* weights = nullptr;
    int32_t src_zero = 0;  // the zero point of the bytes that the kernel reads
    int32_t dst_zero = 0;
    bool row_sums = false;  // true: a zero point of a weight is not 0
  };

  static bool wants_frame(const ByteProduct& product) {
    const bool apart = product.in != 1 && product.src_strides[1] != 1;
    return apart || product.joins_taps();
  }
  // True if each pixel of DST belongs to one pixel of SRC, and all pixels are equally spaced.
  static bool has_one_step(const ByteProduct& p) {
    const int64_t step = p.src_strides[3];
    bool same = p.taps() == 1;
    for (int i = 0; i < 2; ++i) same = same && p.stride[i] == 1 && p.pad[i] == 0 && p.src_size[i] == p.dst_size[i];
    return same && (p.src_size[0] == 1 || p.src_strides[2] == step * p.src_size[1]) &&
           (p.images == 1 || p.src_strides[0] == step * p.pixels());
  }
  // True if results of adjacent pixels are equally spaced and channels are contiguous.
  static bool stores_directly(const ByteProduct& p) {
    const int64_t row = p.dst_strides[3];
    return (p.out == 1 || p.dst_strides[1] == 1) && (p.dst_size[0] == 1 || p.dst_strides[2] == row * p.dst_size[1]) &&
           (p.images == 1 || p.dst_strides[0] == row * p.pixels());
  }

  int64_t frame_bytes() const { return batch_.count * product_.images * frame_[0] * frame_[1] * product_.in + 64; }
  int64_t nanoseconds() const { return batch_.count * pixels_ * panels_.taps * panels_.groups * columns_ / 50; }
  // True batches share the numbers of their columns; groups have their own.
  int64_t number_sets() const { return batch_.groups ? sets_ : 1; }
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
    zeros_at_ = place(number_sets() * columns_ * 4);
    factor_at_ = place(number_sets() * columns_ * 4);
    bias_at_ = place(number_sets() * columns_ * 4);
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

  // The first column of a set's numbers.
  int64_t number_set(int64_t set) const { return batch_.groups ? set * columns_ : 0; }

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
    for (int64_t to = 0; to < number_sets() * columns_; ++to) {
      const int64_t column = to % columns_, c = to / columns_ * product_.out + column;
      const bool there = column < product_.out;
      const float weight =
          there && numbers_.weight_scale >= 0 ? read<float>(launch, numbers_.weight_scale, c * scale_step) : 1;
      const float addend = there && numbers_.bias >= 0 ? read<float>(launch, numbers_.bias, c * bias_step) : 0;
      factor[to] = src * weight / dst;
      bias[to] = addend / dst;
      zeros[to] = there && numbers_.weight_zero >= 0
                      ? read_byte(launch, numbers_.weight_zero, c * zero_step, !flips_weight_)
                      : 0;
      if (flips_weight_) zeros[to] -= 128;
      run.row_sums = run.row_sums || zeros[to] != 0;
    }
    const auto terms = static_cast<int32_t>(terms_);
    for (int64_t set = 0; set < sets_; ++set) {
      const int32_t* sums = panels_.sums(packed_set(run, set));
      for (int64_t c = 0; c < columns_; ++c) {
        added[set * columns_ + c] = run.src_zero * (terms * zeros[number_set(set) + c] - sums[c]);
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
      if (p.src_strides[1] == 1) {
        for (int64_t x = first; x < end; ++x) std::memcpy(to + x * p.in, from + x * p.src_strides[3], p.in);
        continue;
      }
      for (int64_t c = 0; c < p.in; ++c) {
        const char* one = from + c * p.src_strides[1];
        for (int64_t x = first; x < end; ++x) to[x * p.in + c] = one[x * p.src_strides[3]];
      }
    }
  }

  // Finds the addresses of the taps of `rows` pixels starting at `pixel`.
  void find_taps(const Run& run, int64_t batch, int64_t pixel, int32_t rows, const uint8_t** taps) const {
    const ByteProduct& p = product_;
    const auto* src = reinterpret_cast<const uint8_t*>(address_of(run.launch.operands[src_])) + batch * batch_.src;
    const auto* frame = reinterpret_cast<const uint8_t*>(run.room + frame_at_);
    int64_t x = pixel % p.dst_size[1], y = pixel / p.dst_size[1] % p.dst_size[0], image = pixel / p.pixels();
    if (one_step_) {
      for (int32_t row = 0; row < rows; ++row) taps[row] = src + (pixel + row) * p.src_strides[3];
      return;
    }
    for (int32_t row = 0; row < rows; ++row) {
      if (framed_) {
        const int64_t line = (batch * p.images + image) * frame_[0] + y * p.stride[0];
        find_in_frame(frame + (line * frame_[1] + x * p.stride[1]) * p.in, rows, taps + row);
      } else {
        find_in_image(run, src + image * p.src_strides[0], y * p.stride[0] - p.pad[0], x * p.stride[1] - p.pad[1], rows,
                      taps + row);
      }
      if (++x < p.dst_size[1]) continue;
      x = 0;
      if (++y < p.dst_size[0]) continue;
      y = 0;
      ++image;
    }
  }

  void find_in_frame(const uint8_t* first, int32_t rows, const uint8_t** to) const {
    const ByteProduct& p = product_;
    const int64_t columns = joined_ ? 1 : p.kernel[1];
    for (int64_t down = 0; down < p.kernel[0]; ++down) {
      for (int64_t right = 0; right < columns; ++right, to += rows) {
        *to = first + (down * p.dilation[0] * frame_[1] + right * p.dilation[1]) * p.in;
      }
    }
  }

  void find_in_image(const Run& run, const uint8_t* image, int64_t top, int64_t left, int32_t rows,
                     const uint8_t** to) const {
    const ByteProduct& p = product_;
    const auto* outside = reinterpret_cast<const uint8_t*>(run.room + outside_at_);
    for (int64_t down = 0; down < p.kernel[0]; ++down) {
      const int64_t at_y = top + down * p.dilation[0];
      const bool in_lines = static_cast<uint64_t>(at_y) < static_cast<uint64_t>(p.src_size[0]);
      const uint8_t* line = image + at_y * p.src_strides[2];
      for (int64_t right = 0; right < p.kernel[1]; ++right, to += rows) {
        const int64_t at_x = left + right * p.dilation[1];
        const bool inside = in_lines && static_cast<uint64_t>(at_x) < static_cast<uint64_t>(p.src_size[1]);
        *to = inside ? line + at_x * p.src_strides[3] : outside;
      }
    }
  }

  // A unit is a block of pixels times a group of panels.
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
    for (int64_t panel = first_panel; panel < std::min(first_panel + group_, panels_.count); ++panel) {
      tile.weights = set_results(run, &tile, batch, panel, pixel);
      kernel_(tile);
    }
  }

  // Sets the destination and the numbers for a panel at a pixel. Returns the weights of the panel.
  const int8_t* set_results(const Run& run, DotResults* to, int64_t batch, int64_t panel, int64_t pixel) const {
    const int64_t column = panel * kDotColumns, set = sets_ == 1 ? 0 : batch, number = number_set(set) + column;
    to->columns = static_cast<int32_t>(std::min<int64_t>(kDotColumns, product_.out - column));
    to->added = reinterpret_cast<const int32_t*>(run.room + added_at_) + set * columns_ + column;
    to->weight_zero = run.row_sums ? reinterpret_cast<const int32_t*>(run.room + zeros_at_) + number : nullptr;
    to->result = result_;
    to->factor = reinterpret_cast<const float*>(run.room + factor_at_) + number;
    to->bias = reinterpret_cast<const float*>(run.room + bias_at_) + number;
    to->zero_point = run.dst_zero;
    to->dst_row = direct_ ? product_.dst_strides[3] : product_.out;
    char* dst = direct_ ? address_of(run.launch.operands[0]) + batch * batch_.dst * result_bytes()
                        : run.room + results_at_ + batch * pixels_ * product_.out * result_bytes();
    to->dst = dst + (pixel * to->dst_row + column) * result_bytes();
    return reinterpret_cast<const int8_t*>(packed_set(run, set)) + panel * panels_.panel_bytes();
  }

  // --- depthwise ---

  // Computes which kernel column a pixel of a tile reads at a column of SRC.
  void find_columns() {
    const ByteProduct& p = product_;
    src_columns_ = (kDepthPixels - 1) * p.stride[1] + (p.kernel[1] - 1) * p.dilation[1] + 1;
    tap_of_column_.assign(static_cast<size_t>(src_columns_ * kDepthPixels), -1);
    for (int64_t pixel = 0; pixel < kDepthPixels; ++pixel) {
      for (int64_t tap = 0; tap < p.kernel[1]; ++tap) {
        const int64_t column = pixel * p.stride[1] + tap * p.dilation[1];
        tap_of_column_[static_cast<size_t>(column * kDepthPixels + pixel)] = static_cast<int32_t>(tap);
      }
    }
  }

  // A unit is a row of results.
  void run_lines(const Run& run, int32_t part, int32_t parts) const {
    const int64_t wide = product_.dst_size[1], all = product_.images * product_.dst_size[0];
    std::vector<const uint8_t*> src(static_cast<size_t>(src_columns_ * panels_.groups * 4));
    DepthTile tile;
    tile.src = src.data();
    tile.taps = tap_of_column_.data();
    tile.quads = static_cast<int32_t>(panels_.groups);
    tile.flips = flips_src_;
    for (int64_t line = all * part / parts; line < all * (part + 1) / parts; ++line) {
      for (int64_t x = 0; x < wide; x += tile.pixels) {
        // The last tile of a row moves back so that it is full.
        if (wide >= kDepthPixels) x = std::min(x, wide - kDepthPixels);
        tile.pixels = wide >= kDepthPixels ? kDepthPixels : 1;
        tile.src_columns = static_cast<int32_t>(src_columns_ - (kDepthPixels - tile.pixels) * product_.stride[1]);
        find_lines(run, line, x, tile.src_columns, src.data());
        for (int64_t panel = 0; panel < panels_.count; ++panel) {
          tile.channel = panel * kDotColumns;
          tile.weights = set_results(run, &tile, 0, panel, line * wide + x);
          depth_kernel_(tile);
        }
      }
    }
  }

  // Finds the pixels of SRC that a tile reads, for each column from the kernel's first row down.
  void find_lines(const Run& run, int64_t line, int64_t x, int64_t columns, const uint8_t** to) const {
    const ByteProduct& p = product_;
    const int64_t image = line / p.dst_size[0], top = line % p.dst_size[0] * p.stride[0];
    const auto* outside = reinterpret_cast<const uint8_t*>(run.room + outside_at_);
    const int64_t pad[2] = {framed_ ? 0 : p.pad[0], framed_ ? 0 : p.pad[1]};
    const int64_t size[2] = {framed_ ? frame_[0] : p.src_size[0], framed_ ? frame_[1] : p.src_size[1]};
    const int64_t down = framed_ ? frame_[1] * p.in : p.src_strides[2], right = framed_ ? p.in : p.src_strides[3];
    const char* src = framed_ ? run.room + frame_at_ + image * frame_[0] * down
                              : address_of(run.launch.operands[src_]) + image * p.src_strides[0];
    const int64_t lines = panels_.groups * 4, left = x * p.stride[1] - pad[1];
    for (int64_t k = 0; k < lines; ++k) {
      const int64_t at_y = top + k * p.dilation[0] - pad[0];
      const bool in_lines = k < p.kernel[0] && at_y >= 0 && at_y < size[0];
      const auto* line_of_src = reinterpret_cast<const uint8_t*>(src + at_y * down);
      for (int64_t column = 0; column < columns; ++column) {
        const int64_t at_x = left + column;
        to[column * lines + k] = in_lines && at_x >= 0 && at_x < size[1] ? line_of_src + at_x * right : outside;
      }
    }
  }

  // Copies from the workspace to DST, whose channels are not contiguous.
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
  const bool framed_, joined_, direct_, one_step_;
  const Panels panels_;
  const DotKernel kernel_;
  const DepthKernel depth_kernel_;
  const DotResult result_;
  const bool flips_src_, flips_weight_, packed_;
  int64_t frame_[2], pixels_, blocks_, group_, columns_, sets_, terms_, src_columns_ = 0;
  std::vector<int32_t> tap_of_column_;  // laid out like DepthTile::taps
  int64_t bytes_ = 0, weights_at_, frame_at_, outside_at_, added_at_, zeros_at_, factor_at_, bias_at_, results_at_;
};

}  // namespace

Refusal make_product(ep_device& device, const ep_primitive_desc& desc, const ByteProduct& product, const Batch& batch,
                     int32_t weight_role, int32_t column_axis, ep_primitive** out, ep_primitive_info& info) {
  auto* made = make_primitive<Product>(device, device, desc, product, batch, weight_role, column_axis);
  if (made->packed()) {
    info.pack_operand = 1 + static_cast<uint32_t>(made->weight());
    info.pack_bytes = static_cast<uint64_t>(made->packed_bytes());
    info.pack_layout = made->layout();
  }
  *out = made;
  return {};
}

}  // namespace tenon::provider::cpu
