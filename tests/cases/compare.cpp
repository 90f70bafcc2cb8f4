#include "tests/cases/compare.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "primitives/reference/reference.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"
#include "tests/cases/distance.h"
#include "tests/cases/element.h"
#include "tests/cases/range.h"

namespace tenon::cases {
namespace {

// True if `bits` can only be poison: NaN or a huge number where the expected value is neither.
bool is_poisoned(DType dtype, uint64_t bits, uint64_t want) {
  if (!is_floating(dtype)) return false;
  const double greatest = greatest_finite(dtype) / 4;
  return !(std::fabs(decode_float(dtype, bits)) < greatest) && std::fabs(decode_float(dtype, want)) < greatest;
}

constexpr std::string_view poison_hint =
    "\n  NaN and huge numbers stand in the outputs before a launch, and between and beside the elements of all "
    "operands";

// The operands whose element at an index determines the output's element there; none for kinds that mix elements.
bool is_elementwise(int32_t kind) {
  return kind == EP_PRIMITIVE_copy || kind == EP_PRIMITIVE_unary || kind == EP_PRIMITIVE_binary ||
         kind == EP_PRIMITIVE_ternary;
}

// The bits of input `i` that determine the output's element at `index`, before the launch.
uint64_t input_bits(const Case& test, const ep_primitive_desc& desc, uint32_t i, const Image& start,
                    const int64_t* index) {
  const ep_operand_desc& operand = desc.operands[i];
  if ((operand.flags & EP_OPERAND_FLAG_SCALAR) == 0) {
    const reference::Operand view = {&operand, nullptr, nullptr};
    return raw_bits(type_of(operand), start.bytes.data() + start.offsets[i], view.at(index));
  }
  const ep_scalar& scalar = test.scalars[static_cast<size_t>(operand.role - EP_ROLE_SRC)];
  return is_floating(type_of(operand)) ? encode_float(type_of(operand), scalar.value.f64) : scalar.value.u64;
}

// " of src 0.5 and src_b 2", or empty for kinds that mix elements.
std::string inputs_text(const Case& test, const ep_primitive_desc& desc, const Image& start, const int64_t* index) {
  if (!is_elementwise(desc.kind)) return {};
  std::string text;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (table::is_output(desc.kind, operand.role)) continue;
    text += fmt::format("{} {} {}", text.empty() ? " of" : " and", table::role_name(operand.role),
                        value_text(type_of(operand), input_bits(test, desc, i, start, index)));
  }
  return text;
}

// The image before the launch, in which every denormal element of an input with a flushed dtype is 0.
Image flushed_inputs(const ep_primitive_desc& desc, const Accuracy& accuracy, Image image,
                     std::set<std::pair<DType, uint64_t>>* denormals) {
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    const bool scalar = (operand.flags & EP_OPERAND_FLAG_SCALAR) != 0;
    if (scalar || table::is_output(desc.kind, operand.role) || !accuracy.flushes(type_of(operand))) continue;
    for_each_element(operand, [&](int64_t, int64_t place, const int64_t*) {
      const uint64_t bits = raw_bits(type_of(operand), image.address(i), place);
      if (is_denormal(type_of(operand), bits)) {
        denormals->emplace(type_of(operand), bits);
        put_bits(type_of(operand), image.address(i), place, bits & sign_bit(type_of(operand)));
      }
    });
  }
  return image;
}

// A run of the reference, with which the results are compared.
struct Reference {
  Image start, want;
  std::set<std::pair<DType, uint64_t>> denormals = {};  // the flushed values
};

Reference run_flushed(const Case& test, const ep_primitive_desc& desc, const Accuracy& accuracy, const Image& start) {
  Reference made;
  made.start = flushed_inputs(desc, accuracy, start, &made.denormals);
  made.want = made.start;
  std::vector<void*> addresses;
  for (uint32_t i = 0; i < desc.operand_count; ++i) addresses.push_back(made.want.address(i));
  ep_fault fault{};
  // Does not fail, because the descriptor already ran once. A fault would occur in the other run too.
  static_cast<void>(
      reference::run(desc, addresses.data(), test.scalars.data(), static_cast<uint32_t>(test.scalars.size()), &fault));
  return made;
}

// One output of a run, compared with the reference.
struct Compared {
  const Case& test;
  const ep_primitive_desc& desc;
  uint32_t output;
  Level level;         // the level for the output's dtype
  bool tells = false;  // true if results of this dtype may be flushed
  const Image& start;
  const Reference* flushed;  // null: nothing is flushed
  int64_t wrong = 0;
  uint64_t farthest = 0;  // steps of the wrong elements; 0 if none can be counted
  std::string first = {};
  std::string limit = {};
  std::string_view hint = {};

  DType dtype() const { return type_of(desc.operands[output]); }
  bool accepts(uint64_t g, uint64_t w, int64_t place, const int64_t* index) const;
  void refuse(int64_t number, const int64_t* index, uint64_t g, uint64_t w, bool untouched);
  Status status() const;

 private:
  bool is_scalar_function() const {
    return desc.kind == EP_PRIMITIVE_unary || desc.kind == EP_PRIMITIVE_binary || desc.kind == EP_PRIMITIVE_ternary;
  }
  // For a scalar function the tolerance of tier full, which holds on every tier in addition to the range.
  const Tolerance& tolerance() const {
    if (level.tier == Tier::full || is_scalar_function()) return test.tolerance;
    return level.tier == Tier::portable ? test.portable : test.relaxed;
  }
  Range range(const Image& from, const int64_t* index) const;
  bool is_right(const Image& from, uint64_t g, uint64_t w, const int64_t* index) const;
  std::string limit_text(uint64_t w, const int64_t* index) const;
};

// The range that the tier allows for a scalar function here; unknown on tier full and for other kinds.
Range Compared::range(const Image& from, const int64_t* index) const {
  Range x[3];
  for (Range& one : x) one = {level, std::nanl(""), 0, 0};
  if (level.tier == Tier::full || !is_floating(dtype()) || !is_scalar_function()) return x[0];
  for (uint32_t i = 1; i < desc.operand_count; ++i) {
    const DType type = type_of(desc.operands[i]);
    const uint64_t bits = input_bits(test, desc, i, from, index);
    x[i - 1] = is_floating(type) ? constant(level, decode_float(type, bits)) : x[0];
  }
  const auto parameter = [&](size_t slot) {
    return constant(level, slot < test.scalars.size() ? test.scalars[slot].value.f64 : 0);
  };
  if (desc.kind == EP_PRIMITIVE_unary) {
    return unary_range(desc.attributes.unary.op, x[0], parameter(0), parameter(1));
  }
  return desc.kind == EP_PRIMITIVE_binary ? binary_range(desc.attributes.binary.op, x[0], x[1])
                                          : ternary_range(desc.attributes.ternary.op, x[0], x[1], x[2]);
}

bool Compared::is_right(const Image& from, uint64_t g, uint64_t w, const int64_t* index) const {
  if (const Range allowed = range(from, index); allowed.known() && is_in(dtype(), allowed, tells, g, w)) return true;
  if (tells && is_zero(dtype(), g) && may_be_denormal(dtype(), tolerance(), w)) return true;
  if (!is_near(dtype(), tolerance(), g, w)) return false;
  if (test.saturation.most == 0) return true;
  return is_within(dtype(), test.saturation, g, w, input_bits(test, desc, 1, from, index));
}

bool Compared::accepts(uint64_t g, uint64_t w, int64_t place, const int64_t* index) const {
  if (is_right(start, g, w, index)) return true;
  if (flushed == nullptr) return false;
  const Image& image = flushed->want;
  const uint64_t flushed_w = raw_bits(dtype(), image.bytes.data() + image.offsets[output], place);
  if (is_right(flushed->start, g, flushed_w, index)) return true;
  // A comparison has flushed an argument, and the result is that argument unchanged.
  return tells && flushed->denormals.contains({dtype(), g}) &&
         is_right(flushed->start, g & sign_bit(dtype()), flushed_w, index);
}

std::string Compared::limit_text(uint64_t w, const int64_t* index) const {
  const std::string tier = level.tier == Tier::full ? std::string() : fmt::format(" on tier {}", tier_name(level.tier));
  if (const Range allowed = range(start, index); allowed.known()) {
    const auto [low, high] = ends_of(dtype(), allowed, w);
    return fmt::format("{}: {:.9g} to {:.9g}", tier, static_cast<double>(low), static_cast<double>(high));
  }
  std::string text = fmt::format("{}: {}", tier, tolerance_text(tolerance()));
  if (test.saturation.most != 0) {
    text +=
        fmt::format(", none beyond {:g}, exact from arguments of {:g} on", test.saturation.most, test.saturation.from);
  }
  return text;
}

void Compared::refuse(int64_t number, const int64_t* index, uint64_t g, uint64_t w, bool untouched) {
  const ep_operand_desc& operand = desc.operands[output];
  const uint64_t steps = is_floating(dtype()) ? steps_between(dtype(), g, w).value_or(0) : 0;  // 0: cannot be counted
  farthest = std::max(farthest, steps);
  if (wrong++ > 0) return;
  first = fmt::format("element {} {} of {}{} is {}{} but must be {}", number,
                      Dims({index, static_cast<size_t>(operand.rank)}), table::role_name(operand.role),
                      inputs_text(test, desc, start, index), value_text(dtype(), g),
                      untouched ? ", as it was before the launch," : "", value_text(dtype(), w));
  if (steps > 0) first += fmt::format(", {} ulp away", steps);
  limit = limit_text(w, index);
  if (is_poisoned(dtype(), g, w)) hint = poison_hint;
}

Status Compared::status() const {
  if (wrong == 0) return {};
  const std::string distance = wrong > 1 && farthest > 0 ? fmt::format(" by up to {} ulp", farthest) : std::string();
  return Status(Code::internal,
                fmt::format("{} ({}{}{}; allowed{}){}", first, wrong,
                            wrong == 1 ? " element differs" : " elements differ", distance, limit, hint))
      .with_rule("P14");
}

// Compares output `i`, and overwrites acceptable elements with the reference.
Status settle_output(const Case& test, const ep_primitive_desc& desc, uint32_t i, const Image& start,
                     const Accuracy& accuracy, const Reference* flushed, Image* got, Image* want) {
  const ep_operand_desc& operand = desc.operands[i];
  const DType dtype = type_of(operand);
  const bool tells = accuracy.flushes(dtype) && !moves_elements(desc);
  const Level level = {tier_of(desc, accuracy), dtype == DType::f64, tells};
  Compared compared = {test, desc, i, level, tells, start, flushed};
  for_each_element(operand, [&](int64_t number, int64_t place, const int64_t* index) {
    const uint64_t g = raw_bits(dtype, got->address(i), place);
    const uint64_t w = raw_bits(dtype, want->address(i), place);
    const bool untouched = g == raw_bits(dtype, start.bytes.data() + start.offsets[i], place);
    const bool dropped = test.fault != 0 && w == 0 && untouched;
    if (!dropped && !compared.accepts(g, w, place, index)) compared.refuse(number, index, g, w, untouched);
    put_bits(dtype, got->address(i), place, w);
  });
  return compared.status();
}

// True if an operand of `desc` may be flushed.
bool may_flush(const ep_primitive_desc& desc, const Accuracy& accuracy) {
  if (moves_elements(desc)) return false;
  return std::any_of(desc.operands, desc.operands + desc.operand_count,
                     [&](const ep_operand_desc& operand) { return accuracy.flushes(type_of(operand)); });
}

Status compare_as(const Case& test, const ep_primitive_desc& desc, const Image& start, const Accuracy& accuracy,
                  Image got, Image want) {
  const bool flushes = may_flush(desc, accuracy);
  const Reference flushed = flushes ? run_flushed(test, desc, accuracy, start) : Reference();
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    if (!table::is_output(desc.kind, desc.operands[i].role)) continue;
    TENON_RETURN_IF_ERROR(settle_output(test, desc, i, start, accuracy, flushes ? &flushed : nullptr, &got, &want));
    const DType dtype = type_of(desc.operands[i]);
    if (dtype_info(dtype).bits == 4 && extent(desc.operands[i]) % 2 == 1) {
      for (Image* image : {&got, &want})
        reference::store<uint64_t>(dtype, image->address(i), extent(desc.operands[i]), 0);
    }
  }
  for (size_t at = 0; at < got.bytes.size(); ++at) {
    if (got.bytes[at] == want.bytes[at]) continue;
    uint32_t nearest = 0;
    for (uint32_t i = 0; i < desc.operand_count; ++i) {
      if (got.offsets[i] <= at + guard_bytes && got.offsets[i] >= got.offsets[nearest]) nearest = i;
    }
    const auto distance = static_cast<int64_t>(at) - static_cast<int64_t>(got.offsets[nearest]);
    return Status(Code::internal,
                  fmt::format("byte {} from the start of operand {} ({}) changed: it is not an element of an output",
                              distance, nearest, table::role_name(desc.operands[nearest].role)))
        .with_rule("P06");
  }
  return {};
}

}  // namespace

Status compare_images(const Case& test, const ep_primitive_desc& desc, const Image& start, const Accuracy& accuracy,
                      const Image& got, const Image& want) {
  Status status = compare_as(test, desc, start, accuracy, got, want);
  if (status.ok()) return status;
  Accuracy lenient = accuracy;
  lenient.flushed = floating_dtypes();
  if (lenient.flushed == accuracy.flushed || !compare_as(test, desc, start, lenient, got, want).ok()) return status;
  return Status(Code::internal,
                fmt::format("denormals count as 0, and the device does not say so in flushed_dtypes: {}",
                            status.with_rule({}).message()))
      .with_rule("B02");
}

}  // namespace tenon::cases
