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

constexpr Implementation pooling[] = {{"opencl", Pooling::why_not, Pooling::make}};
constexpr Implementation layer_norm[] = {{"opencl", LayerNorm::why_not, LayerNorm::make}};
constexpr Implementation batch_norm[] = {{"opencl", BatchNorm::why_not, BatchNorm::make}};
constexpr Implementation gather[] = {{"opencl", Gather::why_not, Gather::make}};
constexpr Implementation parts[] = {{"opencl", Parts::why_not, Parts::make}};
constexpr Implementation pad[] = {{"opencl", Pad::why_not, Pad::make}};

constexpr ImplementationList lists[] = {
    {EP_PRIMITIVE_fill, elementwise},
    {EP_PRIMITIVE_copy, elementwise},
    {EP_PRIMITIVE_unary, elementwise},
    {EP_PRIMITIVE_binary, elementwise},
    {EP_PRIMITIVE_ternary, elementwise},
    {EP_PRIMITIVE_reduce, reduce},
    {EP_PRIMITIVE_arg_reduce, arg_reduce},
    {EP_PRIMITIVE_softmax, softmax},
    {EP_PRIMITIVE_matmul, matmul},
    {EP_PRIMITIVE_convolution, convolution},
    {EP_PRIMITIVE_pooling, pooling},
    {EP_PRIMITIVE_layer_norm, layer_norm},
    {EP_PRIMITIVE_batch_norm, batch_norm},
    {EP_PRIMITIVE_gather, gather},
    {EP_PRIMITIVE_concat, parts},
    {EP_PRIMITIVE_split, parts},
    {EP_PRIMITIVE_pad, pad},
};

}  // namespace

std::span<const ImplementationList> implementation_lists() { return lists; }

}  // namespace tenon::provider::opencl
