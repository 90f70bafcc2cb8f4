// Map: dst[...] = kernel(src[...], ...) over strided operands of any type. Map walks the outer axes, converts each
// block of the inner axis to contiguous elements of the compute type, and divides the work among threads. Operands that
// are contiguous and of the compute type go to the kernel in place.
#pragma once

#include <cstdint>

#include "providers/cpu/elementwise/convert.h"
#include "providers/cpu/elementwise/kernel.h"
#include "providers/cpu/elementwise/vector_cast.h"
#include "providers/cpu/primitive.h"
#include "providers/cpu/rows/kernel.h"

namespace tenon::provider::cpu {

inline constexpr int32_t map_max_operands = 4;  // dst and three sources

struct MapOperand {
  int32_t dtype = 0;
  int32_t block_dtype = 0;            // type of the blocks that the kernel sees
  int32_t size = 0;                   // bytes per element in storage
  int32_t block_size = 0;             // bytes per element in a block
  bool scalar = false;                // the value is launch scalar `index - 1`
  bool direct = false;                // block type and storage type have the same bits
  ConvertFunction convert = nullptr;  // converts between storage and block, for any strides
};

struct MapPlan {
  MapFunction function = nullptr;  // NULL: a copy; the source block is the destination block
  const char* implementation = "simd";
  bool streams = false;             // true: the kernel can write past the cache
  bool takes_single = false;        // true: the kernel can repeat a source of one element
  bool takes_scalar = false;        // true: the kernel can repeat a scalar
  bool takes_first_single = false;  // true: the kernel can repeat the first of three sources
  bool takes_two_scalars = false;   // true: the kernel can repeat the last two of three sources if both are scalars
  int32_t picoseconds = 0;          // estimated cost per element
  int32_t count = 0;                // number of operands: [0] is dst, then the sources
  bool has_parameters = false;      // launch scalars 0 and 1 are the parameters a and b
  int32_t fault_operand = 0;
  MapOperand operands[map_max_operands];
  void (*stream_cast)(void* dst, const void* src, int64_t n) = nullptr;  // for a copy: VectorCast::stream
  FillFunction fills[map_max_operands] = {};  // repeat one element of a direct operand; NULL: use `convert`
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
  static constexpr int64_t shortest_block = 512;  // a block holds at least this many elements of any type

  int64_t short_run(const ep_shape* shapes) const;
  const void* scalar_source(int32_t i, const ep_launch& launch, int64_t count, MapContext& context, char* block) const;
  void run_short(const ep_launch& launch, int64_t count, MapContext& context) const;
  void run_converted(const ep_launch& launch, int64_t count, MapContext& context) const;
  bool run_gathered(const ep_launch& launch, MapContext& context) const;
  void run_walk(const ep_launch& launch, MapContext* context) const;
  bool moves_short_runs(const MapShape& shape) const;
  void move(const ep_launch& launch, const MapShape& shape) const;
  bool shares_memory(const ep_launch& launch) const;

  MapPlan plan_;
  MapShape shape_{};  // set if the descriptor is static
  StreamCopy stream_copy_;
  bool all_direct_ = false;   // every operand has the type of its block
  int64_t short_count_ = -1;  // short_run() if the descriptor is static
};

}  // namespace tenon::provider::cpu
