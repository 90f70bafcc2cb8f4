#include "benchmarks/peers/torch.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <torch/version.h>

namespace tenon::bench {

struct Torch::State {
  at::Tensor a, b, out, result;
};

Torch::Torch(const float* values, int64_t elements) : state_(std::make_unique<State>()) {
  const c10::InferenceMode guard;
  state_->a = at::empty({elements}, at::kFloat);
  std::memcpy(state_->a.data_ptr<float>(), values, static_cast<size_t>(elements) * sizeof(float));
  state_->b = state_->a.clone();
  state_->out = at::empty_like(state_->a);
}
Torch::~Torch() = default;

std::string Torch::label(int threads) {
  at::set_num_threads(threads);
  return "libtorch " + std::to_string(TORCH_VERSION_MAJOR) + "." + std::to_string(TORCH_VERSION_MINOR) + "." +
         std::to_string(TORCH_VERSION_PATCH) + ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

void Torch::relu(int64_t n) {
  const c10::InferenceMode guard;
  for (int64_t i = 0; i < n; ++i) state_->result = at::relu(state_->a);
}

void Torch::add(int64_t n) {
  const c10::InferenceMode guard;
  for (int64_t i = 0; i < n; ++i) state_->result = at::add(state_->a, state_->b);
}

void Torch::view(int64_t n) {
  const c10::InferenceMode guard;
  const int64_t half = state_->a.numel() / 2;
  for (int64_t i = 0; i < n; ++i) state_->result = state_->a.view({half, 2});
}

void Torch::add_out(int64_t n) {
  const c10::InferenceMode guard;
  for (int64_t i = 0; i < n; ++i) at::add_out(state_->out, state_->a, state_->b);
}

}  // namespace tenon::bench
