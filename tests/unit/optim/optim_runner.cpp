// Runs optimisers for torch_test.py. A line of input is a case: the name of an optimiser, then words `name=value`. The
// answer is a line per step: the learning rate, the norm before clipping (or 0), and every element of the parameters.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/ops/ops.h"
#include "core/optim/optim.h"

namespace tenon {
namespace {

using Words = std::map<std::string, std::string>;

double number(const Words& words, const std::string& name, double absent = 0) {
  const auto at = words.find(name);
  return at == words.end() ? absent : std::stod(at->second);
}

// The non-empty parts between the separators.
std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  std::erase(parts, "");
  return parts;
}

std::vector<double> numbers(const std::string& text) {
  std::vector<double> all;
  for (const std::string& part : parts_of(text, ',')) all.push_back(std::stod(part));
  return all;
}

template <class Options>
Options adam_options(const Words& words, double weight_decay) {
  Options options;
  options.lr = number(words, "lr", 1e-3);
  options.beta1 = number(words, "beta1", 0.9);
  options.beta2 = number(words, "beta2", 0.999);
  options.eps = number(words, "eps", 1e-8);
  options.weight_decay = number(words, "weight_decay", weight_decay);
  options.amsgrad = number(words, "amsgrad") != 0;
  options.maximize = number(words, "maximize") != 0;
  return options;
}

std::unique_ptr<optim::Optimizer> make(const std::string& name, const Words& words, std::vector<optim::Group> groups) {
  if (name == "Adam") {
    return std::make_unique<optim::Adam>(std::move(groups), adam_options<optim::AdamOptions>(words, 0));
  }
  if (name == "AdamW") {
    return std::make_unique<optim::AdamW>(std::move(groups), adam_options<optim::AdamWOptions>(words, 0.01));
  }
  optim::SGDOptions options;
  options.lr = number(words, "lr", 1e-3);
  options.momentum = number(words, "momentum");
  options.dampening = number(words, "dampening");
  options.weight_decay = number(words, "weight_decay");
  options.nesterov = number(words, "nesterov") != 0;
  options.maximize = number(words, "maximize") != 0;
  return std::make_unique<optim::SGD>(std::move(groups), options);
}

optim::Curve curve_of(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const std::vector<double> n = numbers(text.substr(colon + 1));
  const auto steps = [&](size_t i) { return static_cast<int64_t>(n[i]); };
  if (name == "constant") return optim::constant_factor(n[0], steps(1));
  if (name == "linear") return optim::linear_factor(n[0], n[1], steps(2));
  if (name == "exponential") return optim::exponential(n[0]);
  if (name == "step") return optim::step_decay(steps(0), n[1]);
  if (name == "multi_step") return optim::multi_step({steps(0), steps(1)}, n[2]);
  if (name == "polynomial") return optim::polynomial(steps(0), n[1]);
  if (name == "cosine") return optim::cosine(steps(0), n[1]);
  if (name == "restarts") return optim::cosine_restarts(steps(0), steps(1), n[2]);
  if (name == "one_cycle") return optim::one_cycle(n[0], steps(1), n[2]);
  return optim::sequence({optim::linear_factor(0.1, 1, steps(0)), optim::exponential(n[1])}, {steps(0)});
}

// Three parameters. torch_test.py computes their elements and gradients in the same way.
struct Problem {
  DType dtype;
  TensorList parameters;

  explicit Problem(DType of) : dtype(of) {
    for (const Dims& dims : {Dims{3, 4}, Dims{5}, Dims{700}}) {
      std::vector<double> data(static_cast<size_t>(element_count(dims)));
      for (size_t i = 0; i < data.size(); ++i) {
        data[i] = std::sin(0.7 * static_cast<double>(i) + static_cast<double>(parameters.size()));
      }
      parameters.push_back(cast(Tensor::from<double>(data, dims), dtype).requires_grad_());
    }
  }

  // Parameter 1 has no gradient at every third step.
  void make_gradients(int64_t step) const {
    for (size_t k = 0; k < parameters.size(); ++k) {
      if (k == 1 && step % 3 == 1) continue;
      std::vector<double> data = cast(parameters[k].detach(), DType::f64).to_host<double>();
      for (size_t i = 0; i < data.size(); ++i) {
        data[i] = 0.1 * data[i] +
                  std::cos(0.3 * static_cast<double>(i) * static_cast<double>(step + 1) + static_cast<double>(k));
      }
      parameters[k].set_grad(cast(Tensor::from<double>(data, parameters[k].dims()), dtype));
    }
  }
};

void run(const std::string& name, const Words& words) {
  const Problem problem(words.count("f32") != 0 ? DType::f32 : DType::f64);
  const TensorList& p = problem.parameters;
  std::vector<optim::Group> groups{{p}};
  if (words.count("groups") != 0) groups = {{{p[0], p[1]}, {}, {}}, {{p[2]}, 0.5, 0.25}};
  const auto optimizer = make(name, words, groups);
  std::unique_ptr<optim::Schedule> schedule;
  if (words.count("curve") != 0) schedule.reset(new optim::Schedule(*optimizer, curve_of(words.at("curve"))));
  optim::ReduceOnPlateau plateau(*optimizer, {.factor = 0.5, .patience = 2, .cooldown = 1});
  const std::vector<double> losses = words.count("losses") != 0 ? numbers(words.at("losses")) : std::vector<double>();
  const auto steps = static_cast<int64_t>(number(words, "steps", 50));
  for (int64_t step = 0; step < steps; ++step) {
    optimizer->zero_grad();
    problem.make_gradients(step);
    double norm = 0;
    if (words.count("clip") != 0) {
      const Tensor total = optim::clip_grad_norm(p, number(words, "clip"), number(words, "norm", 2));
      norm = cast(total, DType::f64).to_host<double>()[0];
    }
    if (words.count("clip_value") != 0) optim::clip_grad_value(p, number(words, "clip_value"));
    std::printf("%.17g %.17g", optimizer->lr(), norm);
    optimizer->step();
    if (schedule != nullptr) schedule->step();
    if (!losses.empty()) plateau.step(losses[static_cast<size_t>(step) % losses.size()]);
    for (const Tensor& parameter : p) {
      for (const double element : cast(parameter.detach(), DType::f64).to_host<double>())
        std::printf(" %.17g", element);
    }
    std::printf("\n");
  }
}

}  // namespace
}  // namespace tenon

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string> parts = tenon::parts_of(line, ' ');
    if (parts.empty()) continue;
    tenon::Words words;
    for (const std::string& word : std::span(parts).subspan(1)) {
      const size_t at = word.find('=');
      words[word.substr(0, at)] = at == std::string::npos ? "" : word.substr(at + 1);
    }
    tenon::run(parts.front(), words);
    std::fflush(stdout);
  }
}
