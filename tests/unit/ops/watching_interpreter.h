// WatchingInterpreter: watches the records that come to the door while an op is called, passes them to the eager
// interpreter, and reports what bypassed the door: a tensor that no record made, or a composite that arrived in parts
// although the interpreter keeps composites.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/ops/op_call.h"
#include "primitives/text/format.h"

namespace tenon {

class WatchingInterpreter final : public Interpreter {
 public:
  // `keeps_composites`: a composite comes as one record; otherwise its ops come.
  explicit WatchingInterpreter(bool keeps_composites) : keeps_composites_(keeps_composites) {}

  // Begins a call on `arguments`.
  void begin(const TensorList& arguments) {
    known_ = arguments;
    first_ = nullptr;
    records_ = filled_ = 0;
    passed_by_.clear();
  }

  std::string name() const override { return "the watching interpreter"; }
  bool keeps(const OpInfo&) const override { return keeps_composites_; }
  bool host_value_known(const Tensor&) override { return true; }

  void apply(const OpCall& call) override {
    ++records_;
    if (call.op->name == "full")
      ++filled_;
    else if (first_ == nullptr)
      first_ = call.op;
    for (const Tensor* input : call.inputs) {
      if (input != nullptr) check(fmt::format("{} was given a tensor", call.op->name), *input);
    }
    for (const Tensor& output : call.outputs) check(fmt::format("{} was to write a tensor", call.op->name), output);
    eager_interpreter().apply(call);
    for (const Tensor& output : call.outputs) known_.push_back(output);
  }

  // The number of records that the call has made so far.
  int records() const { return records_; }

  // Returns an empty string, or what bypassed the door in the call of `op` that returned `results`.
  std::string passed_by(std::string_view op, const TensorList& results) {
    for (const Tensor& result : results) check(fmt::format("{} gave a tensor", op), result);
    if (!passed_by_.empty()) return passed_by_;
    const OpInfo* row = row_of(op);
    if (!keeps_composites_ || row == nullptr || row->form != OpForm::composite) return "";
    // If an argument is a number, `full` turns it into a tensor before the record.
    if (first_ == row && records_ - filled_ == 1) return "";
    return fmt::format("{} is kept, but came as {} records, the first {}", op, records_,
                       first_ == nullptr ? "none" : first_->name);
  }

 private:
  static const OpInfo* row_of(std::string_view op) {
    for (const OpInfo& row : op_table()) {
      if (row.name == op) return &row;
    }
    return nullptr;  // a variant of an element-wise op
  }

  void check(std::string what, const Tensor& tensor) {
    if (!tensor.defined() || !passed_by_.empty()) return;
    for (const Tensor& each : known_) {
      if (each.impl() == tensor.impl()) return;
    }
    passed_by_ = fmt::format("{} of shape {} that no record made", what, tensor.dims());
  }

  bool keeps_composites_;
  TensorList known_;  // the arguments and the results of records; held, so that no other tensor gets their address
  const OpInfo* first_ = nullptr;  // first record that is not `full`
  int records_ = 0, filled_ = 0;   // filled_: the number of `full` among the records
  std::string passed_by_;
};

}  // namespace tenon
