// The steps after the sum of a matmul or convolution: the bias and up to four epilogues. The build sets BIAS_DTYPE (0:
// no bias) and for epilogue i ARITY_i (0: none), OP_i and DTYPE_i (0: the operand is a launch scalar).
#include "sdk/provider/opencl/prelude.cl"
#include "sdk/provider/opencl/elements.cl"
#include "sdk/provider/opencl/rows.cl"

// The operands of a product, in the order of its parameters.
enum { SLOT_DST, SLOT_A, SLOT_B, SLOT_BIAS, SLOT_EPILOGUE, SLOTS = SLOT_EPILOGUE + 4 };

static inline EP_T tail_scalar(ulong bits) {
#if defined(EP_FLOAT32)
  return as_float((uint)bits);
#elif defined(EP_FLOAT64)
  return as_double(bits);
#else
  return (EP_T)bits;
#endif
}

// FINISH(value, PLACE) applies bias and epilogues to `value`; PLACE(slot) is the offset of the result in a slot.
#define EPILOGUE(i, value, PLACE)                                                                                     \
  if (ARITY_##i == 1) {                                                                                               \
    (value) = ep_unary_row(OP_##i, value, tail_scalar(p.scalars[2 * i]), tail_scalar(p.scalars[2 * i + 1]));          \
  } else if (ARITY_##i == 2) {                                                                                        \
    (value) = ep_binary_row(OP_##i, value, DTYPE_##i != 0 ? ep_load(epilogue_##i, PLACE(SLOT_EPILOGUE + i), DTYPE_##i) \
                                                          : tail_scalar(p.scalars[2 * i]));                           \
  }
#define FINISH(value, PLACE)                                                                            \
  if (BIAS_DTYPE != 0) (value) = ep_add(value, ep_load(bias, PLACE(SLOT_BIAS), BIAS_DTYPE));            \
  EPILOGUE(0, value, PLACE)                                                                             \
  EPILOGUE(1, value, PLACE)                                                                             \
  EPILOGUE(2, value, PLACE)                                                                             \
  EPILOGUE(3, value, PLACE)

#define TAIL_ARGUMENTS                                                                                       \
  global const uchar *bias, global const uchar *epilogue_0, global const uchar *epilogue_1,                  \
      global const uchar *epilogue_2, global const uchar *epilogue_3
