// Random steps: programs of tests/unit/graph/random_program.h over captured state and captured weights, with gradients.
// They write the state through views that overlap, drop elements at random, run backward inside or leave it to the
// caller, and update the weights in place.
#pragma once

#include "core/autograd/autograd.h"
#include "core/ops/operators.h"
#include "tests/unit/graph/random_program.h"

namespace tenon {

// The tensors outside of a step that it uses.
struct World {
  explicit World(uint32_t seed)
      : memory(graph::random_tensor({6, 4}, seed)),
        upper(slice(memory, 0, 0, 4)),
        lower(slice(memory, 0, 2, 6)),
        counter(graph::random_numbers({4, 4}, seed + 1)) {
    uint32_t number = seed + 2;
    for (const Dims& dims : {Dims{4, 4}, Dims{4}, Dims{4, 1}}) {
      weights.push_back(graph::random_tensor(dims, number++).requires_grad_());
    }
    weights.push_back(graph::random_tensor({4, 4}, number).requires_grad_());
    made = tanh(weights[3]);
  }

  Tensor memory;
  Tensor upper, lower;  // rows of `memory`; both contain the middle rows
  Tensor counter;
  TensorList weights;
  Tensor made;  // made from the last weight by an op outside of the step
};

// The code that requests gradients.
enum class Asks : uint8_t { nobody, caller, caller_second_order, backward, grad, second_order };
constexpr uint32_t kAsks = 6;
inline bool caller_asks(Asks asks) { return asks == Asks::caller || asks == Asks::caller_second_order; }

class RandomStep {
 public:
  // `smooth` as in RandomProgram. Takes two inputs of shape [4, 4], of f32 and of i32.
  RandomStep(uint32_t seed, int size, bool smooth, World* world)
      : seed_(seed), program_(seed, size, smooth, false), world_(world) {}

  RandomStep over(World* world) const {
    RandomStep same = *this;
    same.world_ = world;
    return same;
  }
  RandomStep without(size_t at) const {
    RandomStep smaller = *this;
    smaller.program_ = program_.without(at);
    return smaller;
  }
  size_t size() const { return program_.size(); }
  Asks asks() const { return static_cast<Asks>(seed_ % kAsks); }
  bool input_wants_gradient() const { return seed_ / kAsks % 4 == 0; }

  TensorList operator()(const TensorList& inputs) {
    random_.seed(seed_ + 1);
    write_state(inputs[0].detach());
    const Tensor factor = below(4) == 0 ? dropout(world_->weights[0], 0.3, true) : world_->weights[0];
    const Tensor state = below(2) == 0 ? world_->upper : world_->lower;
    RandomProgram program = program_;
    TensorList results = program({inputs[0] * factor, state + world_->weights[1], inputs[1] + world_->counter});
    results[0] = results[0] * world_->weights[2];
    if (caller_asks(asks()) && below(2) == 0) results[1] = results[1] + world_->made;
    if (asks() == Asks::nobody) {
      for (Tensor& result : results) result = result.detach();
    } else if (caller_asks(asks())) {
      // If a tensor gets gradients from several results, they are added in the order of the results, not of their uses.
      for (Tensor& result : results) result = is_floating(result.dtype()) ? result * 0.75 : result;
    } else {
      learn(&results);
    }
    write_state(results[0].detach());
    return results;
  }

 private:
  using RandomProgram = graph::RandomProgram;

  uint32_t below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }

  void write_state(const Tensor& from) {
    if (asks() == Asks::caller_second_order) return;  // the gradient reads the state as it was before the call
    const NoGrad scope;
    switch (below(5)) {
      case 0: add_(world_->upper, tanh(from)); break;
      case 1: copy_(world_->lower, tanh(from)); break;
      case 2: {
        Tensor part = slice(world_->memory, 1, 1, 4, 2);
        mul_(part, Scalar(0.75));
        break;
      }
      case 3: {
        Tensor row = select(world_->lower, 0, static_cast<int64_t>(below(4)));
        copy_(row, select(world_->upper, 0, static_cast<int64_t>(below(4))) + 0.125);
        break;
      }
      default: add_(world_->counter, Scalar(int64_t{1}));
    }
  }

  static Tensor loss_of(const TensorList& results) {
    return sum(tanh(results[0])) + mean(tanh(results[1])) + mean(tanh(results[2]));
  }

  void learn(TensorList* results) {
    const Tensor loss = loss_of(*results);
    const TensorList weights(world_->weights.begin(), world_->weights.begin() + 3);
    switch (asks()) {
      case Asks::backward: loss.backward(); break;
      case Asks::grad: {
        for (const Tensor& gradient : grad({loss}, weights, {}, {.allow_unused = true})) {
          if (gradient.defined()) results->push_back(gradient);
        }
        break;
      }
      default: {
        const TensorList first = grad({loss}, weights, {}, {.create_graph = true, .allow_unused = true});
        sum(square(first[2])).backward();
      }
    }
    for (Tensor& result : *results) result = result.detach();
    results->push_back(loss.detach());
    update();
  }

  // In-place updates, some through views that overlap.
  void update() {
    const NoGrad scope;
    for (Tensor weight : world_->weights) {
      const Tensor gradient = weight.grad();
      if (!gradient.defined()) continue;
      if (below(2) == 0) {
        sub_(weight, gradient * 0.1);
      } else {
        Tensor first = slice(weight, 0, 0, 3), last = slice(weight, 0, 1, 4);
        sub_(first, slice(gradient, 0, 1, 4) * 0.1);
        mul_(last, Scalar(0.875));
      }
      if (below(2) == 0) weight.set_grad({});
    }
  }

  uint32_t seed_;
  RandomProgram program_;
  World* world_;
  std::mt19937 random_;
};

}  // namespace tenon
