// A group of 16 x 16 work-items computes a tile of 64 x 64 results, 4 x 4 each, from slices of 16 along k in local
// memory. Matmul and convolution fill the slices.

#define TILE 64
#define SLICE 16
// Without the padding, a slice that is contiguous along k would be written to one bank of local memory.
#define PITCH (TILE + 4)

#if (defined(EP_FLOAT32) && defined(FP_FAST_FMAF)) || (defined(EP_FLOAT64) && defined(FP_FAST_FMA))
#define ACCUMULATE(sum, x, y) (sum) = fma(x, y, sum)
#else
#define ACCUMULATE(sum, x, y) (sum) = ep_add(sum, ep_mul(x, y))
#endif

static inline void multiply_slice(local const EP_T* slice_a, local const EP_T* slice_b, EP_T* sums, int my_row,
                                  int my_column) {
  for (int k = 0; k < SLICE; ++k) {
    EP_T a[4];
    EP_T b[4];
    for (int i = 0; i < 4; ++i) {
      a[i] = slice_a[k * PITCH + my_row + i];
      b[i] = slice_b[k * PITCH + my_column + i];
    }
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) ACCUMULATE(sums[4 * i + j], a[i], b[j]);
    }
  }
}
