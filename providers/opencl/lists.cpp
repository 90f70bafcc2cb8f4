#include "providers/opencl/lists.h"

#include "providers/opencl/kernels/kernels.h"

namespace tenon::provider::opencl {
namespace {

constexpr Implementation elementwise[] = {{"opencl", Elementwise::why_not, Elementwise::make}};
constexpr Implementation reduce[] = {{"opencl", Reduce::why_not, Reduce::make}};
constexpr Implementation arg_reduce[] = {{"opencl", ArgReduce::why_not, ArgReduce::make}};
constexpr Implementation softmax[] = {{"opencl", Softmax::why_not, Softmax::make}};

constexpr Implementation matmul[] = {{"opencl", Matmul::why_not, Matmul::make}};
constexpr Implementation convolution[] = {{"opencl", Convolution::why_not, Convolution::make}};

constexpr ImplementationList lists[] = {
    {EP_PRIMITIVE_fill, elementwise},        {EP_PRIMITIVE_copy, elementwise},    {EP_PRIMITIVE_unary, elementwise},
    {EP_PRIMITIVE_binary, elementwise},      {EP_PRIMITIVE_ternary, elementwise}, {EP_PRIMITIVE_reduce, reduce},
    {EP_PRIMITIVE_arg_reduce, arg_reduce},   {EP_PRIMITIVE_softmax, softmax},     {EP_PRIMITIVE_matmul, matmul},
    {EP_PRIMITIVE_convolution, convolution},
};

}  // namespace

std::span<const ImplementationList> implementation_lists() { return lists; }

}  // namespace tenon::provider::opencl
