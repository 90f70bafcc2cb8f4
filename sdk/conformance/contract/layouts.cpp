// The device's own layouts: layout_info, conversions, and results. Skipped on devices without layout_info.
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "primitives/descriptor/descriptor.h"
#include "primitives/dtype/dtype.h"
#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"
#include "sdk/conformance/contract/sample.h"
#include "sdk/conformance/primitive/check.h"
#include "sdk/conformance/primitive/layout_work.h"

namespace tenon::conformance {
namespace {

constexpr size_t most_layouts = 64;
constexpr int64_t most_elements = 20000;
constexpr int most_cases_of_a_kind = 4;

Status without_layouts() { return skipped("the device has no layout_info."); }
Status without_wishes() { return skipped("the device prefers a layout of its own for no operand of any case."); }

// A case for which the device prefers its own layouts, with the provider's requirements applied.
struct Wish {
  cases::Case test;
  ep_primitive_desc desc;
  ep_support_info terms;
};

int64_t elements_of(const ep_primitive_desc& desc) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    int64_t count = 1;
    for (int32_t axis = 0; axis < desc.operands[i].rank; ++axis) count *= desc.operands[i].dims[axis];
    sum += count;
  }
  return sum;
}

bool may_be_opaque(const ep_operand_desc& operand) {
  return operand.rank > 0 && (operand.flags & (EP_OPERAND_FLAG_SCALAR | EP_OPERAND_FLAG_CONSTANT)) == 0;
}

// Some cases of each kind.
std::vector<Wish> wishes_of(Subject& subject) {
  std::vector<Wish> found;
  std::map<int32_t, int> counts;
  for (const cases::Case& test : cases::all_cases()) {
    if (test.fault != 0 || elements_of(test.desc) > most_elements || counts[test.desc.kind] == most_cases_of_a_kind) {
      continue;
    }
    const Result<ep_support_info> terms = ask_support(subject, test.desc);
    if (!terms.ok()) continue;
    const bool any =
        std::any_of(terms->layouts, terms->layouts + test.desc.operand_count, [](int64_t token) { return token != 0; });
    if (!any) continue;
    ++counts[test.desc.kind];
    found.push_back({test, on_terms(test, test.desc, terms.value()), terms.value()});
  }
  return found;
}

// Every layout in `wishes`, once.
std::vector<ep_operand_desc> layouts_of(const std::vector<Wish>& wishes) {
  std::vector<ep_operand_desc> layouts;
  std::set<std::string> seen;
  for (const Wish& wish : wishes) {
    for (uint32_t i = 0; i < wish.desc.operand_count && layouts.size() < most_layouts; ++i) {
      if (wish.terms.layouts[i] == 0) continue;
      ep_operand_desc layout = in_layout(wish.desc.operands[i], wish.terms.layouts[i]);
      layout.role = 0;
      const std::string bytes(reinterpret_cast<const char*>(&layout), sizeof layout);
      if (seen.insert(bytes).second) layouts.push_back(layout);
    }
  }
  return layouts;
}

std::string name_of(const ep_operand_desc& layout) { return descriptor::to_string(conversion(layout, true)); }

Status check_wish(const Wish& wish) {
  for (uint32_t i = 0; i < EP_MAX_OPERANDS; ++i) {
    const int64_t token = wish.terms.layouts[i];
    if (token == 0) continue;
    if (token > 0 && i < wish.desc.operand_count && may_be_opaque(wish.desc.operands[i])) continue;
    return broken("Y03", "primitive_support of {} would like operand {} in layout {}", wish.test.name, i, token);
  }
  return {};
}

bool same(const ep_layout_info& a, const ep_layout_info& b) { return a.bytes == b.bytes && a.pool == b.pool; }

Status check_described(Subject& subject, const ep_operand_desc& layout) {
  const int64_t held = subject.host.bytes_held();
  const Result<ep_layout_info> first = ask_layout(subject, layout), second = ask_layout(subject, layout);
  if (!first.ok() || !second.ok()) {
    return broken("Y01", "layout_info does not know a layout that the device would like: {}",
                  without_rule((first.ok() ? second : first).status()).message());
  }
  if (!same(first.value(), second.value())) return broken("Y01", "layout_info answered in two ways");
  if (subject.host.bytes_held() != held) return broken("Y01", "layout_info kept memory of the host");
  const ep_layout_info& info = first.value();
  const bool image = info.pool < subject.info.pool_count && holds_images(subject.info, info.pool);
  if (info.bytes == 0 || info.name.size == 0 || (info.pool != 0 && !image)) {
    return broken("R01", "layout_info names {} bytes in pool {}", info.bytes, info.pool);
  }
  return {};
}

// A token that no device makes for this dtype and these dims.
Status check_unknown(Subject& subject, ep_operand_desc layout) {
  layout.strides[0] = std::numeric_limits<int64_t>::max() - 77;
  Poisoned<ep_layout_info> info("out_info");
  const auto ask = [&](ep_error** error) {
    return subject.ops.layout_info(subject.device, &layout, &info.value, error);
  };
  info.value.struct_size = sizeof info.value;
  note_call("layout_info");
  if (ask(nullptr) == EP_STATUS_OK) return broken("Y01", "layout_info knows a token that the device has not made");
  const Status told = subject.call("layout_info", ask);
  if (told.code() == Code::unsupported) return {};
  return broken("Y01", "layout_info of an unknown token answered '{}', not 'unsupported'", code_name(told.code()));
}

// Turns bytes into values that a copy keeps bit by bit: no NaN, and only 0 and 1 for bool.
void make_numbers(const ep_operand_desc& layout, std::vector<uint8_t>* bytes) {
  const DTypeClass type_class = dtype_info(static_cast<DType>(layout.dtype)).type_class;
  const auto size = static_cast<size_t>(dtype_size(static_cast<DType>(layout.dtype)));
  for (size_t last = size - 1; last < bytes->size(); last += size) {
    if (type_class == DTypeClass::FLOAT) (*bytes)[last] &= 0xbf;
    if (type_class == DTypeClass::BOOL) (*bytes)[last] &= 1;
  }
}

Status check_there_and_back(Subject& subject, const Stream& stream, const ep_operand_desc& layout, uint64_t seed) {
  int64_t elements = 1;
  for (int32_t axis = 0; axis < layout.rank; ++axis) elements *= layout.dims[axis];
  const auto bytes = static_cast<size_t>(dtype_bytes(static_cast<DType>(layout.dtype), elements));
  std::vector<uint8_t> given = random_bytes(bytes, seed);
  make_numbers(layout, &given);
  std::vector<uint8_t> got(bytes, 0);
  TENON_ASSIGN_OR_RETURN(const Memory value, make_value(subject, layout));
  TENON_ASSIGN_OR_RETURN(const Memory from, subject.allocate(bytes));
  TENON_ASSIGN_OR_RETURN(const Memory back, subject.allocate(bytes));
  std::vector<Primitive> kept;
  std::vector<Memory> rooms;
  const Drain drain(subject, stream);
  TENON_RETURN_IF_ERROR(subject.upload(stream, from, 0, given));
  TENON_RETURN_IF_ERROR(subject.upload(stream, back, 0, got));
  for (const bool to_layout : {true, false}) {
    const Status status = convert(subject, stream, conversion(layout, to_layout), (to_layout ? value : back).get(),
                                  (to_layout ? from : value).get(), &kept, &rooms);
    if (status.code() != Code::unsupported) {
      TENON_RETURN_IF_ERROR(status);
      continue;
    }
    return broken("Y02", "the device refuses the copy {} a layout that it would like: {}", to_layout ? "to" : "from",
                  without_rule(status).message());
  }
  TENON_RETURN_IF_ERROR(subject.download(stream, back, 0, got));
  TENON_RETURN_IF_ERROR(subject.finish(stream));
  const auto wrong = std::mismatch(given.begin(), given.end(), got.begin());
  if (wrong.first == given.end()) return {};
  return broken("Y02", "byte {} of {} went to the layout as {:#x} and came back as {:#x}", wrong.first - given.begin(),
                bytes, *wrong.first, *wrong.second);
}

// `all`: all wishes are followed, which the device must support.
Status check_result(Subject& subject, const Stream& stream, const Wish& wish, const int64_t* tokens, bool all) {
  LayoutWork work(subject, wish.test, wish.desc, tokens);
  const Drain drain(subject, stream);
  Status ran = ask_support(subject, work.desc()).status();
  if (ran.ok()) ran = work.run(stream);
  if (ran.code() == Code::unsupported) {
    if (!all) return {};
    return broken("Y03", "in the layouts that it prefers the device refuses: {}", without_rule(ran).message());
  }
  TENON_RETURN_IF_ERROR(ran);
  const Status right = work.compare();
  return right.ok() ? right : broken("Y03", "in the device's layouts: {}", without_rule(right).message());
}

Status check_results(Subject& subject, const Stream& stream, const Wish& wish) {
  TENON_RETURN_IF_ERROR(check_result(subject, stream, wish, wish.terms.layouts, true));
  for (uint32_t i = 0; i < wish.desc.operand_count; ++i) {
    int64_t alone[EP_MAX_OPERANDS] = {};
    alone[i] = wish.terms.layouts[i];
    if (alone[i] != 0) TENON_RETURN_IF_ERROR(check_result(subject, stream, wish, alone, false));
  }
  return {};
}

}  // namespace

Status layouts_described(Subject& subject) {
  if (subject.ops.layout_info == nullptr) return without_layouts();
  const std::vector<Wish> wishes = wishes_of(subject);
  if (wishes.empty()) return without_wishes();
  for (const Wish& wish : wishes) TENON_RETURN_IF_ERROR(check_wish(wish));
  for (const ep_operand_desc& layout : layouts_of(wishes)) {
    Status status = check_described(subject, layout);
    if (status.ok()) status = check_unknown(subject, layout);
    if (!status.ok()) return status.with_context(fmt::format("  with {}", name_of(layout)));
  }
  return {};
}

Status layouts_there_and_back(Subject& subject) {
  if (subject.ops.layout_info == nullptr) return without_layouts();
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  const std::vector<ep_operand_desc> layouts = layouts_of(wishes_of(subject));
  if (layouts.empty()) return without_wishes();
  uint64_t seed = 0;
  for (const ep_operand_desc& layout : layouts) {
    const Status status = check_there_and_back(subject, stream, layout, ++seed);
    if (!status.ok()) return status.with_context(fmt::format("  with {}", name_of(layout)));
  }
  return {};
}

Status layouts_results(Subject& subject) {
  if (subject.ops.layout_info == nullptr) return without_layouts();
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  const std::vector<Wish> wishes = wishes_of(subject);
  if (wishes.empty()) return without_wishes();
  for (const Wish& wish : wishes) {
    const Status status = check_results(subject, stream, wish);
    if (!status.ok()) {
      return status.with_context(fmt::format("  with {}, {}", wish.test.name, descriptor::to_string(wish.desc)));
    }
  }
  return {};
}

}  // namespace tenon::conformance
