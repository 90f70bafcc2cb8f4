// libtorch as a guest: it contains oneDNN, libgomp, protobuf and the ONNX descriptors.
#include <ATen/Functions.h>
#include <ATen/Tensor.h>

extern "C" __attribute__((visibility("default"))) int coexist_run() {
  const at::Tensor x = at::arange(160 * 160, at::kFloat).remainder(13).reshape({160, 160});
  const at::Tensor product = at::matmul(x, x);
  const at::Tensor exact = at::matmul(x.to(at::kDouble), x.to(at::kDouble));
  return at::equal(product.to(at::kDouble), exact) ? 0 : 1;
}
