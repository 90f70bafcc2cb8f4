// convolution_weight over any float, for groups of few channels and for open dims. Each lane of a vector sums the
// products of one channel of SRC and one of GRADIENT, for each tap over all pixels. The channels of the operand with
// more channels per group are divided among lanes; the channels of the other are repeated so that each meets the
// channels of its group. Both are packed, a piece at a time: pixels of GRADIENT, and a frame of the elements that their
// taps read, with zeros beyond SRC.
#include <algorithm>
#include <vector>

#include "providers/cpu/movement/tile.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"
#include "providers/cpu/weight_gradient/sizes.h"
#include "providers/cpu/weight_gradient/tap_sums.h"
#include "providers/cpu/weight_gradient/weight_gradient.h"

namespace tenon::provider::cpu {
namespace {

// The bytes of the frame of a piece, so that it stays in the L2 cache.
constexpr int64_t kFrameBytes = 192 * 1024;
// The most blocks of channels that use a piece while it is in the cache.
constexpr int64_t kMostBlocks = 4;
// The fewest results of a line of a piece, unless the line is shorter.
constexpr int64_t kFewestPixels = 16;

// The plan of a launch with certain sizes.
struct LanePlan {
  LanePlan(const WeightSizes& of, int64_t lanes, int64_t size, int32_t threads) : sizes(of), lanes(lanes) {
    in = sizes.in / sizes.groups;
    out = sizes.out / sizes.groups;
    channels = divides_out() ? sizes.out : sizes.in;
    repeats = std::min(in, out);
    blocks = divided(channels, lanes);
    blocks_of_unit = threads == 1 ? kMostBlocks : std::clamp<int64_t>(blocks / (2 * threads), 1, kMostBlocks);
    width = std::max<int64_t>(1, sizes.results[2]);
    height = 1;
    const auto bytes = [&] { return frame() * size; };
    while (bytes() > kFrameBytes && width > kFewestPixels) width = std::max(kFewestPixels, width / 2);
    while (height < sizes.results[1]) {
      ++height;
      if (bytes() <= kFrameBytes) continue;
      --height;
      break;
    }
    for (int64_t z = 0; z < sizes.kernel[0]; ++z) {
      for (int64_t y = 0; y < sizes.kernel[1]; ++y) {
        for (int64_t x = 0; x < sizes.kernel[2]; ++x) {
          offsets.push_back(((z * rows() + y * sizes.dilation[1]) * columns() + x * sizes.dilation[2]) * lanes);
          places.push_back(z * sizes.dst_strides.axis[0] + y * sizes.dst_strides.axis[1] +
                           x * sizes.dst_strides.axis[2]);
        }
      }
    }
  }

  // True if the channels of GRADIENT are divided among lanes; false: the channels of SRC.
  bool divides_out() const { return out >= in; }
  // The frame of a piece: a slice per tap along the first axis.
  int64_t columns() const { return (width - 1) * sizes.stride[2] + (sizes.kernel[2] - 1) * sizes.dilation[2] + 1; }
  int64_t rows() const { return (height - 1) * sizes.stride[1] + (sizes.kernel[1] - 1) * sizes.dilation[1] + 1; }
  int64_t frame() const { return sizes.kernel[0] * rows() * columns() * lanes; }
  // Elements per thread: sums, frame, pixels of GRADIENT, lines that are not packed yet.
  int64_t block_sums() const { return repeats * sizes.taps() * lanes; }
  int64_t sums() const { return blocks_of_unit * block_sums(); }
  int64_t pixels() const { return height * width * lanes; }
  int64_t line() const { return std::max(columns(), width); }
  int64_t room() const { return sums() + frame() + pixels() + lanes * line(); }

  // The channels of a block. The last block overlaps the one before if it has too few channels for a vector.
  struct Block {
    int64_t channel, count;  // the first channel
    int64_t known;           // channels that the block before writes
  };
  Block block(int64_t number) const {
    const int64_t begin = number * lanes, first = std::max<int64_t>(0, std::min(begin, channels - lanes));
    return {first, std::min(lanes, channels - first), begin - first};
  }

  // The channels of lane `channel` and repeat `i`.
  int64_t src_channel(int64_t channel, int64_t i) const { return divides_out() ? channel / out * in + i : channel; }
  int64_t gradient_channel(int64_t channel, int64_t i) const {
    return divides_out() ? channel : channel / in * out + i;
  }

  WeightSizes sizes;
  int64_t lanes;
  int64_t in, out;            // channels per group
  int64_t channels, repeats;  // channels that are divided among lanes; channels of the other operand that each meets
  int64_t blocks, blocks_of_unit;  // blocks have one channel per lane
  int64_t width, height;           // results of a piece
  std::vector<int64_t> offsets;    // by tap: in the frame
  std::vector<int64_t> places;     // by tap: in DST
};

template <class T>
class LaneWeightGradient final : public ep_primitive {
 public:
  LaneWeightGradient(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        src_(find_operand(desc, EP_ROLE_SRC)),
        gradient_(find_operand(desc, EP_ROLE_GRADIENT)),
        format_(desc.operands[0].dtype, on.simd),
        kernel_(tap_kernel<T>(on.simd, desc.operands[0].dtype)),
        tile_(tile_function(on.simd, sizeof(T))) {}

  uint64_t workspace(const ep_shape* shapes) const override {
    return static_cast<uint64_t>(device->threads * plan(shapes).room()) * sizeof(T);
  }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const LanePlan plan = this->plan(launch.shapes);
    if (plan.sizes.out == 0 || plan.sizes.in == 0 || plan.sizes.taps() == 0) return EP_STATUS_OK;
    const int64_t units = divided(plan.blocks, plan.blocks_of_unit);
    const int64_t products = plan.sizes.pixels() * plan.sizes.taps() * plan.channels * plan.repeats;
    parallel(device->threads, products * static_cast<int64_t>(sizeof(T)) / 64, [&](int32_t part, int32_t parts) {
      T* const room = reinterpret_cast<T*>(address_of(launch.workspace)) + runner() * plan.room();
      for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
        const int64_t first = unit * plan.blocks_of_unit;
        run_unit(launch, plan, first, std::min(plan.blocks, first + plan.blocks_of_unit), room);
      }
    });
    return EP_STATUS_OK;
  }

 private:
  // Results [y, y + height) and [x, x + width) at index z of an image.
  struct Piece {
    int64_t image, z, y, x, height, width;
  };
  // Some channels of an operand, one per lane.
  struct Channels {
    const char* from;  // the first channel
    int64_t count;
    int64_t distance;     // between channels, in elements; -1: it varies
    int64_t offsets[64];  // by lane: elements after the first channel
  };

  LanePlan plan(const ep_shape* shapes) const {
    return {WeightSizes(desc_, shapes), kernel_.lanes, static_cast<int64_t>(sizeof(T)), device->threads};
  }

  template <class ChannelOf>
  Channels channels_of(const ep_launch& launch, int32_t operand, int64_t stride, int64_t count,
                       const ChannelOf& channel_of) const {
    Channels channels;
    const int64_t first = channel_of(0);
    channels.from = address_of(launch.operands[operand]) + first * stride * format_.size;
    channels.count = count;
    for (int64_t l = 0; l < count; ++l) channels.offsets[l] = (channel_of(l) - first) * stride;
    channels.distance = count > 1 ? channels.offsets[1] : 1;
    for (int64_t l = 0; l < count; ++l) {
      if (channels.offsets[l] != l * channels.distance) channels.distance = -1;
    }
    return channels;
  }

  // Packs `count` pixels of a line, `step` elements apart, from `offset` on.
  void pack_pixels(const Channels& channels, int64_t offset, int64_t step, int64_t count, T* to, T* line) const {
    const int64_t lanes = kernel_.lanes;
    const char* const from = channels.from + offset * format_.size;
    if (channels.distance == 1 && channels.count == lanes) return kernel_.read(to, from, step, count);
    if (channels.distance == 1 && channels.count > 1) {
      for (int64_t x = 0; x < count; ++x) {
        format_.read(to + x * lanes, 1, from + x * step * format_.size, 1, channels.count);
      }
      return;
    }
    if (format_.same && step == 1 && channels.distance >= 0) {
      return tile_(to, lanes, from, channels.distance, count, channels.count);
    }
    for (int64_t l = 0; l < channels.count; ++l) {
      format_.read(line + l * count, 1, from + channels.offsets[l] * format_.size, step, count);
    }
    tile_(to, lanes, line, count, count, channels.count);
  }

  // The offset of the first pixel of line y of a piece.
  static int64_t gradient_offset(const WeightSizes& sizes, const Piece& piece, int64_t y) {
    const WeightStrides& strides = sizes.gradient_strides;
    return piece.image * strides.outer + piece.z * strides.axis[0] + (piece.y + y) * strides.axis[1] +
           piece.x * strides.axis[2];
  }

  void pack_gradient(const LanePlan& plan, const Channels& channels, const Piece& piece, T* to, T* line) const {
    for (int64_t y = 0; y < piece.height; ++y) {
      pack_pixels(channels, gradient_offset(plan.sizes, piece, y), plan.sizes.gradient_strides.axis[2], piece.width,
                  to + y * piece.width * plan.lanes, line);
    }
  }

  // Packs the frame of a piece.
  void pack_frame(const LanePlan& plan, const Channels& channels, const Piece& piece, T* to, T* line) const {
    const WeightSizes& sizes = plan.sizes;
    const WeightStrides& strides = sizes.src_strides;
    const int64_t rows = (piece.height - 1) * sizes.stride[1] + (sizes.kernel[1] - 1) * sizes.dilation[1] + 1;
    const int64_t columns = (piece.width - 1) * sizes.stride[2] + (sizes.kernel[2] - 1) * sizes.dilation[2] + 1;
    const int64_t left = piece.x * sizes.stride[2] - sizes.pad[2];  // where column 0 lies in SRC
    const int64_t first = std::clamp<int64_t>(-left, 0, columns);
    const int64_t last = std::clamp<int64_t>(sizes.src[2] - left, first, columns);
    for (int64_t slice = 0; slice < sizes.kernel[0]; ++slice) {
      const int64_t z = piece.z * sizes.stride[0] + slice * sizes.dilation[0] - sizes.pad[0];
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t y = piece.y * sizes.stride[1] + row - sizes.pad[1];
        T* const out = to + (slice * plan.rows() + row) * plan.columns() * plan.lanes;
        const bool inside = z >= 0 && z < sizes.src[0] && y >= 0 && y < sizes.src[1] && first < last;
        if (!inside) {
          std::fill_n(out, columns * plan.lanes, T{0});
          continue;
        }
        std::fill_n(out, first * plan.lanes, T{0});
        std::fill_n(out + last * plan.lanes, (columns - last) * plan.lanes, T{0});
        const int64_t offset =
            piece.image * strides.outer + z * strides.axis[0] + y * strides.axis[1] + (left + first) * strides.axis[2];
        pack_pixels(channels, offset, strides.axis[2], last - first, out + first * plan.lanes, line);
      }
    }
  }

  // Computes the weights of blocks [first, last) of channels. All blocks use a piece before the next one.
  void run_unit(const ep_launch& launch, const LanePlan& plan, int64_t first, int64_t last, T* room) const {
    const WeightSizes& sizes = plan.sizes;
    std::fill_n(room, plan.room(), T{0});
    for (int64_t slice = 0; slice < sizes.images * sizes.results[0]; ++slice) {
      for (int64_t y = 0; y < sizes.results[1]; y += plan.height) {
        for (int64_t x = 0; x < sizes.results[2]; x += plan.width) {
          const Piece piece{slice / sizes.results[0],
                            slice % sizes.results[0],
                            y,
                            x,
                            std::min(plan.height, sizes.results[1] - y),
                            std::min(plan.width, sizes.results[2] - x)};
          for (int64_t block = first; block < last; ++block) {
            add_piece(launch, plan, piece, plan.block(block), room, room + (block - first) * plan.block_sums());
          }
        }
      }
    }
    for (int64_t block = first; block < last; ++block) {
      for (int64_t i = 0; i < plan.repeats; ++i) {
        write(launch, plan, plan.block(block), i,
              room + (block - first) * plan.block_sums() + i * sizes.taps() * plan.lanes);
      }
    }
  }

  // Adds the products of a piece to the sums of a block.
  void add_piece(const ep_launch& launch, const LanePlan& plan, const Piece& piece, const LanePlan::Block& block,
                 T* room, T* sums) const {
    const WeightSizes& sizes = plan.sizes;
    T* const frame = room + plan.sums();
    T* const pixels = frame + plan.frame();
    T* const line = pixels + plan.pixels();
    TapSums<T> tile{};
    tile.right = frame;
    tile.lines = piece.height;
    tile.count = piece.width;
    tile.right_line = sizes.stride[1] * plan.columns() * plan.lanes;
    tile.right_step = sizes.stride[2] * plan.lanes;
    tile.offsets = plan.offsets.data();
    tile.taps = sizes.taps();
    for (int64_t i = 0; i < plan.repeats; ++i) {
      const Channels left = channels_of(launch, gradient_, sizes.gradient_strides.channel, block.count,
                                        [&](int64_t l) { return plan.gradient_channel(block.channel + l, i); });
      if (format_.same && left.distance == 1 && left.count == plan.lanes) {
        tile.left = reinterpret_cast<const T*>(left.from) + gradient_offset(sizes, piece, 0);
        tile.left_step = sizes.gradient_strides.axis[2];
        tile.left_line = sizes.gradient_strides.axis[1];
      } else {
        tile.left = pixels;
        tile.left_step = plan.lanes;
        tile.left_line = piece.width * plan.lanes;
        if (i == 0 || !plan.divides_out()) pack_gradient(plan, left, piece, pixels, line);
      }
      if (i == 0 || plan.divides_out()) {
        const Channels right = channels_of(launch, src_, sizes.src_strides.channel, block.count,
                                           [&](int64_t l) { return plan.src_channel(block.channel + l, i); });
        pack_frame(plan, right, piece, frame, line);
      }
      tile.sums = sums + i * sizes.taps() * plan.lanes;
      kernel_.run(tile);
    }
  }

  void write(const ep_launch& launch, const LanePlan& plan, const LanePlan::Block& block, int64_t i,
             const T* sums) const {
    const WeightStrides& strides = plan.sizes.dst_strides;
    for (int64_t l = block.known; l < block.count; ++l) {
      const int64_t place = plan.gradient_channel(block.channel + l, i) * strides.outer +
                            plan.src_channel(block.channel + l, i) % plan.in * strides.channel;
      for (int64_t tap = 0; tap < plan.sizes.taps(); ++tap) {
        const int64_t to = place + plan.places[static_cast<size_t>(tap)];
        format_.write(address_of(launch.operands[0]) + to * format_.size, 1, sums + tap * plan.lanes + l, 1, 1);
      }
    }
  }

  ep_primitive_desc desc_;
  int32_t src_, gradient_;
  RowFormat format_;
  TapKernel<T> kernel_;
  TileFunction tile_;
};

}  // namespace

Refusal WeightGradient::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* gradient = operand(desc, EP_ROLE_GRADIENT);
  const ep_convolution_weight_attributes& at = desc.attributes.convolution_weight;
  if (desc.operand_count != 3 || desc.operands[0].role != EP_ROLE_DST || src == nullptr || gradient == nullptr) {
    return Refusal::because("its operands are not DST, SRC and GRADIENT");
  }
  if (at.spatial_rank < 1 || at.spatial_rank > 3 || src->rank != at.spatial_rank + 2) {
    return Refusal::because("%d spatial dims of rank %d", at.spatial_rank, src->rank);
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    if (!is_row_float(desc.operands[i].dtype) || desc.operands[i].dtype != src->dtype)
      return Refusal::because("operand %u is %s", i, dtype_name(desc.operands[i].dtype));
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal WeightGradient::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  if (wide_dtype(desc.operands[0].dtype) == EP_DTYPE_f64) {
    *out = make_primitive<LaneWeightGradient<double>>(device, device, desc);
  } else {
    *out = make_primitive<LaneWeightGradient<float>>(device, device, desc);
  }
  return {};
}

}  // namespace tenon::provider::cpu
