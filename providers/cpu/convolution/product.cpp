// convolution of one group with channels last, and matmul by a constant matrix, as a product of matrices: pixels by
// channels of DST, summed over taps and channels of SRC. A tile reads the pixels of each tap in place, and zeros where
// a tap lies outside the image. Images with few channels are first copied into a frame of zeros; the taps of a kernel
// row are then contiguous and count as one tap with more channels. Images with channels first are copied to channels
// last, and results back, if Winograd's method pays.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "providers/cpu/convolution/convolution.h"
#include "providers/cpu/convolution/cut.h"
#include "providers/cpu/convolution/images.h"
#include "providers/cpu/convolution/winograd.h"
#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t kAhead = 256;                 // prefetch distance of weights to the L1 cache, in floats
constexpr int64_t kFarAhead = 4096;             // the prefetch distance if every weight is read once
constexpr int64_t kFewProducts = 64 * 64 * 64;  // a smaller matmul must have the bits of one whose matrix may change
// oneDNN computes a matmul of several rows with longer sums, because a panel of 64 columns then no longer fits in the
// L2 cache.
constexpr int64_t kLongSums = 3072;
constexpr int64_t kWorthPacking = 512;  // pixels from which on packing a weight at each launch pays
constexpr int64_t kWorthPlanes = 32;    // channels from which on copying images to channels last pays
constexpr int32_t kMostRows = 16;       // rows of the largest kernel

uint64_t aligned(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

class ProductPrimitive final : public ep_primitive {
 public:
  ProductPrimitive(const ep_device& on, const ep_primitive_desc& desc, const Images& images, bool packed, bool planes)
      : cut_(images, tile_kernels(on.simd)),
        finisher_(on, desc),
        zeros_(static_cast<size_t>(cut_.depth), 0.0f),
        packed_(packed),
        planes_(planes) {
    if (Winograd::pays(cut_)) winograd_.emplace(cut_, on.simd, on.threads);
  }

  const Cut& cut() const { return cut_; }
  uint64_t workspace(const ep_shape*) const override {
    return (packed_ ? 0 : aligned(cut_.packed_bytes())) + (winograd_ ? winograd_->workspace() : cut_.frame_bytes()) +
           (planes_ ? aligned(src_bytes()) + 2 * aligned(dst_bytes()) : 0);
  }
  bool has_workspace() const override { return workspace(nullptr) != 0; }

  ep_status pack(char* dst, const char* src, ep_error**) override {
    pack_panels(1, reinterpret_cast<float*>(dst), reinterpret_cast<const float*>(src));
    return EP_STATUS_OK;
  }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    if (has_workspace() && launch.workspace.memory == nullptr) {
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "The launch of a convolution has no workspace.");
    }
    Sources from;
    from.weights = floats(launch, cut_.images.weight);
    from.src = floats(launch, cut_.images.src);
    from.bias = cut_.images.bias < 0 ? nullptr : floats(launch, cut_.images.bias);
    from.finish = finisher_.of(launch);
    float* dst = reinterpret_cast<float*>(address_of(launch.operands[0]));
    char* room = has_workspace() ? address_of(launch.workspace) : nullptr;
    if (!planes_) {
      run(launch, from, dst, room);
      return EP_STATUS_OK;
    }
    const Images& images = cut_.images;
    float* const results = take(&room, dst_bytes());
    from.src = lay_out(from.src, images.src_size, images.in, take(&room, src_bytes()));
    float* const other = take(&room, dst_bytes());
    if (from.finish.other != nullptr) {
      from.finish.other = lay_out(from.finish.other, images.dst_size, images.out, other);
    }
    run(launch, from, results, room);
    const auto [dims, strides] = planes_of(images.dst_size, images.out);
    strided_copy(from_dense(sizeof(float), dims, strides), reinterpret_cast<char*>(dst),
                 reinterpret_cast<const char*>(results), device->simd, device->threads);
    const WideLease lease(device->threads, cut_.images.pixels() * cut_.images.out / 4);
    finisher_.end(launch, lease.width());
    return EP_STATUS_OK;
  }

 private:
  struct Sources {
    const float* src;
    const float* weights;
    const float* bias;
    Finish finish;
  };

  static const float* floats(const ep_launch& launch, int32_t operand) {
    return reinterpret_cast<const float*>(address_of(launch.operands[operand]));
  }

  uint64_t src_bytes() const {
    const Images& images = cut_.images;
    return static_cast<uint64_t>(images.count * images.src_size[0] * images.src_size[1] * images.in) * sizeof(float);
  }
  uint64_t dst_bytes() const { return static_cast<uint64_t>(cut_.images.pixels() * cut_.images.out) * sizeof(float); }

  static float* take(char** room, uint64_t bytes) {
    char* taken = *room;
    *room += aligned(bytes);
    return reinterpret_cast<float*>(taken);
  }

  // Images with channels first, seen with their channels as the last axis.
  std::pair<std::array<int64_t, 4>, std::array<int64_t, 4>> planes_of(const int64_t (&size)[2],
                                                                      int64_t channels) const {
    const int64_t plane = size[0] * size[1];
    return {{cut_.images.count, size[0], size[1], channels}, {channels * plane, size[1], 1, plane}};
  }
  const float* lay_out(const float* src, const int64_t (&size)[2], int64_t channels, float* dst) const {
    const auto [dims, strides] = planes_of(size, channels);
    strided_copy(to_dense(sizeof(float), dims, strides), reinterpret_cast<char*>(dst),
                 reinterpret_cast<const char*>(src), device->simd, device->threads);
    return dst;
  }

  // Computes images with channels last. The Tail then reads DST in place.
  void run(const ep_launch& launch, Sources from, float* dst, char* room) const {
    const WideLease lease(device->threads, winograd_ ? winograd_->nanoseconds() : cut_.nanoseconds());
    if (!packed_) {
      pack_panels(lease.width(), reinterpret_cast<float*>(room), from.weights);
      from.weights = reinterpret_cast<float*>(room);
      room += aligned(cut_.packed_bytes());
    }
    if (winograd_) {
      const auto direct = [&](int64_t panel, int64_t pixel, int32_t count) {
        run_pixels(from, dst, panel, pixel, count);
      };
      winograd_->run(lease.width(), {from.src, from.weights, from.bias, dst, from.finish},
                     reinterpret_cast<float*>(room), std::cref(direct));
      if (!planes_) finisher_.end(launch, lease.width());
      return;
    }
    if (cut_.framed) {
      fill_frame(lease.width(), reinterpret_cast<float*>(room), from.src);
      from.src = reinterpret_cast<float*>(room);
    }
    const auto body = [&](int32_t part, int32_t parts) {
      const int64_t all = cut_.blocks * cut_.panels;
      run_tiles(from, dst, all * part / parts, all * (part + 1) / parts);
    };
    run_parts(lease.width(), cut_.nanoseconds(), body);
    finisher_.end(launch, lease.width());
  }

  // Writes [panel, tap, channel, column]. Packing a constant touches new memory, which takes times that no lease can
  // predict. So it runs on the calling thread; the host may pack several constants in parallel.
  void pack_panels(int32_t width, float* dst, const float* src) const {
    const auto body = [&](int32_t part, int32_t parts) {
      std::vector<float> room;
      for (int64_t panel = cut_.panels * part / parts; panel < cut_.panels * (part + 1) / parts; ++panel) {
        const int64_t first = panel * cut_.kernels.columns;
        pack_panel(dst + panel * cut_.panel_floats(),
                   src + cut_.images.first_weight + first * cut_.images.weight_strides[0], cut_.width(panel),
                   std::min(cut_.width(panel), cut_.images.out - first), &room);
      }
    };
    const auto nanoseconds = static_cast<int64_t>(cut_.packed_bytes() / sizeof(float));
    run_parts(width, nanoseconds, body);
  }

  // The offset in WEIGHT of row `i` of a panel; rows are ordered by tap, then channel.
  int64_t weight_at(int64_t i) const {
    const Images& images = cut_.images;
    const int64_t tap = i % images.taps();
    return i / images.taps() * images.weight_strides[1] + tap / images.kernel[1] * images.weight_strides[2] +
           tap % images.kernel[1] * images.weight_strides[3];
  }
  // Copies adjacent columns directly. Otherwise reads several elements of each column, because taps and channels of a
  // column are usually adjacent, and writes them across the rows of a buffer.
  void pack_panel(float* dst, const float* src, int64_t width, int64_t columns, std::vector<float>* room) const {
    const Images& images = cut_.images;
    const int64_t all = images.in * images.taps(), step = images.weight_strides[0];
    const bool in_order = all == 1 || (weight_at(1) == 1 && weight_at(all - 1) == all - 1);
    constexpr int64_t most = 256;  // rows of the buffer
    room->assign(static_cast<size_t>(most * width), 0.0f);
    for (int64_t begin = 0; begin < all; begin += most) {
      const int64_t count = std::min(most, all - begin);
      for (int64_t column = 0; column < columns && step != 1; ++column) {
        const float* from = src + column * step;
        float* to = room->data() + column;
        for (int64_t i = 0; i < count; ++i) to[i * width] = from[in_order ? begin + i : weight_at(begin + i)];
      }
      int64_t tap = begin % images.taps(), channel = begin / images.taps();
      for (int64_t i = 0; i < count; ++i) {
        float* to = dst + (tap * images.in + channel) * width;
        const bool follow = step == 1;
        std::copy_n(follow ? src + weight_at(begin + i) : room->data() + i * width, follow ? columns : width, to);
        if (follow) std::fill(to + columns, to + width, 0.0f);
        if (++tap < images.taps()) continue;
        tap = 0;
        ++channel;
      }
    }
  }

  void fill_frame(int32_t width, float* frame, const float* src) const {
    const Images& images = cut_.images;
    const int64_t row = cut_.frame[1] * images.in;
    const int64_t before = std::min(images.pad[1], cut_.frame[1]) * images.in;
    const int64_t inside = std::clamp<int64_t>(images.src_size[1] * images.in, 0, row - before);
    const auto body = [&](int32_t part, int32_t parts) {
      const int64_t all = images.count * cut_.frame[0];
      for (int64_t i = all * part / parts; i < all * (part + 1) / parts; ++i) {
        const int64_t y = i % cut_.frame[0] - images.pad[0];
        float* to = frame + i * row;
        const bool empty = y < 0 || y >= images.src_size[0];
        std::fill_n(to, empty ? row : before, 0.0f);
        if (empty) continue;
        const int64_t line = i / cut_.frame[0] * images.src_size[0] + y;
        std::copy_n(src + line * images.src_size[1] * images.in, inside, to + before);
        std::fill(to + before + inside, to + row, 0.0f);
      }
    };
    const int64_t nanoseconds = images.count * cut_.frame[0] * row / 8;
    run_parts(width, nanoseconds, body);
  }

  // Computes tiles [begin, end). Tiles are ordered by chunk, then panel, then block.
  void run_tiles(const Sources& from, float* dst, int64_t begin, int64_t end) const {
    std::vector<const float*> taps(static_cast<size_t>(cut_.group * cut_.block));
    while (begin < end) {
      const int64_t first = begin / (cut_.chunk * cut_.panels) * cut_.chunk;
      const int64_t blocks = std::min(cut_.chunk, cut_.blocks - first);
      const int64_t at = begin - first * cut_.panels, panel = at / blocks;
      if (blocks == 1 && panel < cut_.whole_panels) {
        const int64_t count = std::min(end - begin, cut_.whole_panels - panel);
        run_group(from, dst, {panel, count, first, 1}, taps.data());
        begin += count;
        continue;
      }
      const int64_t count = std::min(end - begin, blocks - at % blocks);
      run_group(from, dst, {panel, 1, first + at % blocks, count}, taps.data());
      begin += count;
    }
  }

  struct Group {
    int64_t panel, panels, block, blocks;
  };
  void run_group(const Sources& from, float* dst, const Group& group, const float** taps) const {
    for (int64_t tap = 0; tap < cut_.rows; tap += cut_.group) {
      for (int64_t i = 0; i < group.blocks; ++i) run_tile(from, dst, group, group.block + i, tap, taps);
    }
  }

  // Computes `count` results of one panel with all their taps.
  void run_pixels(const Sources& from, float* dst, int64_t panel, int64_t pixel, int32_t count) const {
    std::vector<const float*> taps(static_cast<size_t>(cut_.rows * count));
    Tile tile = tile_at(from, dst, panel, pixel, count);
    tile.panels = 1;
    tile.taps = cut_.rows;
    tile.ahead = kAhead;
    tile.ahead_step = cut_.width(panel);
    tile.src = taps.data();
    tile.adds = false;
    tile.finishes = true;
    find_taps(from.src, pixel, count, 0, tile.taps, taps.data());
    cut_.kernels.run(tile);
  }

  // The arguments that all taps of these results share.
  Tile tile_at(const Sources& from, float* dst, int64_t panel, int64_t pixel, int32_t count) const {
    const int64_t column = panel * cut_.kernels.columns, place = pixel * cut_.images.out + column;
    Tile tile;
    tile.weights = from.weights + panel * cut_.panel_floats();
    tile.bias = from.bias == nullptr ? nullptr : from.bias + column;
    tile.dst = dst + place;
    tile.dst_row = cut_.images.out;
    tile.depth = cut_.depth;
    tile.panel_floats = cut_.panel_floats();
    tile.rows = count;
    tile.columns = static_cast<int32_t>(std::min<int64_t>(cut_.kernels.columns, cut_.images.out - column));
    tile.finish = from.finish;
    if (tile.finish.other != nullptr) tile.finish.other += place;
    return tile;
  }

  void run_tile(const Sources& from, float* dst, const Group& group, int64_t block, int64_t tap,
                const float** taps) const {
    const int64_t pixel = cut_.first_pixel(block);
    const auto rows = static_cast<int32_t>(cut_.first_pixel(block + 1) - pixel);
    Tile tile = tile_at(from, dst, group.panel, pixel, rows);
    tile.panels = group.panels;
    tile.taps = std::min(cut_.group, cut_.rows - tap);
    // Each tile that reads these weights prefetches a part of the next ones from memory.
    const int64_t width = cut_.width(group.panel), floats = tile.taps * tile.depth * width;
    tile.ahead_step = group.blocks > 1 ? (width + group.blocks - 1) / group.blocks : width;
    tile.ahead = group.blocks > 1   ? floats + (block - group.block) * tile.ahead_step * tile.taps * tile.depth
                 : cut_.blocks == 1 ? kFarAhead
                                    : kAhead;
    tile.src = taps;
    tile.weights += tap * cut_.depth * cut_.width(group.panel);
    tile.adds = tap > 0;
    tile.finishes = tap + tile.taps == cut_.rows;
    find_taps(from.src, pixel, rows, tap, tile.taps, taps);
    cut_.kernels.run(tile);
  }

  // Finds the addresses of the taps of `rows` pixels starting at `pixel`.
  void find_taps(const float* src, int64_t pixel, int32_t rows, int64_t first, int64_t count,
                 const float** taps) const {
    const Images& images = cut_.images;
    if (cut_.joined) {
      for (int32_t row = 0; row < rows; ++row) taps[row] = src + (pixel + row) * images.in;
      return;
    }
    // For each pixel: the row and column of tap 0, relative to the image, and the first row of the image among all
    // rows.
    int64_t top[kMostRows], left[kMostRows], line[kMostRows];
    int64_t x = pixel % images.dst_size[1], y = pixel / images.dst_size[1] % images.dst_size[0];
    int64_t image = pixel / images.dst_size[1] / images.dst_size[0];
    const int64_t lines = cut_.framed ? cut_.frame[0] : images.src_size[0];
    const int64_t pad[2] = {cut_.framed ? 0 : images.pad[0], cut_.framed ? 0 : images.pad[1]};
    for (int32_t row = 0; row < rows; ++row) {
      top[row] = y * images.stride[0] - pad[0];
      left[row] = x * images.stride[1] - pad[1];
      line[row] = image * lines + top[row];
      if (++x < images.dst_size[1]) continue;
      x = 0;
      if (++y < images.dst_size[0]) continue;
      y = 0;
      ++image;
    }
    const int64_t width = cut_.framed ? cut_.frame[1] : images.src_size[1];
    const int64_t tap_columns = cut_.framed ? 1 : images.kernel[1];
    for (int64_t tap = 0; tap < count; ++tap, taps += rows) {
      const int64_t down = (first + tap) / tap_columns * images.dilation[0];
      const int64_t right = (first + tap) % tap_columns * images.dilation[1];
      bool any = false;
      for (int32_t row = 0; row < rows; ++row) {
        const bool inside = cut_.framed || (in(top[row] + down, lines) && in(left[row] + right, width));
        taps[row] = inside ? src + ((line[row] + down) * width + left[row] + right) * images.in : zeros_.data();
        any = any || inside;
      }
      if (!any) taps[0] = nullptr;
    }
  }

  static bool in(int64_t at, int64_t size) { return static_cast<uint64_t>(at) < static_cast<uint64_t>(size); }

  Cut cut_;
  Finisher finisher_;
  std::vector<float> zeros_;
  bool packed_;
  bool planes_;  // channels are first in SRC, DST and the other operand of the Finish
  std::optional<Winograd> winograd_;
};

Refusal make_product(ep_device& device, const ep_primitive_desc& desc, const Images& images, const char* form,
                     bool planes, ep_primitive** out, ep_primitive_info& info) {
  const bool packed = (desc.operands[images.weight].flags & EP_OPERAND_FLAG_CONSTANT) != 0;
  auto* made = make_primitive<ProductPrimitive>(device, device, desc, images, packed, planes);
  if (packed) {
    info.pack_operand = 1 + static_cast<uint32_t>(images.weight);
    info.pack_bytes = made->cut().packed_bytes();
    info.pack_layout = packed_layout(form, made->cut().kernels.columns, made->cut().kernels.lanes);
  }
  *out = made;
  return {};
}

// True if images have channels first. With one pixel or one channel, they count as channels last.
bool has_planes(const ep_primitive_desc& desc) {
  return !is_channels_last(*operand(desc, EP_ROLE_SRC)) || !is_channels_last(desc.operands[0]);
}

bool is_dense(const ep_operand_desc& matrix) {
  return (matrix.dims[1] == 1 || matrix.strides[1] == 1) &&
         (matrix.dims[0] == 1 || matrix.strides[0] == matrix.dims[1]);
}

// Treats the rows of SRC as pixels of one image row. A long row becomes several pixels and as many taps, so that the
// weights of one tap stay in a cache.
Images rows_as_images(const ep_primitive_desc& desc) {
  constexpr int64_t kLongest = kPanelBytes / 128;
  Images images;
  images.src = find_operand(desc, EP_ROLE_SRC);
  images.weight = find_operand(desc, EP_ROLE_SRC_B);
  images.bias = find_operand(desc, EP_ROLE_BIAS);
  const ep_operand_desc& weight = desc.operands[images.weight];
  const int64_t rows = desc.operands[0].dims[0], depth = weight.dims[0];
  int64_t taps = 1;
  while (depth % taps != 0 || depth / taps > kLongest) {
    if (++taps > depth / kFewChannels) taps = 1;
    if (taps == 1) break;
  }
  images.in = depth / taps;
  images.out = weight.dims[1];
  images.src_size[1] = rows * taps;
  images.dst_size[1] = rows;
  images.kernel[1] = images.stride[1] = taps;
  images.weight_strides[0] = weight.strides[1];
  images.weight_strides[1] = weight.strides[0];
  images.weight_strides[3] = images.in * weight.strides[0];
  return images;
}

}  // namespace

Refusal ChannelsLastConvolution::why_not(const ep_device& device, const ep_primitive_desc& desc,
                                         ep_support_info& info) {
  if (Refusal refusal = why_no_images(device, desc)) {
    if (why_no_images(device, desc, Channels::first)) return refusal;
  }
  const ep_convolution_attributes& attributes = desc.attributes.convolution;
  if (attributes.groups != 1) return Refusal::because("%lld groups", static_cast<long long>(attributes.groups));
  const bool constant = (operand(desc, EP_ROLE_WEIGHT)->flags & EP_OPERAND_FLAG_CONSTANT) != 0;
  const bool planes = has_planes(desc);
  if (constant && attributes.transposed == 0 && !planes) return {};
  const Images images = images_of(desc);
  if (images.pad[0] < 0 || images.pad[1] < 0 || !Winograd::pays(Cut(images, tile_kernels(device.simd)))) {
    return Refusal::because(planes                       ? "channels are not last"
                            : attributes.transposed != 0 ? "a transposed convolution"
                                                         : "the weight is not constant");
  }
  if (!constant && images.pixels() < kWorthPacking)
    return Refusal::because("the weight is not constant, and there are few pixels");
  if (planes && std::min(images.in, images.out) < kWorthPlanes) return Refusal::because("channels are not last");
  if (planes) info.penalty_bytes = penalty_of_planes(desc);
  return {};
}

Refusal ChannelsLastConvolution::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                      ep_primitive_info& info) {
  const bool transposed = desc.attributes.convolution.transposed != 0;
  return make_product(device, desc, images_of(desc), transposed ? "channels last, transposed" : "channels last",
                      has_planes(desc), out, info);
}

Refusal PackedMatmul::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (is_dynamic(desc)) return Refusal::because("products in tiles need static dims");
  if (desc.accumulate_dtype != 0 && desc.accumulate_dtype != EP_DTYPE_f32) {
    return Refusal::because("accumulation in %s", dtype_name(desc.accumulate_dtype));
  }
  const ep_operand_desc& dst = desc.operands[0];
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* weight = operand(desc, EP_ROLE_SRC_B);
  const ep_operand_desc* bias = operand(desc, EP_ROLE_BIAS);
  if (src == nullptr || weight == nullptr || dst.role != EP_ROLE_DST) return Refusal::because("an operand is missing");
  if ((weight->flags & EP_OPERAND_FLAG_CONSTANT) == 0) return Refusal::because("the second matrix is not constant");
  if (Refusal refusal = why_not_f32(desc)) return refusal;
  if (dst.rank != 2) return Refusal::because("rank %d", dst.rank);
  if (dst.dims[0] * dst.dims[1] <= kFewProducts / weight->dims[0]) {
    return Refusal::because("at most 64 x 64 x 64 multiplications");
  }
  if (dst.dims[0] > 1 && weight->dims[0] > kLongSums)
    return Refusal::because("sums of more than %lld products", static_cast<long long>(kLongSums));
  if (!is_dense(*src) || !is_dense(dst)) return Refusal::because("rows are not contiguous");
  const bool along = bias == nullptr ||
                     ((bias->dims[1] == 1 || bias->strides[1] == 1) && (bias->dims[0] == 1 || bias->strides[0] == 0));
  if (!along) return Refusal::because("a bias that is not one number per column");
  return why_no_finisher(device, desc);
}

Refusal PackedMatmul::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                           ep_primitive_info& info) {
  return make_product(device, desc, rows_as_images(desc), "matmul", false, out, info);
}

}  // namespace tenon::provider::cpu
