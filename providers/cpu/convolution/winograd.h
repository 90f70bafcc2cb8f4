// Winograd: a convolution with 3 x 3 taps by F(2x2, 3x3), which needs 16 multiplications instead of 36.
//
// SRC is divided into squares of 4 x 4 pixels that overlap by two; each yields 2 x 2 results. Squares and weights are
// transformed, a matrix product (squares x channels by channels x columns) runs for each of the 16 positions, and the
// sums are transformed into results. Weights are packed as for the direct method and transformed panel by panel at each
// launch, in the L2 cache: transformed weights are 16/9 as large, so reading them from memory would take longer.
//
// An infinite or NaN input affects all results of its square. So results whose sums are not all finite are computed by
// the direct method instead.
#pragma once

#include <functional>

#include "providers/cpu/convolution/cut.h"
#include "providers/cpu/convolution/winograd_kernel.h"

namespace tenon::provider::cpu {

class Winograd {
 public:
  struct Operands {
    const float* src;
    const float* weights;  // packed as Cut describes
    const float* bias;     // NULL: none
    float* dst;
    Finish finish;
  };
  // Computes `count` adjacent results of panel `panel`, starting at result `pixel`.
  using Direct = std::function<void(int64_t panel, int64_t pixel, int32_t count)>;

  // `cut` must outlive the object.
  Winograd(const Cut& cut, SimdLevel level, int32_t threads);

  // True if Winograd's method is faster than the direct method.
  static bool pays(const Cut& cut);

  uint64_t workspace() const;
  int64_t nanoseconds() const;
  // Runs on `width` threads; `room` holds workspace() bytes.
  void run(int32_t width, const Operands& operands, float* room, const Direct& direct) const;

 private:
  // Squares [first, first + count), and the address of their transforms.
  struct Squares {
    int64_t first, count;
    float* values;
    int64_t position;  // elements between positions
  };

  // Channels [begin, begin + depth) of a panel.
  struct Chunk {
    int64_t panel, begin, depth;
    const float* weights;  // transformed
    const float* next;     // the weights to use next, for prefetching
    int64_t next_floats;   // floats of each tap
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
  // Returns the number of the first result of square `square`, counted over all images, and its row and column in its
  // image.
  int64_t place_of(int64_t square, int64_t* y, int64_t* x) const;

  const Cut& cut_;
  WinogradKernels kernels_;
  std::vector<float> zeros_;
  int32_t threads_;
  int64_t squares_, down_, across_;
  int64_t row_;      // elements between transformed squares
  bool shared_;      // true: all squares are transformed before any multiplication
  bool kept_;        // true: all weights are transformed before any square
  int64_t group_;    // squares multiplied by the same transformed weights
  int64_t groups_;   // number of groups of squares
  int64_t chunk_;    // channels of transformed weights per chunk
  int64_t weights_;  // elements between positions of transformed weights
  int64_t sums_;     // elements between positions of sums
  int64_t own_;      // floats of workspace per thread
};

}  // namespace tenon::provider::cpu
