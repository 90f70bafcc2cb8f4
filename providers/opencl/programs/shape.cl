// The parameters of a launch over elements, and the offset of element `index` in each operand. Operand 0 is the
// destination. Strides and offsets are in elements, in 64 bits.

#define MOST_OPERANDS 4

// Mirrors MapParameters of kernels/map.h.
struct map_parameters {
  ulong count;
  ulong offsets[MOST_OPERANDS];
  ulong scalars[3];
  ulong dims[8];
  ulong strides[MOST_OPERANDS][8];
  int rank;
  int op;
  int src_dtype;
  int dst_dtype;
  uint scalar_mask;  // bit i: input i is launch scalar i
  uint fault_slot;
};

struct places {
  ulong of[MOST_OPERANDS];
};

static inline struct places flat_places(const struct map_parameters* p, ulong index, int operands) {
  struct places at;
  for (int i = 0; i < operands; ++i) at.of[i] = p->offsets[i] + index;
  return at;
}
// Most indices fit 32 bits, where a division costs a fraction of a 64-bit one.
static inline struct places strided_places(const struct map_parameters* p, ulong index, int operands) {
  struct places at;
  for (int i = 0; i < operands; ++i) at.of[i] = p->offsets[i];
  if (index <= 0xffffffffu) {
    uint rest = (uint)index;
    for (int axis = p->rank - 1; axis > 0; --axis) {
      const uint quotient = rest / (uint)p->dims[axis];
      const uint position = rest - quotient * (uint)p->dims[axis];
      rest = quotient;
      for (int i = 0; i < operands; ++i) at.of[i] += position * p->strides[i][axis];
    }
    for (int i = 0; i < operands; ++i) at.of[i] += rest * p->strides[i][0];
    return at;
  }
  ulong rest = index;
  for (int axis = p->rank - 1; axis > 0; --axis) {
    const ulong quotient = rest / p->dims[axis];
    const ulong position = rest - quotient * p->dims[axis];
    rest = quotient;
    for (int i = 0; i < operands; ++i) at.of[i] += position * p->strides[i][axis];
  }
  for (int i = 0; i < operands; ++i) at.of[i] += rest * p->strides[i][0];
  return at;
}
