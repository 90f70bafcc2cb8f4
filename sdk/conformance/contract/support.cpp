// primitive_support: returns the same answer each time, refuses unknown descriptors, and gives a reason.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <limits>
#include <set>

#include "primitives/descriptor/descriptor.h"
#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"
#include "sdk/conformance/contract/sample.h"
#include "sdk/conformance/primitive/check.h"

namespace tenon::conformance {
namespace {

// The first supported case of each kind.
std::vector<cases::Case> one_per_kind(Subject& subject) {
  std::vector<cases::Case> found;
  std::set<int32_t> kinds;
  for (const cases::Case& test : cases::all_cases()) {
    if (kinds.contains(test.desc.kind) || !ask_support(subject, test.desc).ok()) continue;
    kinds.insert(test.desc.kind);
    found.push_back(test);
  }
  return found;
}

// Changes a descriptor into one that no provider of this version can know.
struct Unknown {
  const char* what;
  void (*put)(ep_primitive_desc* desc);
};

constexpr Unknown unknowns[] = {
    {"kind 0x7fff", [](ep_primitive_desc* desc) { desc->kind = 0x7fff; }},
    {"kind 0", [](ep_primitive_desc* desc) { desc->kind = 0; }},
    {"the descriptor flag 1 << 40", [](ep_primitive_desc* desc) { desc->flags |= UINT64_C(1) << 40; }},
    {"precision 77", [](ep_primitive_desc* desc) { desc->precision = 77; }},
    {"accumulation dtype 99", [](ep_primitive_desc* desc) { desc->accumulate_dtype = 99; }},
    {"an extension of type 0x12345",
     [](ep_primitive_desc* desc) { desc->extensions[0] = UINT64_C(8) << 32 | 0x12345; }},
    {"dtype 99 of operand 0", [](ep_primitive_desc* desc) { desc->operands[0].dtype = 99; }},
    {"dtype 99 of the last operand",
     [](ep_primitive_desc* desc) { desc->operands[desc->operand_count - 1].dtype = 99; }},
    {"role 999 of the last operand",
     [](ep_primitive_desc* desc) { desc->operands[desc->operand_count - 1].role = 999; }},
    {"the operand flag 1 << 40", [](ep_primitive_desc* desc) { desc->operands[0].flags |= UINT64_C(1) << 40; }},
    {"operand 0 in a layout that nobody made",
     [](ep_primitive_desc* desc) {
       desc->operands[0].flags = EP_OPERAND_FLAG_OPAQUE;
       desc->operands[0].alignment = 0;
       std::fill(std::begin(desc->operands[0].strides), std::end(desc->operands[0].strides), 0);
       desc->operands[0].strides[0] = std::numeric_limits<int64_t>::max() - 77;
     }},
    {"an epilogue of arity 5",
     [](ep_primitive_desc* desc) {
       desc->epilogue_count = 1;
       desc->epilogues[0] = {5, 0x7fff, 0, 4};
     }},
};

// Kinds whose attributes begin with a scalar function or a mode.
constexpr Unknown unknown_op = {"function 0x7fff", [](ep_primitive_desc* desc) { desc->attributes.unary.op = 0x7fff; }};

bool has_op(int32_t kind) {
  return kind == EP_PRIMITIVE_unary || kind == EP_PRIMITIVE_binary || kind == EP_PRIMITIVE_ternary ||
         kind == EP_PRIMITIVE_reduce || kind == EP_PRIMITIVE_arg_reduce || kind == EP_PRIMITIVE_pooling;
}

Status must_refuse(Subject& subject, const cases::Case& test, const Unknown& unknown) {
  auto desc = test.desc;
  unknown.put(&desc);
  const std::string asked = fmt::format("{} with {}", test.name, unknown.what);
  note_descriptor(asked);
  for (const char* name : {"primitive_support", "primitive_create"}) {
    Poisoned<ep_primitive*> made("out_primitive");
    Poisoned<ep_support_info> terms("out_info");
    Poisoned<ep_primitive_info> info("out_info");
    const bool creates = std::string_view(name) == "primitive_create";
    if (creates && subject.ops.primitive_create == nullptr) continue;
    const auto call = [&](ep_error** error) {
      if (creates) return subject.ops.primitive_create(subject.device, &desc, &made.value, &info.value, error);
      return subject.ops.primitive_support(subject.device, &desc, &terms.value, error);
    };
    terms.value.struct_size = sizeof terms.value;
    info.value.struct_size = sizeof info.value;
    note_call(name);
    const ep_status status = call(nullptr);
    if (status != EP_STATUS_UNSUPPORTED) {
      return broken("P02", "{} of {} answered {}, not 'unsupported'", name, asked, status_text(status));
    }
    const Status said = subject.call(name, call);
    if (said.code() != Code::unsupported) {
      return broken("P02", "{} of {} answered 'unsupported' without a place for its error, and '{}' with one", name,
                    asked, code_name(said.code()));
    }
    terms.value.struct_size = info.value.struct_size = 0xa5a5a5a5;
    const std::string written = made.written() + terms.written() + info.written();
    if (!written.empty()) return broken("E01", "{} of {} answered 'unsupported' and wrote{}", name, asked, written);
  }
  return {};
}

}  // namespace

Status support_unknown(Subject& subject) {
  std::vector<cases::Case> tests = one_per_kind(subject);
  const bool computes = !tests.empty();
  if (!computes) tests.push_back(cases::all_cases().front());
  for (const cases::Case& test : tests) {
    for (const Unknown& unknown : unknowns) {
      TENON_RETURN_IF_ERROR(must_refuse(subject, test, unknown));
    }
    if (has_op(test.desc.kind)) TENON_RETURN_IF_ERROR(must_refuse(subject, test, unknown_op));
  }
  return {};
}

// The same descriptor gets the same answer, and the provider keeps no memory. The duration is printed but not checked.
Status support_pure(Subject& subject) {
  const std::vector<cases::Case>& all = cases::all_cases();
  std::vector<double> microseconds;
  for (size_t i = 0; i < all.size(); i += 7) {
    auto first = with_header<ep_support_info>(EP_STRUCT_SUPPORT_INFO), second = first;
    const auto ask = [&](ep_support_info* info) {
      return subject.call("primitive_support", subject.ops.primitive_support, subject.device, &all[i].desc, info);
    };
    const Status one = ask(&first);
    const int64_t held = subject.host.bytes_held();
    const auto begin = std::chrono::steady_clock::now();
    const Status two = ask(&second);
    microseconds.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    if (one.code() != two.code() || std::memcmp(&first, &second, sizeof first) != 0) {
      return broken("P03", "primitive_support answered in two ways to {}", all[i].name);
    }
    if (subject.host.bytes_held() != held) return broken("P03", "primitive_support kept memory of the host");
    if (!one.ok() && one.code() != Code::unsupported) {
      return broken("P03", "primitive_support answered '{}' to {}", code_name(one.code()), all[i].name);
    }
  }
  std::nth_element(microseconds.begin(), microseconds.begin() + static_cast<int64_t>(microseconds.size() / 2),
                   microseconds.end());
  std::printf("primitive_support takes %.2f us (median)\n", microseconds[microseconds.size() / 2]);
  return {};
}

// Every refusal has a reason and does not write its out-parameters, with and without an error out-parameter.
Status support_refusals(Subject& subject) {
  const std::vector<cases::Case>& all = cases::all_cases();
  int refused = 0;
  for (const cases::Case& test : all) {
    if (ask_support(subject, test.desc).ok()) continue;
    if (refused++ > 200) break;
    Poisoned<ep_support_info> info("out_info");
    const auto ask = [&](ep_error** error) {
      return subject.ops.primitive_support(subject.device, &test.desc, &info.value, error);
    };
    const Status status = refuses(subject, "primitive_support", {Code::unsupported}, ask, info);
    if (!status.ok()) return status.with_context(fmt::format("  descriptor {}", descriptor::to_string(test.desc)));
  }
  return refused == 0 ? skipped("it supports every case.") : Status();
}

}  // namespace tenon::conformance
