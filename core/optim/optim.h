// Optimisers: what a training step does with gradients.
//
//   tenon::optim::AdamW optimizer(parameters, {.lr = 1e-3});
//   tenon::optim::Schedule schedule(optimizer, tenon::optim::cosine(1000));
//   for (...) {
//     optimizer.zero_grad();
//     loss_of(batch).backward();
//     tenon::optim::clip_grad_norm(parameters, 1.0);
//     optimizer.step();
//     schedule.step();
//   }
//   optimizer.save("optimizer.safetensors");
//
// The formulas are those of torch.optim. A step is one op per dtype and device (fused_sgd_, fused_adam_, fused_adamw_),
// for all parameters that have a gradient; the others stay as they are. A compiled function may call zero_grad,
// clip_grad_norm and step: learning rates and counts of steps are tensors, so one program serves all steps. Schedules
// stand outside of it. The exception: the first step with a momentum and a dampening has another formula.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/export.h"
#include "core/tensor/files.h"
#include "core/tensor/tensor.h"

namespace tenon::optim {

// Parameters that are updated alike. What is not said is the optimiser's.
struct Group {
  TensorList parameters;
  std::optional<double> lr = {};
  std::optional<double> weight_decay = {};
};

class TENON_API Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Writes every parameter that has a gradient.
  void step();
  // Drops the gradients of all parameters.
  void zero_grad();

  size_t group_count() const { return groups_.size(); }
  double lr(size_t group = 0) const { return groups_.at(group).lr; }
  void set_lr(size_t group, double lr);
  // Of all groups.
  void set_lr(double lr);

  // What the optimiser knows beside the parameters, by names as "3.exp_avg" of parameter 3 and "group 0.lr". Those of
  // parameters are the optimiser's own; counts of steps and rates are copies, which load_state takes.
  NamedTensors state() const;
  // Takes the elements of what state() gave of an optimiser with the same parameters. Errors: invalid_argument (a
  // tensor is missing, unknown, or of another shape or dtype); nothing was taken then.
  void load_state(const NamedTensors& state);
  // The same as a file of the format safetensors. Errors: those of the file besides.
  void save(const std::string& path) const;
  void load(const std::string& path);

 protected:
  // Parameters of one group that have taken the same number of steps, of one dtype, on one device.
  struct Batch {
    TensorList parameters;
    TensorList gradients;
    std::vector<TensorList> buffers;  // buffers[k]: the k-th one of each parameter
    Tensor step;                      // the number of this step, from 1
    Tensor lr;
    double weight_decay = 0;
    bool first = false;  // the first step of its parameters
  };

  // `buffers`: the names of the tensors that are kept of each parameter; they begin as zeros. Errors: invalid_argument
  // (a parameter that is no leaf of floats that wants a gradient, or is there twice; a learning rate below 0).
  Optimizer(std::string_view name, std::vector<Group> groups, double lr, double weight_decay,
            std::vector<std::string> buffers);

  // One step of the parameters of `batch`.
  virtual void update(const Batch& batch) = 0;

 private:
  // The learning rate of a group as a tensor, for each device and precision that its parameters have.
  struct Rate {
    DeviceState* device;
    DType dtype;
    Tensor value;
  };
  struct GroupState {
    double lr, weight_decay;
    std::vector<Rate> rates;
  };
  struct ParameterState {
    Tensor parameter;
    size_t group, rate, clock;
    TensorList buffers;
  };
  // A count of steps, shared by the parameters that have taken them together.
  struct Clock {
    Tensor steps;
    int64_t seen = 0;  // how many this object has counted, or loaded; a compiled step counts without it
    size_t parameters = 0;
  };

  void add_parameter(const Tensor& parameter, size_t group);
  size_t rate_of(GroupState* group, const Tensor& parameter);
  size_t new_clock(const Tensor& like, int64_t steps);
  void move_clocks(const std::vector<size_t>& ready);
  void run_batches(const std::vector<size_t>& ready);
  void load_clocks(const std::vector<int64_t>& steps);

  std::string name_;
  std::vector<std::string> buffer_names_;
  std::vector<GroupState> groups_;
  std::vector<ParameterState> parameters_;
  std::vector<Clock> clocks_;
};

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
};

// Gradient descent, with momentum. Errors of the constructor: those of Optimizer; nesterov without momentum, or with
// dampening.
class TENON_API SGD final : public Optimizer {
 public:
  explicit SGD(TensorList parameters, const SGDOptions& options = {});
  explicit SGD(std::vector<Group> groups, const SGDOptions& options = {});

 private:
  void update(const Batch& batch) override;
  SGDOptions options_;
};

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
};

// D. Kingma, J. Ba: Adam: A Method for Stochastic Optimization (2014); weight_decay adds to the gradient. Errors of the
// constructor: those of Optimizer; a beta outside of [0, 1), an eps below 0.
class TENON_API Adam final : public Optimizer {
 public:
  explicit Adam(TensorList parameters, const AdamOptions& options = {});
  explicit Adam(std::vector<Group> groups, const AdamOptions& options = {});

 private:
  void update(const Batch& batch) override;
  AdamOptions options_;
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  bool amsgrad = false;
  bool maximize = false;
};

// I. Loshchilov, F. Hutter: Decoupled Weight Decay Regularization (2017): Adam whose weight_decay shrinks parameters.
class TENON_API AdamW final : public Optimizer {
 public:
  explicit AdamW(TensorList parameters, const AdamWOptions& options = {});
  explicit AdamW(std::vector<Group> groups, const AdamWOptions& options = {});

 private:
  void update(const Batch& batch) override;
  AdamWOptions options_;
};

// The `norm`-th norm of all gradients of `parameters` as of one list of numbers, before they are multiplied so that it
// is at most `most`. norm: above 0, or infinity. Nobody waits for the number. Parameters without a gradient count
// nothing; without any the result is 0, of f32. Errors: invalid_argument (a norm that is not above 0).
TENON_API Tensor clip_grad_norm(const TensorList& parameters, double most, double norm = 2);
// Keeps every element of the gradients within -most and most.
TENON_API void clip_grad_value(const TensorList& parameters, double most);

// A learning rate: after `steps` steps of a schedule, from the rate that the optimiser began with.
using Curve = std::function<double(int64_t steps, double base)>;

TENON_API Curve constant_factor(double factor, int64_t steps);            // base * factor, after `steps` base
TENON_API Curve linear_factor(double first, double last, int64_t steps);  // base times a line, then `last`
TENON_API Curve exponential(double gamma);                                // base * gamma^n
TENON_API Curve step_decay(int64_t every, double gamma = 0.1);            // times gamma after each `every` steps
TENON_API Curve multi_step(std::vector<int64_t> at, double gamma = 0.1);  // times gamma after each number of `at`
TENON_API Curve polynomial(int64_t steps, double power = 1);              // base * (1 - n / steps)^power, then 0
TENON_API Curve cosine(int64_t steps, double least = 0);  // half a cosine from base to `least`, and back
// Half cosines of first, first * factor, first * factor^2 steps, each from base to `least`.
TENON_API Curve cosine_restarts(int64_t first, int64_t factor = 1, double least = 0);
// From most / divisor up to `most` in the first `rise` of `steps`, then down to most / divisor / last_divisor, along
// half cosines.
TENON_API Curve one_cycle(double most, int64_t steps, double rise = 0.3, double divisor = 25,
                          double last_divisor = 1e4);
// One curve after the other, the next one from each of `at` on; each counts from 0.
TENON_API Curve sequence(std::vector<Curve> curves, std::vector<int64_t> at);

// Sets the learning rates of an optimiser along a curve, each group's from its own base. Borrows the optimiser.
class TENON_API Schedule {
 public:
  // The rates that the optimiser has now are the bases; its rates become those of step 0.
  Schedule(Optimizer& optimizer, Curve curve);
  void step() { go_to(steps_ + 1); }
  int64_t steps() const { return steps_; }
  // As if `steps` steps had been made: what goes on from a file does this.
  void go_to(int64_t steps);

 private:
  Optimizer& optimizer_;
  Curve curve_;
  std::vector<double> bases_;
  int64_t steps_ = 0;
};

struct PlateauOptions {
  bool greater_is_better = false;
  double factor = 0.1;
  int64_t patience = 10;    // how many steps may bring nothing better
  double threshold = 1e-4;  // by what part better is better
  int64_t cooldown = 0;     // steps after a change that do not count
  double least = 0;         // no rate goes below
  double least_change = 1e-8;
};

// Multiplies the learning rates by a factor when a measure no longer gets better. Borrows the optimiser.
class TENON_API ReduceOnPlateau {
 public:
  explicit ReduceOnPlateau(Optimizer& optimizer, const PlateauOptions& options = {});
  void step(double measure);

 private:
  Optimizer& optimizer_;
  PlateauOptions options_;
  std::optional<double> best_;
  int64_t bad_steps_ = 0;
  int64_t cooling_ = 0;
};

}  // namespace tenon::optim
