// Ops that call other ops.
#include <curves/functors.h>
#include <tenon/tenon.h>

namespace curves::functors {

Tensor swish2(const Tensor& input, double beta) { return input * tenon::sigmoid(input * beta); }

}  // namespace curves::functors
