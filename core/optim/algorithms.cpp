// The update formulas of the optimisers.
#include "core/ops/ops.h"
#include "core/optim/optim.h"
#include "primitives/text/format.h"

namespace tenon::optim {
namespace {

template <class Options>
Options checked(std::string_view name, const Options& options) {
  for (const double beta : {options.beta1, options.beta2}) {
    if (!(beta >= 0 && beta < 1)) {
      throw Error(Subject{name}, Code::invalid_argument, fmt::format("a beta must be in [0, 1), not {}.", beta));
    }
  }
  if (!(options.eps >= 0)) {
    throw Error(Subject{name}, Code::invalid_argument, fmt::format("eps must be at least 0, not {}.", options.eps));
  }
  return options;
}

const SGDOptions& checked(const SGDOptions& options) {
  if (!(options.momentum >= 0)) {
    throw Error(Code::invalid_argument, fmt::format("SGD: a momentum must be at least 0, not {}.", options.momentum));
  }
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
    throw Error(Code::invalid_argument,
                fmt::format("SGD: nesterov needs a momentum above 0 and no dampening, not {} and {}.", options.momentum,
                            options.dampening));
  }
  return options;
}

std::vector<std::string> averages(bool amsgrad) {
  if (!amsgrad) return {"exp_avg", "exp_avg_sq"};
  return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
}

std::vector<Group> one_group(TensorList parameters) { return {{std::move(parameters)}}; }

}  // namespace

SGD::SGD(TensorList parameters, const SGDOptions& options) : SGD(one_group(std::move(parameters)), options) {}
SGD::SGD(std::vector<Group> groups, const SGDOptions& options)
    : Optimizer("SGD", std::move(groups), options.lr, options.weight_decay,
                options.momentum == 0 ? std::vector<std::string>() : std::vector<std::string>{"momentum_buffer"}),
      options_(checked(options)) {}

void SGD::update(const Batch& batch) {
  const double dampening = batch.first ? 0 : options_.dampening;
  tenon::fused_sgd_(batch.parameters, batch.gradients, batch.buffers.empty() ? TensorList() : batch.buffers[0],
                    batch.lr, options_.momentum, dampening, batch.weight_decay, options_.nesterov, options_.maximize);
}

Adam::Adam(TensorList parameters, const AdamOptions& options) : Adam(one_group(std::move(parameters)), options) {}
Adam::Adam(std::vector<Group> groups, const AdamOptions& options)
    : Optimizer("Adam", std::move(groups), options.lr, options.weight_decay, averages(options.amsgrad)),
      options_(checked("Adam", options)) {}

void Adam::update(const Batch& batch) {
  tenon::fused_adam_(batch.parameters, batch.gradients, batch.buffers[0], batch.buffers[1],
                     options_.amsgrad ? batch.buffers[2] : TensorList(), batch.step, batch.lr, options_.beta1,
                     options_.beta2, batch.weight_decay, options_.eps, options_.maximize);
}

AdamW::AdamW(TensorList parameters, const AdamWOptions& options) : AdamW(one_group(std::move(parameters)), options) {}
AdamW::AdamW(std::vector<Group> groups, const AdamWOptions& options)
    : Optimizer("AdamW", std::move(groups), options.lr, options.weight_decay, averages(options.amsgrad)),
      options_(checked("AdamW", options)) {}

void AdamW::update(const Batch& batch) {
  tenon::fused_adamw_(batch.parameters, batch.gradients, batch.buffers[0], batch.buffers[1],
                      options_.amsgrad ? batch.buffers[2] : TensorList(), batch.step, batch.lr, options_.beta1,
                      options_.beta2, batch.weight_decay, options_.eps, options_.maximize);
}

}  // namespace tenon::optim
