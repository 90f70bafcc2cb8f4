// Map: dst[...] = kernel(src[...], ...) over strided operands of any type. It walks the outer axes, brings blocks of
// the inner axis into the form kernels take (contiguous, compute type) where they are not in it already, and cuts the
// work among threads. Where all operands are contiguous and of the compute type the kernel runs on them directly.
#pragma once

#include <cstdint>

#include "providers/cpu/map/convert.h"
#include "providers/cpu/map/kernel.h"
#include "providers/cpu/primitive.h"
#include "providers/cpu/rows/kernel.h"

namespace tenon::provider::cpu {

inline constexpr int32_t map_max_operands = 4;  // dst and three sources

struct MapOperand {
  int32_t dtype = 0;
  int32_t block_dtype = 0;            // of the block a kernel sees
  int32_t size = 0;                   // bytes per element in storage
  int32_t block_size = 0;             // and in the block
  bool scalar = false;                // its value is launch scalar `index - 1`
  bool direct = false;                // block type and storage type have the same bits
  ConvertFunction convert = nullptr;  // between storage and block, any strides
};

struct MapPlan {
  MapFunction function = nullptr;  // NULL: the source block is the destination's
  const char* implementation = "simd";
  bool streams = false;         // the kernel itself can write past the cache
  int32_t picoseconds = 0;      // rough cost per element
  int32_t count = 0;            // operands: [0] dst, then sources
  bool has_parameters = false;  // launch scalars 0 and 1 are a and b
  int32_t fault_operand = 0;
  MapOperand operands[map_max_operands];
};

// The shape of one launch.
struct MapShape {
  int32_t rank = 0;
  int64_t dims[EP_MAX_RANK];
  int64_t strides[map_max_operands][EP_MAX_RANK];
};

class MapPrimitive final : public ep_primitive {
 public:
  MapPrimitive(const ep_device& on, const MapPlan& plan, const ep_primitive_desc& desc);
  ep_status launch(const ep_launch& launch, ep_fault* out_fault, ep_error** error) override;

 private:
  static constexpr int64_t shortest_block = 512;  // elements of any type that fit a block

  int64_t short_run(const ep_shape* shapes) const;
  void run_short(const ep_launch& launch, int64_t count, MapContext& context) const;
  bool run_gathered(const ep_launch& launch, MapContext& context) const;
  void run_walk(const ep_launch& launch, MapContext* context) const;
  bool is_transposition(const MapShape& shape) const;
  void transpose(const ep_launch& launch, const MapShape& shape) const;
  bool shares_memory(const ep_launch& launch) const;

  MapPlan plan_;
  MapShape shape_{};  // where the descriptor is static
  StreamCopy stream_copy_;
  bool short_run_possible_ = false;  // every operand has the bits its kernel wants
  int64_t short_count_ = -1;         // short_run() where the descriptor is static
};

}  // namespace tenon::provider::cpu
