// Transposed convolution with channels last and a stride equal to the kernel size, so taps do not overlap: each tap is
// a product of pixels by channels of DST, whose results are `stride` pixels apart. A tile has pixels of one row of SRC.
#include <algorithm>

#include "providers/cpu/convolution/convolution.h"
#include "providers/cpu/convolution/cut.h"
#include "providers/cpu/convolution/images.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t kPixelsBytes = 256 * 1024;  // bytes of SRC that successive panels read

int64_t divided(int64_t a, int64_t b) { return (a + b - 1) / b; }

class TransposedPrimitive final : public ep_primitive {
 public:
  TransposedPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : images_(desc), kernels_(tile_kernels(on.simd)), finisher_(on, desc) {
    tap_panels_ = divided(images_.out, kernels_.columns);
    panels_ = images_.taps() * tap_panels_;
    lines_ = images_.count * images_.src_size[0];
    // Pixels 4 KiB apart share one set of an L1 cache, which has 8 to 12 lines.
    const int64_t most = images_.in % 1024 == 0 ? std::min<int64_t>(kernels_.rows, 8) : kernels_.rows;
    line_blocks_ = divided(images_.src_size[1], most);
    blocks_ = lines_ * line_blocks_;
    const int64_t block_bytes = most * images_.in * static_cast<int64_t>(sizeof(float));
    chunk_ = std::clamp<int64_t>(kPixelsBytes / block_bytes, 1, std::max<int64_t>(blocks_, 1));
  }

  uint64_t packed_bytes() const { return static_cast<uint64_t>(images_.taps() * tap_floats()) * sizeof(float); }
  uint64_t layout() const { return packed_layout("transposed", kernels_.columns, kernels_.lanes); }

  ep_status pack(char* dst, const char* src, ep_error**) override {
    auto* to = reinterpret_cast<float*>(dst);
    const auto* from = reinterpret_cast<const float*>(src);
    parallel(device->threads, panels_ * images_.in * kernels_.columns / 2, [&](int32_t part, int32_t parts) {
      for (int64_t i = panels_ * part / parts; i < panels_ * (part + 1) / parts; ++i) pack_panel(i, to, from);
    });
    return EP_STATUS_OK;
  }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const int64_t nanoseconds = lines_ * images_.src_size[1] * images_.taps() * images_.out * images_.in / 110;
    const WideLease lease(device->threads, nanoseconds);
    const Finish finish = finisher_.of(launch);
    const auto body = [&](int32_t part, int32_t parts) {
      const int64_t all = blocks_ * panels_;
      run_tiles(launch, finish, all * part / parts, all * (part + 1) / parts);
    };
    run_parts(lease.width(), nanoseconds, body);
    finisher_.end(launch, lease.width());
    return EP_STATUS_OK;
  }

 private:
  static float* floats(const ep_launch& launch, int32_t operand) {
    return reinterpret_cast<float*>(address_of(launch.operands[operand]));
  }

  // Columns of the panel that begins at column `first` of a tap, in whole vectors.
  int64_t width(int64_t first) const {
    return images_.out - first <= kernels_.lanes ? kernels_.lanes : kernels_.columns;
  }
  int64_t tap_floats() const {
    const int64_t last = (tap_panels_ - 1) * kernels_.columns;
    return images_.in * (last + width(last));
  }
  int64_t panel_at(int64_t panel) const {
    return panel / tap_panels_ * tap_floats() + panel % tap_panels_ * kernels_.columns * images_.in;
  }

  // Writes [channel, column].
  void pack_panel(int64_t panel, float* dst, const float* src) const {
    const int64_t tap = panel / tap_panels_, first = panel % tap_panels_ * kernels_.columns;
    const int64_t columns = std::min<int64_t>(kernels_.columns, images_.out - first);
    const int64_t* strides = images_.weight_strides;  // strides of channel, result channel, and the taps
    src += first * strides[1] + tap / images_.kernel[1] * strides[2] + tap % images_.kernel[1] * strides[3];
    dst += panel_at(panel);
    for (int64_t c = 0; c < images_.in; ++c, dst += width(first)) {
      for (int64_t k = 0; k < columns; ++k) dst[k] = src[c * strides[0] + k * strides[1]];
      std::fill(dst + columns, dst + width(first), 0.0f);
    }
  }

  // Tiles are ordered by chunk of blocks, then panel, then block.
  void run_tiles(const ep_launch& launch, const Finish& finish, int64_t begin, int64_t end) const {
    while (begin < end) {
      const int64_t first = begin / (chunk_ * panels_) * chunk_;
      const int64_t blocks = std::min(chunk_, blocks_ - first), at = begin - first * panels_;
      const int64_t count = std::min(end - begin, blocks - at % blocks);
      for (int64_t i = 0; i < count; ++i) run_tile(launch, finish, at / blocks, first + at % blocks + i, i, count);
      begin += count;
    }
  }

  // Computes the tile of a panel and a block. It is tile `i` of `count` consecutive ones.
  void run_tile(const ep_launch& launch, const Finish& finish, int64_t panel, int64_t block, int64_t i,
                int64_t count) const {
    const int64_t line = block / line_blocks_, part = block % line_blocks_, tap = panel / tap_panels_;
    const int64_t column = panel % tap_panels_ * kernels_.columns;
    const int64_t left = images_.src_size[1] * part / line_blocks_;
    const int64_t right = images_.src_size[1] * (part + 1) / line_blocks_;
    const int64_t dst_line = line * images_.stride[0] + tap / images_.kernel[1];
    const int64_t dst_x = left * images_.stride[1] + tap % images_.kernel[1];
    const int64_t place = (dst_line * images_.dst_size[1] + dst_x) * images_.out + column;
    const float* rows[16];
    const float* src = floats(launch, images_.src) + (line * images_.src_size[1] + left) * images_.in;
    for (int64_t row = 0; row < right - left; ++row) rows[row] = src + row * images_.in;
    Tile tile;
    tile.src = rows;
    tile.weights = floats(launch, images_.weight) + panel_at(panel);
    tile.bias = images_.bias < 0 ? nullptr : floats(launch, images_.bias) + column;
    tile.dst = floats(launch, 0) + place;
    tile.dst_row = images_.stride[1] * images_.out;
    tile.taps = tile.panels = 1;
    tile.depth = images_.in;
    tile.panel_floats = 0;
    // Each tile that reads these weights prefetches a part of the next ones.
    tile.ahead_step = divided(width(column), count);
    tile.ahead = (width(column) + i * tile.ahead_step) * images_.in;
    tile.rows = static_cast<int32_t>(right - left);
    tile.columns = static_cast<int32_t>(std::min<int64_t>(kernels_.columns, images_.out - column));
    tile.adds = false;
    tile.finishes = true;
    tile.finish = finish;
    if (tile.finish.other != nullptr) tile.finish.other += place;
    kernels_.run(tile);
  }

  Images images_;
  TileKernels kernels_;
  Finisher finisher_;
  int64_t tap_panels_, panels_;           // panels of columns: per tap, and in all
  int64_t lines_, line_blocks_, blocks_;  // rows of SRC; tiles of pixels per row, and in all
  int64_t chunk_;                         // blocks that all panels process before the next blocks
};

}  // namespace

Refusal TransposedConvolution::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (desc.attributes.convolution.transposed == 0) return Refusal::because("a convolution that is not transposed");
  if (Refusal refusal = why_no_images(device, desc)) return refusal;
  const ep_convolution_attributes& attributes = desc.attributes.convolution;
  if (attributes.groups != 1) return Refusal::because("%lld groups", static_cast<long long>(attributes.groups));
  if ((operand(desc, EP_ROLE_WEIGHT)->flags & EP_OPERAND_FLAG_CONSTANT) == 0) {
    return Refusal::because("the weight is not constant");
  }
  const Images images(desc);
  for (int axis = 0; axis < 2; ++axis) {
    const bool apart = images.kernel[axis] == images.stride[axis] && images.pad[axis] == 0 &&
                       (images.dilation[axis] == 1 || images.kernel[axis] == 1) &&
                       images.dst_size[axis] == images.src_size[axis] * images.stride[axis];
    if (!apart) return Refusal::because("taps overlap, or a pixel of DST has no tap");
  }
  return {};
}

Refusal TransposedConvolution::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                    ep_primitive_info& info) {
  auto* made = make_primitive<TransposedPrimitive>(device, device, desc);
  info.pack_operand = 1 + static_cast<uint32_t>(find_operand(desc, EP_ROLE_WEIGHT));
  info.pack_bytes = made->packed_bytes();
  info.pack_layout = made->layout();
  *out = made;
  return {};
}

}  // namespace tenon::provider::cpu
