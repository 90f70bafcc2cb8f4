// Winograd: a convolution of 3 x 3 taps by F(2x2, 3x3), which multiplies 16 times where the direct way does 36 times.
//
// SRC is cut into squares of 4 x 4 pixels, which overlap by two; each gives 2 x 2 results. Squares and weights are
// transformed, one product of matrices per position of the square (squares x channels by channels x columns) follows,
// and its sums are transformed into results. Weights are packed as for the direct way and transformed at each launch,
// panel by panel, in the L2 cache: transformed ones are 16/9 as large, and memory gives them no faster.
//
// An input that is infinite or NaN spreads over its square. So results whose sums are not all finite are not stored but
// computed the direct way.
#pragma once

#include <functional>

#include "providers/cpu/convolution/cut.h"
#include "providers/cpu/convolution/winograd_kernel.h"

namespace tenon::provider::cpu {

class Winograd {
 public:
  struct Operands {
    const float* src;
    const float* weights;  // packed as Cut says
    const float* bias;     // NULL: none
    float* dst;
    Finish finish;
  };
  // Computes `count` results of panel `panel` that follow each other from number `pixel` on.
  using Direct = std::function<void(int64_t panel, int64_t pixel, int32_t count)>;

  // `cut` outlives it.
  Winograd(const Cut& cut, SimdLevel level, int32_t threads);

  // True if it is faster than the direct way.
  static bool pays(const Cut& cut);

  uint64_t workspace() const;
  int64_t nanoseconds() const;
  // On `width` threads, with `room` of workspace() bytes.
  void run(int32_t width, const Operands& operands, float* room, const Direct& direct) const;

 private:
  // Squares [first, first + count), and where they are once they are transformed.
  struct Squares {
    int64_t first, count;
    float* values;
    int64_t position;  // elements from position to position
  };

  // Channels [begin, begin + depth) of a panel.
  struct Chunk {
    int64_t panel, begin, depth;
    const float* weights;  // transformed
    const float* next;     // the weights that come next
    int64_t next_floats;   // of each tap
  };

  int64_t groups_of(int64_t threads) const;
  int64_t common_floats() const;
  void transform(const float* src, const Squares& squares) const;
  void transform_weights(const Operands& operands, int64_t panel, int64_t begin, float* dst) const;
  void multiply(const Operands& operands, const Squares& squares, int64_t panel, const float* kept, float* room,
                const Direct& direct) const;
  void multiply_chunk(const Chunk& chunk, const Squares& squares, float* sums) const;
  void finish(const Operands& operands, const Squares& squares, int64_t panel, const float* sums,
              const Direct& direct) const;
  // Number of the first result of square `square` of all images; its row and column in its image.
  int64_t place_of(int64_t square, int64_t* y, int64_t* x) const;

  const Cut& cut_;
  WinogradKernels kernels_;
  std::vector<float> zeros_;
  int32_t threads_;
  int64_t squares_, down_, across_;
  int64_t row_;      // elements from square to square of transformed ones
  bool shared_;      // all squares are transformed before any is multiplied
  bool kept_;        // all weights are transformed before any square
  int64_t group_;    // squares that are multiplied by the same transformed weights
  int64_t groups_;   // of all squares
  int64_t chunk_;    // channels of transformed weights
  int64_t weights_;  // elements from position to position of transformed weights
  int64_t sums_;     // the same of sums
  int64_t own_;      // floats of room of one thread
};

}  // namespace tenon::provider::cpu
