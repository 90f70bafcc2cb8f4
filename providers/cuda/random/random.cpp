#include "providers/cuda/random/random.h"

#include <string>

#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/reduction/axes.h"

namespace tenon::provider::cuda {
namespace {

class RandomPrimitive final : public ep_primitive {
 public:
  // `run` draws into contiguous memory, `strided` into any tensor.
  RandomPrimitive(const ep_primitive_desc& desc, CUfunction run, CUfunction strided)
      : desc_(desc), start_(find_operand(desc, EP_ROLE_SRC)), run_(run), strided_(strided) {}

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    RandomArguments random{};
    random.dst = address_of(launch.operands[0]);
    random.dtype = desc_.operands[0].dtype;
    if (start_ >= 0) {
      random.start = address_of(launch.operands[start_]);
      random.start_stride = shape_of(desc_.operands[start_], launch.shapes, static_cast<uint32_t>(start_)).strides[0];
    } else if (launch.scalar_count < 2) {
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT,
                       "random has no launch scalars 0 and 1, seed and offset.");
    } else {
      random.seed = launch.scalars[0].value.u64;
      random.offset = launch.scalars[1].value.u64;
    }
    random.axes = row_major_axes(shape_of(desc_.operands[0], launch.shapes, 0));
    const bool is_run = random.axes.rank == 1 && random.axes.dst[0] == 1;
    random.vector = is_run && rows_are_aligned(random.dst, dtype_size(random.dtype), {}, nullptr) ? 1 : 0;
    const int64_t chunks = (random.axes.count + map_chunk - 1) / map_chunk;
    return launch_kernel(stream, is_run ? run_ : strided_, blocks_for(chunks), &random, error);
  }

 private:
  ep_primitive_desc desc_;
  int32_t start_;
  CUfunction run_;
  CUfunction strided_;
};

const char* kernel_of(int32_t distribution, int32_t dtype) {
  const bool wide = dtype_size(dtype) == 8;
  if (distribution == EP_RANDOM_BITS) return wide ? "random_bits_8" : "random_bits_4";
  if (distribution == EP_RANDOM_NORMAL) return "random_normal";
  return wide ? "random_uniform_f64" : "random_uniform";
}

}  // namespace

Refusal Random::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const int32_t distribution = desc.attributes.random.distribution;
  const ep_operand_desc* start = operand(desc, EP_ROLE_SRC);
  if (desc.operand_count == 0 || desc.operands[0].role != EP_ROLE_DST ||
      desc.operand_count != (start == nullptr ? 1U : 2U))
    return Refusal::because("its operands are not DST, or DST and SRC");
  const int32_t dtype = desc.operands[0].dtype;
  const bool bits = distribution == EP_RANDOM_BITS;
  if (!bits && distribution != EP_RANDOM_UNIFORM && distribution != EP_RANDOM_NORMAL)
    return Refusal::because("distribution %d", distribution);
  const bool words = !is_floating(dtype) && dtype != EP_DTYPE_bool && dtype_size(dtype) >= 4;
  const bool narrow = class_of(dtype) == EP_DTYPE_f32;
  if (bits && !words) return Refusal::because("bits of %s", dtype_name(dtype));
  if (!bits && !narrow && (dtype != EP_DTYPE_f64 || distribution == EP_RANDOM_NORMAL))
    return Refusal::because("numbers of %s", dtype_name(dtype));
  if (start != nullptr && start->dtype != EP_DTYPE_i64)
    return Refusal::because("seed and offset of %s", dtype_name(start->dtype));
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Random::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const std::string name = kernel_of(desc.attributes.random.distribution, desc.operands[0].dtype);
  CUfunction run = nullptr;
  CUfunction strided = nullptr;
  if (Refusal refusal = find_kernel(device, Family::RANDOM, (name + "_run").c_str(), &run)) return refusal;
  if (Refusal refusal = find_kernel(device, Family::RANDOM, (name + "_strided").c_str(), &strided)) return refusal;
  *out = make_primitive<RandomPrimitive>(device, desc, run, strided);
  return {};
}

}  // namespace tenon::provider::cuda
