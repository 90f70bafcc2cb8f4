#include "core/global/interpreter.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "core/device/call_site.h"
#include "core/global/ahead.h"
#include "core/global/boxing.h"
#include "core/global/global.h"
#include "core/global/global_program.h"
#include "core/global/signatures.h"
#include "core/global/value.h"
#include "core/interpreter/inference.h"
#include "core/ops/attributes.h"
#include "core/ops/decompose/decompose.h"
#include "core/ops/op_rows.h"
#include "core/ops/ops.h"
#include "core/tensor/factory.h"
#include "core/vm/storage.h"
#include "primitives/text/format.h"

namespace tenon::global {
namespace {

constexpr size_t kUsual = 4;  // usual number of tensors of a call
constexpr double kNever = std::numeric_limits<double>::infinity();

NdSbp everywhere(const Placement& placement) { return NdSbp::filled(placement.grid().rank(), Sbp::broadcast()); }

[[noreturn]] void refuse_mixing(const OpCall& call, const Tensor& local, const Placement& placement) {
  throw Error(Subject{call.op->name}, Code::invalid_argument,
              fmt::format("a local tensor of shape {} cannot be used with a tensor on {}.", local.impl()->dims,
                          placement.to_string()),
              "Distribute it with to_global first, or take this rank's part of the other tensor with to_local.");
}

// True for a local tensor that is the same on every rank, such as a number.
bool may_be_mixed(const Tensor& local) { return call_context.everywhere || local.impl()->dims.rank() == 0; }

// The arguments and results of a call as global tensors on one placement.
class Call {
 public:
  explicit Call(const OpCall& call) : call_(call), placement_(placement_of(call)) {
    inputs_.reserve(call.inputs.size());
    for (const Tensor* input : call.inputs) inputs_.push_back(input == nullptr ? Tensor() : spread(*input));
    for (const Tensor& input : inputs_) pointers_.push_back(input.defined() ? &input : nullptr);
    global_ = call;
    global_.inputs = {pointers_.data(), pointers_.size()};
    infer();
  }

  void run() {
    choose();
    if (!placement_.here()) return run_outside();
    Few<Tensor, kUsual> parts;
    Few<const Tensor*, kUsual> pointers;
    parts.reserve(inputs_.size());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      parts.push_back(boxed(i));
      pointers.push_back(parts.back().defined() ? &parts.back() : nullptr);
    }
    OpCall local = call_;
    local.inputs = {pointers.data(), pointers.size()};
    const std::vector<unsigned char> attributes = attributes_of_part();
    if (!attributes.empty()) local.attributes = attributes.data();
    Few<Tensor, kUsual> results(call_.outputs.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const GlobalValue* given = value_of(call_.outputs[i]);
      if (given == nullptr) continue;
      results[i] = given->layout.sbp == results_[i] ? given->local
                                                    : tenon::empty(local_dims(metas_[i].dims, layout_of_result(i)),
                                                                   metas_[i].dtype, placement_.device());
    }
    local.outputs = {results.data(), results.size()};
    apply_locally(&local, &parts);
    for (size_t i = 0; i < results.size(); ++i) give(i, results[i]);
  }

 private:
  static Placement placement_of(const OpCall& call) {
    const GlobalValue* first = nullptr;
    const auto look = [&](const Tensor& tensor) {
      const GlobalValue* value = value_of(tensor);
      if (value == nullptr) return;
      if (first == nullptr) first = value;
      if (first->layout.placement == value->layout.placement) return;
      throw Error(Subject{call.op->name}, Code::invalid_argument,
                  fmt::format("one tensor is on {}, but another is on {}.", first->layout.placement.to_string(),
                              value->layout.placement.to_string()),
                  "Move one of them with to_global.");
    };
    for (const Tensor* input : call.inputs) {
      if (input != nullptr) look(*input);
    }
    for (const Tensor& output : call.outputs) look(output);
    return first->layout.placement;
  }

  Tensor spread(const Tensor& tensor) const {
    if (value_of(tensor) != nullptr) {
      refresh(tensor);
      return tensor;
    }
    if (!may_be_mixed(tensor)) refuse_mixing(call_, tensor, placement_);
    Tensor local = tensor;
    if (placement_.here() && local.device() != placement_.device()) local = local.to(placement_.device());
    return make_global(tensor.dtype(), tensor.dims(), {placement_, everywhere(placement_)}, std::move(local));
  }

  void infer() {
    for (const Tensor& output : call_.outputs) {
      if (!output.defined()) continue;
      const GlobalValue* given = value_of(output);
      if (given == nullptr) refuse_mixing(call_, output, placement_);
      refresh(output);
    }
    if (call_.op->form == OpForm::view) {
      Tensor view = begin_view(*inputs_[0].impl());
      throw_if_error(call_.op->view(global_, view.impl()));
      metas_.push_back({view.impl()->dtype, view.impl()->dims, view.impl()->strides});
    } else {
      throw_if_error(infer_outputs(global_, &metas_));
    }
  }

  // Ranks outside the placement do not see known sums, but must make the same choice. A view of a sum is a copy.
  const Layout* all_know(size_t input) const {
    if (call_.op->form == OpForm::view) return nullptr;
    const Layout* known = known_layout(*value_of(inputs_[input]));
    return known != nullptr && placement_.size() == world_size() ? known : nullptr;
  }

  const Layout& layout_of(size_t input) const { return value_of(inputs_[input])->layout; }

  // Chooses for each axis of the grid the signature that moves the fewest bytes; of equal ones, the first.
  void choose() {
    const GridSignatures signatures(global_, metas_, placement_.grid());
    const int32_t axes = placement_.grid().rank();
    arguments_.assign(inputs_.size(), everywhere(placement_));
    results_.assign(metas_.size(), everywhere(placement_));
    Few<const Signature*, kUsual> taken;
    for (int32_t axis = 0; axis < axes; ++axis) {
      const Signature* best = nullptr;
      double least = kNever;
      for (const Signature& each : signatures.along(axis)) {
        const double cost = cost_of(each, axis);
        if (cost < least && signatures.fits(each, axis, {taken.data(), taken.size()})) least = cost, best = &each;
        if (least == 0) break;
      }
      taken.push_back(best);
      for (size_t i = 0; i < arguments_.size(); ++i) arguments_[i][axis] = best->inputs[i];
      for (size_t i = 0; i < results_.size(); ++i) results_[i][axis] = best->outputs[i];
    }
  }

  double cost_of(const Signature& signature, int32_t axis) const {
    const int64_t ranks = placement_.grid()[axis];
    double cost = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].defined()) continue;
      const double bytes = bytes_beside(inputs_[i].dtype(), inputs_[i].elements(), layout_of(i).sbp, axis);
      double least = move_cost(layout_of(i).sbp[axis], signature.inputs[i], bytes, ranks);
      if (const Layout* known = all_know(i)) {
        least = std::min(least, move_cost(known->sbp[axis], signature.inputs[i], bytes, ranks));
      }
      cost += least;
    }
    for (size_t i = 0; i < metas_.size(); ++i) {
      const GlobalValue* given = value_of(call_.outputs[i]);
      if (given == nullptr) continue;
      cost += move_cost(signature.outputs[i], given->layout.sbp[axis],
                        bytes_beside(metas_[i].dtype, element_count(metas_[i].dims), given->layout.sbp, axis), ranks);
    }
    return cost;
  }

  // The bytes of a tensor per rank when only the grid axes other than `axis` split it.
  double bytes_beside(DType dtype, int64_t elements, const NdSbp& sbp, int32_t axis) const {
    auto bytes = static_cast<double>(dtype_bytes(dtype, elements));
    for (int32_t each = 0; each < sbp.rank(); ++each) {
      if (each != axis && sbp[each].is_split()) bytes /= static_cast<double>(placement_.grid()[each]);
    }
    return bytes;
  }

  Tensor boxed(size_t i) const {
    if (!inputs_[i].defined()) return {};
    return global::boxed(inputs_[i], {placement_, arguments_[i]});
  }

  Layout layout_of_result(size_t i) const { return {placement_, results_[i]}; }

  // The attributes with the dims of this rank's part of the results. Empty: the attributes hold no dims.
  std::vector<unsigned char> attributes_of_part() const {
    const uint16_t at = sbp_row(call_.op->id).dims_at;
    if (call_.attributes == nullptr || at == kNoDims) return {};
    const auto* bytes = static_cast<const unsigned char*>(call_.attributes);
    std::vector<unsigned char> attributes(bytes, bytes + call_.op->attribute_bytes);
    const Dims dims = local_dims(metas_[0].dims, layout_of_result(0));
    const DimsAttribute part = DimsAttribute::of({dims.begin(), dims.end()});
    std::memcpy(attributes.data() + at, &part, sizeof part);
    return attributes;
  }

  // The part of a view may have another layout than the whole; then a copy is viewed.
  void apply_locally(OpCall* local, Few<Tensor, kUsual>* parts) {
    Interpreter& parts_by = parts_interpreter();
    const InterpreterScope scope(parts_by);
    if (call_.op->form != OpForm::view) return parts_by.apply(*local);
    ShapeAttributes shape{};
    if (call_.op ==
        &op_row(OpId::squeeze)) {  // a part may have one element along an axis where the whole tensor has more
      const Dims dims = local_dims(metas_[0].dims, layout_of_result(0));
      shape.dims = DimsAttribute::of({dims.begin(), dims.end()});
      local->op = &op_row(OpId::view);
      local->attributes = &shape;
    }
    Tensor& part = parts->front();
    Tensor trial = begin_view(*part.impl());
    if (!local->op->view(*local, trial.impl()).ok()) part = tenon::contiguous(part);
    parts_by.apply(*local);
    is_copy_ = part.impl() != value_of(inputs_[0])->local.impl();
  }

  void give(size_t i, const Tensor& part) {
    Tensor& output = call_.outputs[i];
    const GlobalValue* given = value_of(output);
    if (given == nullptr) {
      output = made(i, part);
      return;
    }
    if (!(given->layout.sbp == results_[i])) {
      Tensor target = given->local;
      tenon::copy_(target, box(part, metas_[i].dtype, metas_[i].dims, layout_of_result(i), given->layout));
    }
    note_write(output);
    name_writer(output, call_.op->name);
    if (!(given->layout.sbp == results_[i])) note_overwritten(output, layout_of_result(i), part);
  }

  // Updates the views and bases that share the elements of `written` or hold a copy of them.
  static void note_write(const Tensor& written) {
    const GlobalValue& value = *value_of(written);
    value.writes->note();
    if (value.copied == nullptr) return;
    CopiedView& view = *value.copied;
    OpCall call;
    const Tensor* inputs[] = {&view.base};
    call.op = view.op;
    call.inputs = inputs;
    call.attributes = view.attributes.data();
    Tensor base = view.base;
    const Tensor copy = make_global(view.meta.dtype, view.meta.dims, view.layout, view.local);
    tenon::copy_(base, view.op->write(call, base, copy));
    view.seen = value_of(base)->writes->count;
  }

  // Boxing and casts that carried out a write are not shown as the writer; the user's op is.
  static void name_writer(const Tensor& written, const std::string_view& op) {
    const GlobalValue* value = value_of(written);
    while (true) {
      if (value->local.defined() && value->local.impl()->storage != nullptr)
        value->local.impl()->storage.note_write(op);
      if (value->copied == nullptr) return;
      value = value_of(value->copied->base);
    }
  }

  // True if the result of a view has its own elements; the same on every rank.
  bool moves_for_view() const { return is_copy_ || !(arguments_[0] == layout_of(0).sbp); }

  // A view of the whole has the strides of the whole, so that layout checks see the whole tensor.
  Tensor made(size_t i, const Tensor& part) const {
    Tensor result = make_global(metas_[i].dtype, metas_[i].dims, layout_of_result(i), part);
    const bool is_cheap = call_.op->form == OpForm::elementwise || call_.op->form == OpForm::view;
    const GlobalProgram* program = current_program();
    if (is_cheap && program != nullptr) value_of(result)->ready = ready_of_arguments(program->number);
    if (call_.op->form != OpForm::view) return result;
    result.impl()->strides = metas_[i].strides;
    settle_layout(result.impl());
    GlobalValue& value = *value_of(result);
    const GlobalValue& base = *value_of(inputs_[0]);
    if (moves_for_view()) {
      const auto* bytes = static_cast<const unsigned char*>(call_.attributes);
      value.copied = std::make_shared<CopiedView>(
          CopiedView{inputs_[0], call_.op, std::vector<unsigned char>(bytes, bytes + call_.op->attribute_bytes),
                     base.writes->count, metas_[i], layout_of_result(i), part});
    } else {
      value.copied = base.copied;
      value.writes = base.writes;
    }
    return result;
  }

  int64_t ready_of_arguments(uint64_t program) const {
    int64_t ready = 0;
    for (const Tensor& input : inputs_) {
      if (input.defined()) ready = std::max(ready, value_of(input)->ready_at(program));
    }
    return ready;
  }

  // Runs the call on a rank that holds no part of the tensors.
  void run_outside() {
    for (size_t i = 0; i < metas_.size(); ++i) {
      if (call_.outputs[i].defined()) continue;
      call_.outputs[i] = made(i, {});
    }
  }

  const OpCall& call_;
  Placement placement_;
  Few<Tensor, kUsual> inputs_;
  Few<const Tensor*, kUsual> pointers_;
  OpCall global_;  // the call, with inputs that are all global
  std::vector<TensorMeta> metas_;
  Few<NdSbp, kUsual> arguments_, results_;
  bool is_copy_ = false;  // for a view: true if it is a copy on this rank
};

// True for a mean over axes along which the tensor is split: the parts may differ in length.
bool is_spread_mean(const OpCall& call) {
  if (call.op != &op_row(OpId::mean)) return false;
  const GlobalValue* value = value_of(*call.inputs[0]);
  const uint32_t axes = call.attributes_as<ReduceAttributes>().axes;
  return value != nullptr && std::any_of(value->layout.sbp.begin(), value->layout.sbp.end(), [&](Sbp sbp) {
           return sbp.is_partial() || (sbp.is_split() && (axes >> sbp.axis() & 1) != 0);
         });
}

void run_spread_mean(const OpCall& call) {
  const auto& at = call.attributes_as<ReduceAttributes>();
  const Tensor& input = *call.inputs[0];
  std::vector<int64_t> axes;
  int64_t count = 1;
  for (int32_t axis = 0; axis < input.rank(); ++axis) {
    if ((at.axes >> axis & 1) == 0) continue;
    axes.push_back(axis);
    count *= input.dims()[axis];
  }
  const DType wide = input.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor sum = tenon::sum(input.to(wide), axes, at.keep_dims != 0);
  Tensor mean = tenon::div(sum, static_cast<double>(count)).to(input.dtype());
  if (call.outputs[0].defined()) {
    tenon::copy_(call.outputs[0], mean);
  } else {
    call.outputs[0] = std::move(mean);
  }
}

// Throws if `tensor` cannot be used inside, or outside, the program that the thread records.
void check_program(const Tensor& tensor, const GlobalValue& value) {
  const GlobalProgram* program = current_program();
  const uint64_t number = program == nullptr ? 0 : program->number;
  if (value.program != 0 && value.program != number) {
    throw Error(
        Code::invalid_argument,
        fmt::format("A global tensor of shape {} is a value of a program that was recorded, and is used outside "
                    "of it.",
                    tensor.dims()),
        "Return it as a result of the function.");
  }
  if (value.copied != nullptr && value.program != number) {
    throw Error(Code::unsupported,
                fmt::format("A global tensor of shape {} from outside is a view whose elements had to move, and a "
                            "recorded program does not see what its base becomes.",
                            tensor.dims()),
                "Make the view inside the function, or take a clone() of it.");
  }
}

class GlobalInterpreter final : public Interpreter {
 public:
  std::string name() const override { return "the interpreter of global tensors"; }
  bool host_value_known(const Tensor&) override { return true; }

  void apply(const OpCall& call) override {
    const InterpreterScope scope(parts_interpreter());
    if (call.op == &op_row(OpId::to)) {
      throw Error(Subject{"to"}, Code::invalid_argument, "a global tensor does not move to another device.",
                  "Call to_global with a placement on the other devices.");
    }
    const CalledScope called(call.op->named);
    if (!call.epilogues.empty()) return ops::decompose(call);
    if (is_spread_mean(call)) return run_spread_mean(call);
    Call(call).run();
  }
};

constinit GlobalInterpreter interpreter;

}  // namespace

void refresh(const Tensor& tensor) {
  const GlobalValue& value = *value_of(tensor);
  check_program(tensor, value);
  if (value.copied == nullptr) return;
  CopiedView& view = *value.copied;
  refresh(view.base);
  const uint64_t writes = value_of(view.base)->writes->count;
  if (view.seen == writes) return;
  view.seen = writes;
  Tensor fresh;
  const Tensor* inputs[] = {&view.base};
  OpCall call;
  call.op = view.op;
  call.inputs = inputs;
  call.attributes = view.attributes.data();
  call.outputs = {&fresh, 1};
  global_interpreter().apply(call);
  const GlobalValue& made = *value_of(fresh);
  const InterpreterScope scope(parts_interpreter());
  const Tensor part = box(made.local, fresh.dtype(), fresh.dims(), made.layout, view.layout);
  if (view.local.defined()) tenon::copy_(view.local, part);
  value.writes->note();
}

Interpreter& global_interpreter() { return interpreter; }

void compose_global(const OpCall& call, const Placement& placement) {
  for (const Tensor* input : call.inputs) {
    if (input == nullptr || !input->defined() || value_of(*input) != nullptr || may_be_mixed(*input)) continue;
    refuse_mixing(call, *input, placement);
  }
  {
    const MadeEverywhere scope(true);
    call.op->compose(call);
  }
  for (Tensor& output : call.outputs) {
    if (!output.defined() || value_of(output) != nullptr) continue;
    Tensor local = output;
    if (placement.here() && local.device() != placement.device()) local = local.to(placement.device());
    output = make_global(local.dtype(), local.dims(), {placement, everywhere(placement)},
                         placement.here() ? local : Tensor());
  }
}

}  // namespace tenon::global
