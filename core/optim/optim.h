// Optimisers, gradient clipping and learning rate schedules.
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
// for all parameters that have a gradient; the others do not change. A compiled function may call zero_grad,
// clip_grad_norm and step: learning rates and step counts are tensors, so one program serves all steps. Call schedules
// outside the compiled function. One exception: with both momentum and dampening, the first step has another formula.
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

// Parameters that share hyperparameters. Fields that are not set take the optimiser's values.
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

  // Updates every parameter that has a gradient.
  void step();
  // Drops the gradients of all parameters.
  void zero_grad();

  size_t group_count() const { return groups_.size(); }
  double lr(size_t group = 0) const { return groups_.at(group).lr; }
  void set_lr(size_t group, double lr);
  // Sets the rate of all groups.
  void set_lr(double lr);

  // The optimiser's state without the parameters, by names such as "3.exp_avg" for parameter 3 and "group 0.lr". The
  // tensors of parameters are the optimiser's own; step counts and rates are copies, which load_state accepts.
  NamedTensors state() const;
  // Copies the elements that state() returned for an optimiser with the same parameters. Errors: invalid_argument (a
  // tensor is missing, unknown, or has another shape or dtype); nothing is copied then.
  void load_state(const NamedTensors& state);
  // Saves state() as a safetensors file, or loads it. Errors: those of load_state and of the file.
  void save(const std::string& path) const;
  void load(const std::string& path);

 protected:
  // Parameters of one group that have the same step count, dtype and device.
  struct Batch {
    TensorList parameters;
    TensorList gradients;
    std::vector<TensorList> buffers;  // buffers[k]: buffer k of each parameter
    Tensor step;                      // the number of this step; the first is 1
    Tensor lr;
    double weight_decay = 0;
    bool first = false;  // true in the first step of its parameters
  };

  // `buffers`: the names of the buffers per parameter, which start as zeros. Errors: invalid_argument (a parameter that
  // is not a floating leaf that requires a gradient, or is listed twice; a learning rate below 0).
  Optimizer(std::string_view name, std::vector<Group> groups, double lr, double weight_decay,
            std::vector<std::string> buffers);

  // Updates the parameters of `batch`.
  virtual void update(const Batch& batch) = 0;

 private:
  // The learning rate of a group as a tensor, one for each device and precision of its parameters.
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
  // A step count, shared by parameters that have made all their steps together.
  struct Clock {
    Tensor steps;
    int64_t seen = 0;  // the steps that this object has counted or loaded; compiled steps are not included
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

// Gradient descent with momentum. Errors of the constructor: those of Optimizer; nesterov without momentum, or with
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

// D. Kingma, J. Ba: Adam: A Method for Stochastic Optimization (2014). weight_decay is added to the gradient. Errors of
// the constructor: those of Optimizer; a beta outside [0, 1), an eps below 0.
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

// I. Loshchilov, F. Hutter: Decoupled Weight Decay Regularization (2017): Adam with a weight_decay that shrinks the
// parameters directly.
class TENON_API AdamW final : public Optimizer {
 public:
  explicit AdamW(TensorList parameters, const AdamWOptions& options = {});
  explicit AdamW(std::vector<Group> groups, const AdamWOptions& options = {});

 private:
  void update(const Batch& batch) override;
  AdamWOptions options_;
};

// Scales the gradients of `parameters` so that their norm, taken over all elements together, is at most `most`, and
// returns the norm before scaling. `norm` is the order: above 0, or infinity. Does not wait for the result. Parameters
// without a gradient are ignored; if none has one, the result is 0 in f32. Errors: invalid_argument (an order that is
// not above 0).
TENON_API Tensor clip_grad_norm(const TensorList& parameters, double most, double norm = 2);
// Clamps every element of the gradients to -most .. most.
TENON_API void clip_grad_value(const TensorList& parameters, double most);

// A learning rate curve: returns the rate after `steps` steps of a schedule, given the optimiser's initial rate `base`.
using Curve = std::function<double(int64_t steps, double base)>;

TENON_API Curve constant_factor(double factor, int64_t steps);  // base * factor, and base after `steps`
TENON_API Curve linear_factor(double first, double last,
                              int64_t steps);  // base times a linear ramp from `first` to `last`, then base * last
TENON_API Curve exponential(double gamma);     // base * gamma^n
TENON_API Curve step_decay(int64_t every, double gamma = 0.1);            // multiplied by gamma every `every` steps
TENON_API Curve multi_step(std::vector<int64_t> at, double gamma = 0.1);  // multiplied by gamma at each step in `at`
TENON_API Curve polynomial(int64_t steps, double power = 1);              // base * (1 - n / steps)^power, then 0
TENON_API Curve cosine(int64_t steps, double least = 0);  // half a cosine from base to `least`, then back
// Half cosines from base to `least` over first, first * factor, first * factor^2, ... steps.
TENON_API Curve cosine_restarts(int64_t first, int64_t factor = 1, double least = 0);
// Half cosines from most / divisor up to `most` in the fraction `rise` of `steps`, then down to most / divisor /
// last_divisor.
TENON_API Curve one_cycle(double most, int64_t steps, double rise = 0.3, double divisor = 25,
                          double last_divisor = 1e4);
// Runs the curves one after another; curve i + 1 starts at step at[i]. Each curve counts from 0.
TENON_API Curve sequence(std::vector<Curve> curves, std::vector<int64_t> at);

// Sets an optimiser's learning rates along a curve, each group from its own base. Borrows the optimiser.
class TENON_API Schedule {
 public:
  // The optimiser's current rates become the bases; then its rates are set for step 0.
  Schedule(Optimizer& optimizer, Curve curve);
  void step() { go_to(steps_ + 1); }
  int64_t steps() const { return steps_; }
  // Continues as if `steps` steps had been made. Use it after loading a file.
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
  int64_t patience = 10;    // steps without improvement before the rate is reduced
  double threshold = 1e-4;  // relative change that counts as an improvement
  int64_t cooldown = 0;     // steps after a reduction that are ignored
  double least = 0;         // the lowest rate
  double least_change = 1e-8;
};

// Multiplies the learning rates by a factor when a metric stops improving. Borrows the optimiser.
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
