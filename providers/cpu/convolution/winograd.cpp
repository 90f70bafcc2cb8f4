#include "providers/cpu/convolution/winograd.h"

#include <algorithm>

#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t kPositions = 16;
constexpr int64_t kGap = 16;     // floats between arrays, so that arrays of power-of-two length do not share cache sets
constexpr int64_t kAhead = 256;  // prefetch distance of weights to the L1 cache, in floats
constexpr int32_t kMostRows = 16;                           // rows of the largest kernel
constexpr int64_t kLeastChannels = 16, kLeastSquares = 24;  // with fewer, the direct method is faster
constexpr int64_t kPartSquares = 56;         // with fewer per thread, threads share all squares and divide the panels
constexpr int64_t kSharedGroup = 256;        // shared squares that are multiplied by the weights of one panel
constexpr int64_t kOwnGroup = 128;           // squares of one thread that are multiplied by the weights of one panel
constexpr int64_t kChunk = 256;              // channels of weights, so that they stay in the L2 cache
constexpr int64_t kKeptBytes = 5 << 20;      // most transformed weights, so that they stay in the L3 cache
constexpr int64_t kSquareBytes = 256 << 10;  // most transformed squares, so that they stay in the L2 cache

// Prefetches floats [begin, end) of `weights` to the L2 cache.
void ask_for(const float* weights, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i += 16) __builtin_prefetch(weights + i, 0, 2);
}
int64_t divided(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

Winograd::Winograd(const Cut& cut, SimdLevel level, int32_t threads)
    : cut_(cut),
      kernels_(winograd_kernels(level)),
      zeros_(static_cast<size_t>(cut.images.in), 0.0f),
      threads_(threads),
      down_(divided(cut.images.dst_size[0], 2)),
      across_(divided(cut.images.dst_size[1], 2)) {
  const Images& images = cut_.images;
  squares_ = images.count * down_ * across_;
  row_ = divided(images.in, 16) * 16 + kGap;
  shared_ = squares_ < threads * kPartSquares;
  const int64_t weight_floats = cut_.panels * kPositions * (images.in * cut_.kernels.columns + kGap);
  kept_ = !shared_ && weight_floats * 4 <= kKeptBytes;
  group_ = divided(squares_, groups_of(threads));
  groups_ = divided(squares_, group_);
  const int64_t chunks = kept_ ? 1 : divided(images.in, kChunk);
  chunk_ = divided(divided(images.in, chunks), cut_.kernels.lanes) * cut_.kernels.lanes;
  weights_ = chunk_ * cut_.kernels.columns + kGap;
  sums_ = group_ * cut_.kernels.columns + kGap;
  own_ = kPositions * ((kept_ ? 0 : weights_) + sums_ + (shared_ ? 0 : group_ * row_ + kGap));
}

int64_t Winograd::groups_of(int64_t threads) const {
  if (shared_) {
    const int64_t enough = std::min(divided(2 * threads, cut_.panels), divided(squares_, cut_.kernels.rows));
    return std::max(divided(squares_, kSharedGroup), enough);
  }
  const int64_t square_bytes = row_ * kPositions * static_cast<int64_t>(sizeof(float));
  const int64_t most = kept_ ? std::clamp<int64_t>(kSquareBytes / square_bytes, 28, 112) : kOwnGroup;
  const int64_t groups = divided(squares_, most);
  return groups < 8 * threads ? divided(groups, threads) * threads : groups;  // equal numbers per thread
}

bool Winograd::pays(const Cut& cut) {
  const Images& images = cut.images;
  for (int axis = 0; axis < 2; ++axis) {
    if (images.kernel[axis] != 3 || images.stride[axis] != 1 || images.dilation[axis] != 1) return false;
  }
  const int64_t squares = images.count * divided(images.dst_size[0], 2) * divided(images.dst_size[1], 2);
  return images.in >= kLeastChannels && images.out >= kLeastChannels && squares >= kLeastSquares;
}

uint64_t Winograd::workspace() const {
  return static_cast<uint64_t>(common_floats() + threads_ * own_) * sizeof(float);
}

int64_t Winograd::common_floats() const {
  if (shared_) return kPositions * (squares_ * row_ + kGap);
  return kept_ ? cut_.panels * kPositions * weights_ : 0;
}

int64_t Winograd::nanoseconds() const { return cut_.nanoseconds() / 2; }

void Winograd::run(int32_t width, const Operands& operands, float* room, const Direct& direct) const {
  const auto in_parts = [&](int64_t nanoseconds, const auto& body) { run_parts(width, nanoseconds, body); };
  float* own = room + common_floats();
  if (kept_) {
    in_parts(cut_.panels * chunk_ * 8, [&](int32_t part, int32_t parts) {
      for (int64_t panel = cut_.panels * part / parts; panel < cut_.panels * (part + 1) / parts; ++panel) {
        transform_weights(operands, panel, 0, room + panel * kPositions * weights_);
      }
    });
  }
  if (!shared_) {
    return in_parts(nanoseconds(), [&](int32_t part, int32_t parts) {
      float* mine = own + runner() * own_;
      float* values = mine + own_ - kPositions * (group_ * row_ + kGap);
      for (int64_t group = groups_ * part / parts; group < groups_ * (part + 1) / parts; ++group) {
        const int64_t first = group * group_;
        const Squares squares{first, std::min(group_, squares_ - first), values, group_ * row_ + kGap};
        transform(operands.src, squares);
        for (int64_t panel = 0; panel < cut_.panels; ++panel) {
          multiply(operands, squares, panel, kept_ ? room + panel * kPositions * weights_ : nullptr, mine, direct);
        }
      }
    });
  }
  const int64_t position = squares_ * row_ + kGap;
  in_parts(squares_ * row_ / 2, [&](int32_t part, int32_t parts) {
    const int64_t first = squares_ * part / parts;
    transform(operands.src, {first, squares_ * (part + 1) / parts - first, room + first * row_, position});
  });
  in_parts(nanoseconds(), [&](int32_t part, int32_t parts) {
    const int64_t all = cut_.panels * groups_;
    for (int64_t i = all * part / parts; i < all * (part + 1) / parts; ++i) {
      const int64_t first = i % groups_ * group_;
      const Squares squares{first, std::min(group_, squares_ - first), room + first * row_, position};
      multiply(operands, squares, i / groups_, nullptr, own + runner() * own_, direct);
    }
  });
}

int64_t Winograd::place_of(int64_t square, int64_t* y, int64_t* x) const {
  const Images& images = cut_.images;
  *x = square % across_ * 2;
  *y = square / across_ % down_ * 2;
  return (square / across_ / down_ * images.dst_size[0] + *y) * images.dst_size[1] + *x;
}

void Winograd::transform(const float* src, const Squares& squares) const {
  const Images& images = cut_.images;
  for (int64_t i = 0; i < squares.count; ++i) {
    int64_t top, left;
    place_of(squares.first + i, &top, &left);
    top -= images.pad[0];
    left -= images.pad[1];
    const int64_t image = (squares.first + i) / across_ / down_;
    WinogradSquare square;
    for (int64_t p = 0; p < kPositions; ++p) {
      const int64_t y = top + p / 4, x = left + p % 4;
      const bool inside = y >= 0 && y < images.src_size[0] && x >= 0 && x < images.src_size[1];
      const int64_t pixel = (image * images.src_size[0] + y) * images.src_size[1] + x;
      square.pixels[p] = inside ? src + pixel * images.in : zeros_.data();
    }
    square.dst = squares.values + i * row_;
    square.position = squares.position;
    square.channels = images.in;
    kernels_.square(square);
  }
}

// Transforms the weights of `chunk_` channels of a panel, starting at channel `begin`.
void Winograd::transform_weights(const Operands& operands, int64_t panel, int64_t begin, float* dst) const {
  const int64_t width = cut_.width(panel), depth = std::min(chunk_, cut_.images.in - begin);
  const float* src = operands.weights + panel * cut_.panel_floats() + begin * width;
  kernels_.weights({src, cut_.images.in * width, dst, weights_, depth * width});
}

void Winograd::multiply(const Operands& operands, const Squares& squares, int64_t panel, const float* kept, float* room,
                        const Direct& direct) const {
  float* sums = room + (kept_ ? 0 : kPositions * weights_);
  for (int64_t begin = 0; begin < cut_.images.in; begin += chunk_) {
    Chunk chunk{panel, begin, std::min(chunk_, cut_.images.in - begin), kept, nullptr, 0};
    if (!kept_) {
      transform_weights(operands, panel, begin, room);
      chunk.weights = room;
      // The weights to use next, of this panel or the next one.
      const bool last = begin + chunk_ >= cut_.images.in;
      chunk.next = operands.weights + (last ? panel + 1 : panel) * cut_.panel_floats();
      if (!last) chunk.next += (begin + chunk_) * cut_.width(panel);
      if (!last || panel + 1 < cut_.panels) chunk.next_floats = chunk.depth * cut_.width(panel);
    }
    multiply_chunk(chunk, squares, sums);
  }
  finish(operands, squares, panel, sums, direct);
}

// Adds the products over the channels of `chunk`, and prefetches the next weights.
void Winograd::multiply_chunk(const Chunk& chunk, const Squares& squares, float* sums) const {
  const int64_t blocks = divided(squares.count, cut_.kernels.rows);
  const int64_t tap = cut_.images.in * cut_.width(chunk.panel);
  const float* rows[kMostRows];
  Tile tile;
  tile.src = rows;
  tile.bias = nullptr;
  tile.dst_row = cut_.kernels.columns;
  tile.taps = tile.panels = 1;
  tile.panel_floats = 0;
  tile.depth = chunk.depth;
  tile.ahead = kAhead;
  tile.ahead_step = cut_.width(chunk.panel);
  tile.columns = static_cast<int32_t>(cut_.width(chunk.panel));
  tile.adds = chunk.begin > 0;
  tile.finishes = false;
  for (int64_t position = 0; position < kPositions; ++position) {
    tile.weights = chunk.weights + position * weights_;
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t first = squares.count * block / blocks, last = squares.count * (block + 1) / blocks;
      tile.rows = static_cast<int32_t>(last - first);
      for (int64_t i = first; i < last; ++i) {
        rows[i - first] = squares.values + position * squares.position + i * row_ + chunk.begin;
      }
      tile.dst = sums + position * sums_ + first * tile.dst_row;
      if (position < 9 && chunk.next_floats > 0) {
        const int64_t floats = chunk.next_floats;
        ask_for(chunk.next + position * tap, floats * block / blocks, floats * (block + 1) / blocks);
      }
      cut_.kernels.run(tile);
    }
  }
}

void Winograd::finish(const Operands& operands, const Squares& squares, int64_t panel, const float* sums,
                      const Direct& direct) const {
  const Images& images = cut_.images;
  const int64_t column = panel * cut_.kernels.columns;
  WinogradResults results;
  results.position = sums_;
  results.bias = operands.bias == nullptr ? nullptr : operands.bias + column;
  results.columns = static_cast<int32_t>(std::min<int64_t>(cut_.kernels.columns, images.out - column));
  results.finish = operands.finish;
  if (results.finish.other != nullptr) results.finish.other += column;
  results.dst = operands.dst + column;
  for (int64_t i = 0; i < squares.count; ++i) {
    int64_t y, x;
    const int64_t place = place_of(squares.first + i, &y, &x);
    const bool right = x + 1 < images.dst_size[1], below = y + 1 < images.dst_size[0];
    const int64_t line = place + images.dst_size[1];
    results.offsets[0] = place * images.out;
    results.offsets[1] = right ? (place + 1) * images.out : -1;
    results.offsets[2] = below ? line * images.out : -1;
    results.offsets[3] = right && below ? (line + 1) * images.out : -1;
    results.sums = sums + i * cut_.kernels.columns;
    if (kernels_.results(results)) continue;
    direct(panel, place, right ? 2 : 1);
    if (below) direct(panel, line, right ? 2 : 1);
  }
}

}  // namespace tenon::provider::cpu
