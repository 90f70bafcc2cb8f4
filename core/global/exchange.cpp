#include "core/global/exchange.h"

#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "core/autograd/gradient_row.h"
#include "core/device/call_site.h"
#include "core/device/device_state.h"
#include "core/global/global_program.h"
#include "core/ops/libraries.h"
#include "core/ops/ops.h"
#include "core/ops/sym_call.h"
#include "core/ops/text_attribute.h"
#include "core/tensor/host_watch.h"
#include "core/vm/storage.h"
#include "ep_api/collective_kinds.h"
#include "primitives/text/format.h"

namespace tenon::global {
namespace {

// The op that the caller wrote and that needs the exchange. It is the same on all ranks, with or without a program.
std::string_view asked_for() {
  const std::string_view op = call_site.called != nullptr ? call_site.called->op : "to_global";
  return op.substr(0, TextAttribute::kMost);
}

bool only_gives(const ExchangePlan& plan) { return plan.between_placements && plan.size == 0; }

// Errors name `of`.
Tensor carry_out(const Tensor& list, const ExchangePlan& plan, std::string_view of, Needed needed) {
  Tensor got = Tensor::empty({plan.size}, list.dtype(), list.device());
  throw_if_error(needed == Needed::later || only_gives(plan) ? plan.line->begin(list, got, plan.exchange, of)
                                                             : plan.line->call(list, got, plan.exchange, of));
  return got;
}

// --- the op

struct ExchangeAttributes {
  TextAttribute kind;
  TextAttribute of;  // the op that needs the exchange
  int64_t plan;      // the number of the plan in this process
  int64_t size;
  int64_t ready, asked;  // as in ExchangeNode
};

constexpr AttributeField kFields[] = {
    {"kind", AttributeType::text, offsetof(ExchangeAttributes, kind), 1},
    {"of", AttributeType::text, offsetof(ExchangeAttributes, of), 1},
    {"plan", AttributeType::i64, offsetof(ExchangeAttributes, plan), 1},
    {"size", AttributeType::i64, offsetof(ExchangeAttributes, size), 1},
    {"ready", AttributeType::i64, offsetof(ExchangeAttributes, ready), 1},
    {"asked", AttributeType::i64, offsetof(ExchangeAttributes, asked), 1},
};

// The plans of all programs, each stored once: one per kind of exchange.
class Plans {
 public:
  int64_t number_of(const ExchangePlan& plan) {
    const std::lock_guard lock(mutex_);
    const auto [at, fresh] = numbers_.try_emplace(plan, static_cast<int64_t>(plans_.size()));
    if (fresh) plans_.push_back(&at->first);
    return at->second;
  }
  const ExchangePlan& plan(int64_t number) {
    const std::lock_guard lock(mutex_);
    if (number >= 0 && number < static_cast<int64_t>(plans_.size())) return *plans_[static_cast<size_t>(number)];
    throw Error(Subject{"exchange"}, Code::invalid_argument,
                fmt::format("this process has no exchange number {}.", number),
                "A program with exchanges runs in the process that has recorded it.");
  }

 private:
  std::mutex mutex_;
  std::map<ExchangePlan, int64_t> numbers_;  // guarded by mutex; entries never move
  std::vector<const ExchangePlan*> plans_;   // guarded by mutex; by number
};

Plans& plans() {
  static auto* all = new Plans;
  return *all;
}

template <class Call>
Status infer_exchange(const Call& call, typename Call::Meta* outputs) {
  outputs[0].dtype = call.inputs[0]->dtype();
  outputs[0].dims = {};
  outputs[0].dims.push_back(call.template attributes_as<ExchangeAttributes>().size);
  outputs[1].dtype = call.inputs[1]->dtype();
  outputs[1].dims = {};
  outputs[1].dims.push_back(0);
  return {};
}

void run_exchange(const OpCall& call) {
  const auto& attributes = call.attributes_as<ExchangeAttributes>();
  const ExchangePlan& plan = plans().plan(attributes.plan);
  const Tensor& list = *call.inputs[0];
  const bool is_synchronous = list.impl()->device->synchronous;
  const bool beside = !is_synchronous || list.bytes() >= kLarge || only_gives(plan);
  // A program reuses the memory of its values, and would wait for the exchange there.
  const bool copies = beside && is_synchronous && list.impl()->storage.bytes() != static_cast<uint64_t>(list.bytes());
  const Tensor own = copies ? tenon::clone(list) : list.contiguous() ? list : tenon::contiguous(list);
  call.outputs[0] = carry_out(own, plan, attributes.of.view(), beside ? Needed::later : Needed::now);
  call.outputs[1] = Tensor::empty({0}, call.inputs[1]->dtype(), list.device());
}

constexpr std::string_view kArguments[] = {"list", "token"};

// Users call only `to_global`, so the dynamic call has no name for this op.
OpLibrary& library() {
  static constinit OpInfo rows[] = {{.name = "global::exchange",
                                     .named = {"global::exchange", kArguments},
                                     .form = OpForm::builtin,
                                     .output_count = 2,
                                     .refuses_bool = {},
                                     .refuses_bools = {},
                                     .attribute_bytes = sizeof(ExchangeAttributes),
                                     .infer = infer_exchange<OpCall>,
                                     .infer_sizes = infer_exchange<SymCall>,
                                     .run = run_exchange}};
  static constexpr autograd::GradientRow kGradients[] = {{.none = "gradients see global tensors"}};
  static constexpr std::span<const AttributeField> kAllFields[] = {kFields};
  static constexpr RecordShape kShapes[] = {{.required = 2, .most = 2}};
  static OpLibrary made{"global", rows, {}, kGradients, kAllFields, kShapes};
  return made;
}

const OpInfo& row() {
  static const OpLibrary& added = add_ops({TENON_VERSION, kOpTableLayout, library});
  return added.rows[0];
}

Tensor record(const Tensor& list, const ExchangePlan& plan, GlobalProgram* program) {
  ExchangeAttributes attributes{};
  attributes.kind = TextAttribute::of(ep_collective_name(static_cast<int32_t>(plan.exchange.kind)));
  attributes.of = TextAttribute::of(asked_for());
  attributes.plan = plans().number_of(plan);
  attributes.size = plan.size;
  attributes.asked = program->time;
  attributes.ready = program->ready == GlobalProgram::kNow ? attributes.asked : program->ready;
  if (!program->token.defined()) program->token = first_token();
  const Tensor* inputs[] = {&list, &program->token};
  Tensor results[2];
  OpCall call;
  call.op = &row();
  call.inputs = inputs;
  call.attributes = &attributes;
  call.outputs = results;
  program->parts.apply(call);
  program->token = results[1];
  return results[0];
}

}  // namespace

Tensor exchange(const Tensor& list, const ExchangePlan& plan, Needed needed) {
  GlobalProgram* program = current_program();
  return program == nullptr ? carry_out(list, plan, asked_for(), needed) : record(list, plan, program);
}

std::optional<ExchangeNode> exchange_of(const OpInfo& op, const void* attributes) {
  if (op.run != run_exchange) return {};  // row() would load the library in programs without exchanges
  const auto& of_node = *static_cast<const ExchangeAttributes*>(attributes);
  return ExchangeNode{&plans().plan(of_node.plan), of_node.ready, of_node.asked};
}

void set_size(void* attributes, int64_t size, int64_t ready) {
  auto& of_node = *static_cast<ExchangeAttributes*>(attributes);
  ExchangePlan plan = plans().plan(of_node.plan);
  plan.size = of_node.size = size;
  of_node.plan = plans().number_of(plan);
  of_node.ready = ready;
}

const Tensor& first_token() {
  static const auto* token = [] {
    const HostWatchScope nobody(nullptr);
    return new Tensor(Tensor::empty({0}, DType::u8, Device::host()));
  }();
  return *token;
}

}  // namespace tenon::global
