// Shared by matmul and convolution: their operands by slot, their dtypes, bias and epilogues.
#pragma once

#include <array>
#include <string>

#include "providers/opencl/kernels/element.h"
#include "providers/opencl/primitive.h"

namespace tenon::provider::opencl {

// Indices of operands in programs/tail.cl.
enum Slot : int32_t {
  SLOT_DST,
  SLOT_A,
  SLOT_B,
  SLOT_BIAS,
  SLOT_EPILOGUE,
  product_slots = SLOT_EPILOGUE + EP_MAX_EPILOGUES
};

// Work-items per group, and results along each side of a tile: programs/tile.cl.
inline constexpr uint64_t tile_group = 256;
inline constexpr uint64_t tile_side = 64;
inline uint64_t tiles_for(uint64_t n) { return (n + tile_side - 1) / tile_side; }

class ProductOperands {
 public:
  // `a` and `b` are the roles of the factors.
  ProductOperands(const ep_primitive_desc& desc, int32_t a, int32_t b);

  // The operand number for a slot; -1 if the descriptor has none.
  int32_t at(int32_t slot) const { return found_[static_cast<size_t>(slot)]; }
  // Refuses missing and unknown operands, unsupported combinations of types, and epilogues that no kernel has.
  Refusal check(const ep_device& device, const ep_primitive_desc& desc) const;
  // The compiler options for the types, the bias and the epilogues.
  std::string options(const ep_device& device, const ep_primitive_desc& desc) const;
  // Reads the blocks, first elements and scalars of a launch, for each slot.
  void read(const ep_primitive_desc& desc, const ep_launch& launch, std::array<cl_mem, product_slots>* buffers,
            uint64_t (&offsets)[product_slots], uint64_t (&scalars)[2 * EP_MAX_EPILOGUES]) const;

 private:
  std::array<int32_t, product_slots> found_{};
};

}  // namespace tenon::provider::opencl
