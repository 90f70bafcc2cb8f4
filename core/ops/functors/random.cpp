// Random numbers, from a seed and an offset, or from the default generator.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "core/ops/functors/apply.h"
#include "core/ops/functors/half.h"
#include "core/tensor/generator.h"
#include "core/tensor/host_watch.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

bool holds_bits(DType dtype) {
  return dtype == DType::i32 || dtype == DType::u32 || dtype == DType::i64 || dtype == DType::u64;
}

bool holds_normals(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

// `size` as the shape of a result of `op`.
Dims shape_of(std::string_view op, IntList size) { return value_or_throw(infer::checked(op, dims_of(op, size))); }

// Writes random numbers into a new tensor of `dims`, or into `given`, which has these dims, this dtype and this device.
Tensor numbers(OpId id, const Dims& dims, RandomRange range, DType dtype, Device device, const Tensor& given = {}) {
  const std::string_view op = op_row(id).name;
  const bool normal = id == OpId::philox_normal;
  const bool bits = id == OpId::philox_bits;
  if (bits && !holds_bits(dtype)) {
    refuse(op, "random bits are i32, u32, i64 or u64, not {}.", dtype_name(dtype));
  }
  if (!bits && !holds_normals(dtype) && dtype != DType::f64) {
    refuse(op, "random numbers are f32, f64, f16 or bf16, not {}.", dtype_name(dtype));
  }
  if (normal && dtype == DType::f64) {
    const Tensor narrow = numbers(id, dims, range, DType::f32, device);
    Tensor wide = given;
    return wide.defined() ? tenon::copy_(wide, narrow) : tenon::cast(narrow, dtype);
  }
  RandomAttributes attributes{};
  attributes.dims = DimsAttribute::of({dims.data(), dims.size()});
  attributes.dtype = dtype;
  attributes.distribution = bits ? EP_RANDOM_BITS : normal ? EP_RANDOM_NORMAL : EP_RANDOM_UNIFORM;
  const Scalar scalars[] = {Scalar(static_cast<int64_t>(range.seed)), Scalar(static_cast<int64_t>(range.offset))};
  Tensor result = given;
  OpCall call;
  call.op = &op_row(id);
  call.scalars = scalars;
  call.attributes = &attributes;
  call.device = device.state();
  call.outputs = {&result, 1};
  current_interpreter().apply(call);
  return result;
}

RandomRange given(int64_t seed, int64_t offset) { return {static_cast<uint64_t>(seed), static_cast<uint64_t>(offset)}; }

// Reserves the next numbers of `generator`, or of the default one, for a tensor of `dims`.
RandomRange next(std::string_view op, const Dims& dims, DType dtype, Generator* generator) {
  const auto count = static_cast<uint64_t>(element_count(dims));
  const uint64_t per_block = dtype_size(dtype) == 8 ? 2 : 4;
  const uint64_t blocks = count / per_block + (count % per_block != 0 ? 1 : 0);
  if (generator != nullptr && call_context.host_watch != nullptr) {
    refuse(op, "a recorded program draws only from the default generator, so it cannot take one as an argument.");
  }
  if (generator != nullptr) return generator->reserve(blocks);
  return call_context.host_watch != nullptr ? call_context.host_watch->draw(blocks)
                                            : default_generator().reserve(blocks);
}

void require_floating(std::string_view op, std::string_view name, const Tensor& x) {
  require_defined(op, name, x);
  if (!is_floating(x.dtype())) refuse(op, "{} is {} but must be floating-point.", name, dtype_name(x.dtype()));
}

// True if the elements of `x` may be read: not on an asynchronous device, where that would wait, and not in a program
// that is being recorded.
bool at_hand(const Tensor& x) {
  return x.elements() != 0 && x.device().synchronous() && current_interpreter().host_value_known(x);
}

struct Extremes {
  double least, most;
};

// The least and the greatest element, both NaN if one is NaN. Reads a few elements directly.
Extremes extremes_of(const Tensor& x) {
  constexpr int64_t few = 64;
  if (x.dtype() != DType::f32 || x.elements() > few) {
    return {tenon::amin(x).item().to_double(), tenon::amax(x).item().to_double()};
  }
  float values[few];
  x.copy_to_host(values);
  float least = values[0], most = values[0];
  for (int64_t i = 0; i < x.elements(); ++i) {
    if (std::isunordered(values[i], values[i])) return {values[i], values[i]};
    least = std::min(least, values[i]);
    most = std::max(most, values[i]);
  }
  return {least, most};
}

// Throws for elements outside [0, 1], including NaN.
void require_probabilities(std::string_view op, std::string_view name, const Tensor& x) {
  if (!at_hand(x)) return;
  const Extremes extremes = extremes_of(without_history(x));
  for (const double value : {extremes.least, extremes.most}) {
    if (!(value >= 0 && value <= 1)) {
      refuse(op, "{} has the element {}; probabilities must be within 0 and 1.", name, value);
    }
  }
}

void require_probability(std::string_view op, double p) {
  if (!(p >= 0 && p <= 1)) refuse(op, "p is {}; it must be within 0 and 1.", p);
}

// Throws for weights that are negative, infinite or NaN, and for a row of zeros.
void require_weights(std::string_view op, const Tensor& x) {
  if (!at_hand(x)) return;
  const Tensor greatest = tenon::amax(without_history(x), -1);
  const Extremes rows = extremes_of(greatest);
  for (const double value : {extremes_of(without_history(x)).least, rows.most}) {
    if (!(value >= 0 && value <= std::numeric_limits<double>::max())) {
      refuse(op, "input has the element {}; weights must be finite and at least 0.", value);
    }
  }
  if (rows.least == 0) refuse(op, "the weights of a row of input are all 0; one must be above 0.");
}

// Overwrites `input` with numbers * width + start. For halves, draws and computes in f32.
Tensor& spread(std::string_view op, OpId id, Tensor& input, DType drawn, double width, double start,
               Generator* generator) {
  const Dims& dims = input.dims();
  const RandomRange range = next(op, dims, drawn, generator);
  const bool wide = is_half(input.dtype()) && (width != 1 || start != 0);
  Tensor result = wide ? numbers(id, dims, range, DType::f32, input.device())
                       : numbers(id, dims, range, input.dtype(), input.device(), input);
  if (width != 1) tenon::mul_(result, Scalar(width));
  if (start != 0) tenon::add_(result, Scalar(start));
  return wide ? tenon::copy_(input, result) : input;
}

struct Precision {
  int digits;    // bits of the significand
  double least;  // least positive number
};
Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return {53, 0x1p-1074};
    case DType::f32: return {24, 0x1p-149};
    case DType::f16: return {11, 0x1p-24};
    default: return {8, 0x1p-133};
  }
}

// The greatest number of `dtype` below `end`.
double greatest_below(double end, DType dtype) {
  const Precision precision = precision_of(dtype);
  int exponent = 0;
  const double fraction = std::frexp(end, &exponent);
  // Below a power of two, numbers are twice as dense.
  const int bits = fraction == 0.5 ? precision.digits + 1 : precision.digits;
  const double step = std::max(std::ldexp(1.0, exponent - bits), precision.least);
  const double whole = std::floor(end / step) * step;
  return whole < end ? whole : whole - step;
}

// The upper 64 bits of words * factor, of u64.
Tensor upper_product(const Tensor& words, uint64_t factor) {
  constexpr uint64_t low = 0xffffffff;
  const Scalar half(uint64_t{32}), mask(low);
  const Tensor upper = tenon::bitwise_right_shift(words, half), lower = tenon::bitwise_and(words, mask);
  const Scalar factor_upper(factor >> 32), factor_lower(factor & low);
  const Tensor first =
      tenon::add(tenon::mul(upper, factor_lower), tenon::bitwise_right_shift(tenon::mul(lower, factor_lower), half));
  const Tensor second = tenon::add(tenon::mul(lower, factor_upper), tenon::bitwise_and(first, mask));
  const Tensor carried = tenon::add(tenon::bitwise_right_shift(first, half), tenon::bitwise_right_shift(second, half));
  return tenon::add(tenon::mul(upper, factor_upper), carried);
}

// Integers in [0, count), as u64: a number of 128 random bits in [0, 1) times count, rounded down.
Tensor integers_below(uint64_t count, const Dims& dims, Device device, Generator* generator) {
  const auto words = [&] {
    return numbers(OpId::philox_bits, dims, next("randint", dims, DType::u64, generator), DType::u64, device);
  };
  const Tensor first = words();
  const Tensor part = tenon::mul(first, Scalar(count));  // the fraction, in units of 2^-64
  const Tensor carry = tenon::lt(tenon::add(part, upper_product(words(), count)), part);
  return tenon::add(upper_product(first, count), tenon::cast(carry, DType::u64));
}

}  // namespace

Tensor philox_uniform(IntList size, int64_t seed, int64_t offset, DType dtype, Device device) {
  return numbers(OpId::philox_uniform, shape_of("philox_uniform", size), given(seed, offset), dtype, device);
}

Tensor philox_normal(IntList size, int64_t seed, int64_t offset, DType dtype, Device device) {
  return numbers(OpId::philox_normal, shape_of("philox_normal", size), given(seed, offset), dtype, device);
}

Tensor philox_bits(IntList size, int64_t seed, int64_t offset, DType dtype, Device device) {
  return numbers(OpId::philox_bits, shape_of("philox_bits", size), given(seed, offset), dtype, device);
}

Tensor randint(int64_t low, int64_t high, IntList size, DType dtype, Device device, Generator* generator) {
  if (high <= low) refuse("randint", "high is {}; it must be above low ({}).", high, low);
  const uint64_t count = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const Dims dims = shape_of("randint", size);
  constexpr uint64_t few = uint64_t{1} << 40;  // with 63 bits, the bias of a remainder is negligible
  if (count > few) {
    const Tensor drawn = integers_below(count, dims, device, generator);
    return tenon::cast(tenon::cast(tenon::add(drawn, Scalar(static_cast<uint64_t>(low))), DType::i64), dtype);
  }
  const Tensor words =
      numbers(OpId::philox_bits, dims, next("randint", dims, DType::i64, generator), DType::i64, device);
  // The upper 63 bits are not negative, so the remainder is not either.
  const Tensor upper = tenon::bitwise_and(words, Scalar(std::numeric_limits<int64_t>::max()));
  const Scalar width(static_cast<int64_t>(count));
  return tenon::cast(tenon::add(tenon::remainder(upper, width), Scalar(low)), dtype);
}

Tensor randint(int64_t high, IntList size, DType dtype, Device device, Generator* generator) {
  return functors::randint(0, high, size, dtype, device, generator);
}

Tensor randint_like(const Tensor& input, int64_t low, int64_t high, DType dtype) {
  require_defined("randint_like", "input", input);
  return tenon::randint(low, high, input.dims(), dtype == DType::none ? input.dtype() : dtype, input.device());
}

Tensor normal(const Tensor& mean, const Tensor& std, Generator* generator) {
  require_defined("normal", "mean", mean);
  require_defined("normal", "std", std);
  if (at_hand(std)) {
    const double least = extremes_of(without_history(std)).least;
    if (!(least >= 0)) refuse("normal", "std has the element {}; standard deviations must be at least 0.", least);
  }
  const Tensor zeros = tenon::mul(tenon::add(mean, std), Scalar(0.0));
  const DType dtype = is_floating(zeros.dtype()) ? zeros.dtype() : DType::f32;
  return tenon::add(tenon::mul(tenon::randn(zeros.dims(), dtype, zeros.device(), generator), std), mean);
}

Tensor exponential(const Tensor& input, double lambd, Generator* generator) {
  require_defined("exponential", "input", input);
  if (!(lambd > 0)) refuse("exponential", "lambd is {}; it must be above 0.", lambd);
  const DType dtype = is_floating(input.dtype()) ? input.dtype() : DType::f32;
  // u is in (0, 1), so that the result is neither infinite nor 0.
  const Tensor drawn = tenon::rand(input.dims(), dtype, input.device(), generator);
  const Tensor u = tenon::maximum(drawn, Scalar(dtype == DType::f64 ? 0x1p-54 : 0x1p-25));
  return tenon::mul(tenon::log1p(tenon::neg(u)), Scalar(-1 / lambd));
}

// Exponential random numbers divided by weights: the least is at each position with the probability of its weight.
Tensor multinomial(const Tensor& input, int64_t num_samples, bool replacement, Generator* generator) {
  require_defined("multinomial", "input", input);
  if (input.rank() < 1 || input.rank() > 2) refuse("multinomial", "input {} must have rank 1 or 2.", input.dims());
  if (num_samples < 1) refuse("multinomial", "num_samples is {}; it must be at least 1.", num_samples);
  const int64_t places = input.dims()[input.rank() - 1];
  if (places == 0 || (!replacement && num_samples > places)) {
    refuse("multinomial", "{} samples cannot be drawn from {} places{}.", num_samples, places,
           replacement ? "" : " without replacement");
  }
  const Tensor weights = is_floating(input.dtype()) ? input : tenon::cast(input, DType::f32);
  require_weights("multinomial", weights);
  if (!replacement) {
    // The order in which exponential times with rates `weights` end is the order of draws without replacement.
    const Tensor rates = tenon::cast(weights, DType::f64);
    const Tensor race = tenon::div(rates, tenon::exponential(rates, 1.0, generator));
    return std::get<1>(tenon::topk(tenon::where(tenon::gt(weights, Scalar(0)), race, Scalar(-1)), num_samples));
  }
  const Tensor ends = tenon::cumsum(tenon::cast(input, DType::f64), -1);
  Dims dims = input.dims();
  dims[input.rank() - 1] = num_samples;
  const Tensor numbers = tenon::rand(dims, DType::f64, input.device(), generator);
  const Tensor drawn = tenon::mul(numbers, tenon::narrow(ends, -1, places - 1, 1));
  // If all weights are 0, no end lies after the drawn number.
  return tenon::minimum(tenon::searchsorted(ends, drawn, false, true), Scalar(places - 1));
}

Tensor rand(IntList size, DType dtype, Device device, Generator* generator) {
  const Dims dims = shape_of("rand", size);
  return numbers(OpId::philox_uniform, dims, next("rand", dims, dtype, generator), dtype, device);
}

Tensor randn(IntList size, DType dtype, Device device, Generator* generator) {
  const Dims dims = shape_of("randn", size);
  return numbers(OpId::philox_normal, dims, next("randn", dims, DType::f32, generator), dtype, device);
}

Tensor randperm(int64_t n, DType dtype, Device device, Generator* generator) {
  if (n < 0) refuse("randperm", "n is {}; it must be at least 0.", n);
  if (!is_integer(dtype) && !is_floating(dtype)) refuse("randperm", "{} does not hold numbers.", dtype_name(dtype));
  // Two of n random numbers of 64 bits are equal once in 2^65 / n^2 calls; they keep the order of their positions.
  const Dims dims = shape_of("randperm", n);
  const Tensor keys =
      numbers(OpId::philox_bits, dims, next("randperm", dims, DType::i64, generator), DType::i64, device);
  return tenon::cast(tenon::argsort(keys, 0, false, true), dtype);
}

Tensor& uniform_(Tensor& input, double from, double to, Generator* generator) {
  require_floating("uniform_", "input", input);
  if (!(from <= to)) refuse("uniform_", "from ({}) is greater than to ({}).", from, to);
  spread("uniform_", OpId::philox_uniform, input, input.dtype(), to - from, from, generator);
  // The sum may have been rounded up to the end. For f32 or f64, a product without a sum never is.
  const bool rounds_up = from != 0 || (is_half(input.dtype()) && to != 1);
  if (from == to || !rounds_up) return input;
  return tenon::minimum_(input, Scalar(std::max(greatest_below(to, input.dtype()), from)));
}

Tensor& normal_(Tensor& input, double mean, double std, Generator* generator) {
  require_floating("normal_", "input", input);
  if (!(std >= 0)) refuse("normal_", "std is {}; it must be at least 0.", std);
  return spread("normal_", OpId::philox_normal, input, DType::f32, std, mean, generator);
}

Tensor rand_like(const Tensor& input, DType dtype) {
  require_defined("rand_like", "input", input);
  return tenon::rand(input.dims(), dtype == DType::none ? input.dtype() : dtype, input.device());
}

Tensor randn_like(const Tensor& input, DType dtype) {
  require_defined("randn_like", "input", input);
  return tenon::randn(input.dims(), dtype == DType::none ? input.dtype() : dtype, input.device());
}

Tensor bernoulli(const Tensor& input, Generator* generator) {
  require_defined("bernoulli", "input", input);
  if (!is_floating(input.dtype())) {
    refuse("bernoulli", "input must be floating-point probabilities, not {}.", dtype_name(input.dtype()));
  }
  require_probabilities("bernoulli", "input", input);
  return tenon::cast(tenon::lt(tenon::rand(input.dims(), DType::f32, input.device(), generator), input), input.dtype());
}

Tensor bernoulli(const Tensor& input, double p, Generator* generator) {
  require_defined("bernoulli", "input", input);
  require_probability("bernoulli", p);
  return tenon::cast(tenon::lt(tenon::rand(input.dims(), DType::f32, input.device(), generator), Scalar(p)),
                     input.dtype());
}

Tensor& bernoulli_(Tensor& input, const Tensor& p, Generator* generator) {
  require_defined("bernoulli_", "input", input);
  require_floating("bernoulli_", "p", p);
  require_probabilities("bernoulli_", "p", p);
  const Tensor numbers = tenon::rand(input.dims(), DType::f32, input.device(), generator);
  overwrite("bernoulli_", input, tenon::lt(numbers, p));
  return input;
}

Tensor& bernoulli_(Tensor& input, double p, Generator* generator) {
  require_defined("bernoulli_", "input", input);
  require_probability("bernoulli_", p);
  return tenon::copy_(input, tenon::lt(tenon::rand(input.dims(), DType::f32, input.device(), generator), Scalar(p)));
}

Tensor dropout(const Tensor& input, double p, bool training) {
  require_defined("dropout", "input", input);
  require_probability("dropout", p);
  if (!training || p == 0) return input;
  if (p == 1) return tenon::mul(input, Scalar(0.0));
  const Tensor kept = tenon::ge(tenon::rand(input.dims(), DType::f32, input.device()), Scalar(p));
  return tenon::where(kept, tenon::mul(input, Scalar(1 / (1 - p))), Scalar(0.0));
}

Tensor rrelu(const Tensor& input, double lower, double upper, bool training) {
  require_floating("rrelu", "input", input);
  if (!(lower <= upper)) refuse("rrelu", "lower ({}) is greater than upper ({}).", lower, upper);
  if (!training) return tenon::leaky_relu(input, (lower + upper) / 2);
  const Tensor slopes = tenon::add(tenon::mul(tenon::rand_like(input), Scalar(upper - lower)), Scalar(lower));
  return tenon::where(tenon::ge(input, Scalar(0)), input, tenon::mul(input, slopes));
}

}  // namespace tenon::functors
