// Every operand of every kind in layouts that are not dense. The cases are derived from those of the other files, so a
// new kind or operand gets them automatically.
#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "primitives/descriptor/descriptor.h"
#include "primitives/descriptor/fields.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

using descriptor::FieldType;

constexpr int64_t most_elements = 20000;  // the sum over all operands, so that the reference is fast

bool is_scalar(const ep_operand_desc& operand) { return (operand.flags & EP_OPERAND_FLAG_SCALAR) != 0; }

int64_t elements_of(const ep_operand_desc& operand) {
  int64_t elements = 1;
  for (int32_t axis = 0; axis < operand.rank; ++axis) elements *= operand.dims[axis];
  return elements;
}

// Scalar functions of one kind share their loops, so one function is enough.
bool tells_apart(FieldType type) {
  const FieldType numbers[] = {FieldType::I32,   FieldType::I64,    FieldType::MASK,    FieldType::F64,
                               FieldType::UNARY, FieldType::BINARY, FieldType::TERNARY, FieldType::REDUCE};
  return std::find(std::begin(numbers), std::end(numbers), type) == std::end(numbers);
}

// Cases with the same text form a family. The text has the kind, the mode, and for each operand its role, dtype, rank,
// flags and the axes that stride 0 repeats.
std::string family_of(const ep_primitive_desc& desc) {
  std::string text = fmt::format("{} {}", desc.kind, desc.epilogue_count);
  for (const descriptor::Field& field : descriptor::fields()) {
    if (field.kind != desc.kind || !tells_apart(field.type)) continue;
    text += fmt::format(" {}", descriptor::get_field(desc.attributes, field, 0));
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    text += fmt::format(" {} {} {} {}:", operand.role, operand.dtype, operand.rank, operand.flags);
    for (int32_t axis = 0; axis < operand.rank; ++axis) text += operand.strides[axis] == 0 ? 'r' : '-';
  }
  return text;
}

// The smallest case of a family and, for floats, whose large operands have kernels of their own, the largest. Only
// cases count in which as many operands as possible have an axis of two elements.
struct Family {
  const Case* least = nullptr;
  const Case* greatest = nullptr;
  int64_t least_elements = 0, greatest_elements = 0;
  int32_t long_operands = 0;

  void add(const Case& test) {
    int64_t elements = 0;
    int32_t count = 0;
    for (uint32_t i = 0; i < test.desc.operand_count; ++i) {
      elements += elements_of(test.desc.operands[i]);
      count += elements_of(test.desc.operands[i]) > 1 ? 1 : 0;
    }
    if (elements > most_elements || count < long_operands) return;
    if (count > long_operands) least = greatest = nullptr, long_operands = count;
    if (least == nullptr || elements < least_elements) least = &test, least_elements = elements;
    if (greatest == nullptr || elements > greatest_elements) greatest = &test, greatest_elements = elements;
  }
};

// --- the layouts ---

// Leaves gaps between all elements.
bool spread(ep_operand_desc* operand) {
  bool changes = false;
  for (int32_t axis = 0; axis < operand->rank; ++axis) {
    changes = changes || (operand->dims[axis] > 1 && operand->strides[axis] > 0);
    operand->strides[axis] *= 3;
  }
  return changes;
}

// Repeats the elements along one axis.
bool repeat(ep_operand_desc* operand, int32_t axis) {
  if (operand->dims[axis] == 1 || operand->strides[axis] == 0) return false;
  operand->strides[axis] = 0;
  return true;
}
bool repeat_first(ep_operand_desc* operand) { return repeat(operand, 0); }
bool repeat_last(ep_operand_desc* operand) { return operand->rank > 1 && repeat(operand, operand->rank - 1); }

struct Layout {
  std::string_view name;
  bool repeats;
  bool (*apply)(ep_operand_desc*);  // false: it changed nothing
};
constexpr Layout layouts[] = {
    {"spread", false, spread}, {"repeated", true, repeat_first}, {"repeated_last", true, repeat_last}};

// Equal rows have no inverse and no variance, so such a result would be a rounding error.
bool needs_variety(int32_t kind, int32_t role) {
  return role == EP_ROLE_SRC && (kind == EP_PRIMITIVE_linear_algebra || table::is_output(kind, EP_ROLE_INV_STD));
}

bool is_factor(const ep_operand_desc& operand) {
  return operand.role == EP_ROLE_SRC || operand.role == EP_ROLE_SRC_B || operand.role == EP_ROLE_WEIGHT;
}
bool repeats_a_factor(const ep_primitive_desc& desc) {
  return std::any_of(desc.operands, desc.operands + desc.operand_count, [](const ep_operand_desc& operand) {
    if (!is_factor(operand)) return false;
    for (int32_t axis = 0; axis < operand.rank; ++axis) {
      if (operand.dims[axis] > 1 && operand.strides[axis] == 0) return true;
    }
    return false;
  });
}

// True if the reduction is over equal elements: the rounding errors of their sums add up.
bool reduces_equals(const ep_primitive_desc& desc) {
  if (desc.kind != EP_PRIMITIVE_reduce) return false;
  for (const descriptor::Field& field : descriptor::fields()) {
    if (field.kind != desc.kind || field.type != FieldType::MASK) continue;
    const auto axes = static_cast<uint64_t>(descriptor::get_field(desc.attributes, field, 0));
    for (uint32_t i = 0; i < desc.operand_count; ++i) {
      for (int32_t axis = 0; axis < desc.operands[i].rank; ++axis) {
        if (desc.operands[i].strides[axis] == 0 && ((axes >> axis) & 1) != 0) return true;
      }
    }
  }
  return false;
}

// Repeats one factor at a time: in sums of equal products the rounding errors add up.
void add_layouts_of(const Case& test, std::vector<Case>* cases) {
  const bool repeated = repeats_a_factor(test.desc);
  for (uint32_t i = 0; i < test.desc.operand_count; ++i) {
    const ep_operand_desc& operand = test.desc.operands[i];
    const bool may_repeat = !(repeated && is_factor(operand)) && !table::is_output(test.desc.kind, operand.role) &&
                            !needs_variety(test.desc.kind, operand.role);
    if (is_scalar(operand) || dtype_info(static_cast<DType>(operand.dtype)).bits < 8) continue;
    for (const Layout& layout : layouts) {
      Case made = test;
      if ((layout.repeats && !may_repeat) || !layout.apply(&made.desc.operands[i])) continue;
      if (layout.repeats && reduces_equals(made.desc)) continue;
      made.name = fmt::format("layouts/{}_{}_{}", test.name, table::role_name(operand.role), layout.name);
      cases->push_back(std::move(made));
    }
  }
}

}  // namespace

void add_operand_layouts(std::vector<Case>* cases) {
  std::map<std::string, Family> families;
  for (const Case& test : *cases) {
    if (test.fault == 0) families[family_of(test.desc)].add(test);
  }
  std::vector<Case> made;
  for (const auto& [text, family] : families) {
    if (family.least == nullptr) continue;
    add_layouts_of(*family.least, &made);
    const bool has_kernels = is_floating(static_cast<DType>(family.least->desc.operands[0].dtype));
    if (has_kernels && family.greatest != family.least) add_layouts_of(*family.greatest, &made);
  }
  std::move(made.begin(), made.end(), std::back_inserter(*cases));
}

}  // namespace tenon::cases
