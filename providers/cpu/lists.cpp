#include "providers/cpu/lists.h"

#include "providers/cpu/attention/attention.h"
#include "providers/cpu/blocked_matmul/blocked_matmul.h"
#include "providers/cpu/convolution/convolution.h"
#include "providers/cpu/elementwise/elementwise.h"
#include "providers/cpu/elementwise/packed.h"
#include "providers/cpu/fft/fft.h"
#include "providers/cpu/gradients/gradients.h"
#include "providers/cpu/linear_algebra/linear_algebra.h"
#include "providers/cpu/movement/movement.h"
#include "providers/cpu/normalization/normalization.h"
#include "providers/cpu/onednn/onednn.h"
#include "providers/cpu/order/order.h"
#include "providers/cpu/plain/plain.h"
#include "providers/cpu/pooling/pooling.h"
#include "providers/cpu/quantised/quantised.h"
#include "providers/cpu/random/random.h"
#include "providers/cpu/recurrent/recurrent.h"
#include "providers/cpu/reduction/reduction.h"
#include "providers/cpu/resize/resize.h"
#include "providers/cpu/small_matmul/small_matmul.h"
#include "providers/cpu/vector_matmul/vector_matmul.h"
#include "providers/cpu/weight_gradient/weight_gradient.h"
#include "providers/cpu/widened/widened.h"

namespace tenon::provider::cpu {
namespace {

constexpr Implementation elementwise[] = {{"simd", Elementwise::simd_why_not, Elementwise::make},
                                          {"plain", Elementwise::why_not, Elementwise::make}};
constexpr Implementation copy[] = {{"simd", Elementwise::simd_why_not, Elementwise::make},
                                   {"plain", Elementwise::why_not, Elementwise::make},
                                   {"packed", PackedCopy::why_not, PackedCopy::make}};
constexpr Implementation matmul[] = {{"bf16", RelaxedMatmul::why_not, RelaxedMatmul::make},
                                     {"vector", VectorMatmul::why_not, VectorMatmul::make},
                                     {"simd", SmallMatmul::why_not, SmallMatmul::make},
                                     {"batch", BatchMatmul::why_not, BatchMatmul::make},
                                     {"packed", PackedMatmul::why_not, PackedMatmul::make},
                                     {"onednn", OneDnnMatmul::why_not, OneDnnMatmul::make},
                                     {"widened", Widened::why_not, Widened::make},
                                     {"blocks", BlockedMatmul::why_not, BlockedMatmul::make},
                                     {"bytes", QuantisedMatmul::why_not, QuantisedMatmul::make, true},
                                     {"weights", QuantisedWeights::why_not, QuantisedWeights::make, true},
                                     {"plain", PlainMatmul::why_not, PlainMatmul::make}};
constexpr Implementation convolution[] = {
    {"bf16", RelaxedConvolution::why_not, RelaxedConvolution::make},
    {"channels_last", ChannelsLastConvolution::why_not, ChannelsLastConvolution::make},
    {"transposed", TransposedConvolution::why_not, TransposedConvolution::make},
    {"depthwise", DepthwiseConvolution::why_not, DepthwiseConvolution::make},
    {"depthwise_planes", DepthwisePlanes::why_not, DepthwisePlanes::make},
    {"lines", LineConvolution::why_not, LineConvolution::make},
    {"pixels", PixelConvolution::why_not, PixelConvolution::make},
    {"onednn", OneDnnConvolution::why_not, OneDnnConvolution::make},
    {"f64", F64Convolution::why_not, F64Convolution::make},
    {"widened", Widened::why_not, Widened::make},
    {"bytes", QuantisedConvolution::why_not, QuantisedConvolution::make, true},
    {"plain", PlainConvolution::why_not, PlainConvolution::make}};
constexpr Implementation binary[] = {{"simd", Elementwise::simd_why_not, Elementwise::make},
                                     {"plain", Elementwise::why_not, Elementwise::make},
                                     {"bytes", QuantisedElements::why_not, QuantisedElements::make, true}};
constexpr Implementation quantise[] = {{"bytes", QuantisedElements::why_not, QuantisedElements::make, true}};
constexpr Implementation pooling[] = {{"simd", Pooling::simd_why_not, Pooling::make},
                                      {"plain", Pooling::why_not, Pooling::make}};
constexpr Implementation softmax[] = {{"simd", Softmax::simd_why_not, Softmax::make},
                                      {"plain", Softmax::why_not, Softmax::make}};
constexpr Implementation layer_norm[] = {{"simd", LayerNorm::why_not, LayerNorm::make}};
constexpr Implementation batch_norm[] = {{"simd", BatchNorm::why_not, BatchNorm::make}};
constexpr Implementation reduce[] = {{"bytes", Reduce::bytes_why_not, Reduce::make_bytes},
                                     {"simd", Reduce::why_not, Reduce::make}};
constexpr Implementation arg_reduce[] = {{"simd", ArgReduce::why_not, ArgReduce::make}};
constexpr Implementation gather[] = {{"rows", Gather::why_not, Gather::make}};
constexpr Implementation parts[] = {{"rows", Parts::why_not, Parts::make}};
constexpr Implementation pad[] = {{"rows", Pad::why_not, Pad::make}};
constexpr Implementation scatter[] = {{"rows", Scatter::why_not, Scatter::make}};
constexpr Implementation convolution_weight[] = {
    {"product", WeightGradient::product_why_not, WeightGradient::product_make},
    {"f64", WeightGradient::f64_why_not, WeightGradient::f64_make},
    {"widened", Widened::why_not, Widened::make},
    {"lanes", WeightGradient::why_not, WeightGradient::make}};
constexpr Implementation pooling_backward[] = {{"rows", PoolingBackward::why_not, PoolingBackward::make}};
constexpr Implementation layer_norm_backward[] = {{"rows", LayerNormBackward::why_not, LayerNormBackward::make}};
constexpr Implementation batch_norm_training[] = {{"channels", BatchNormTraining::why_not, BatchNormTraining::make}};
constexpr Implementation group_norm[] = {{"simd", GroupNorm::why_not, GroupNorm::make}};
constexpr Implementation attention[] = {{"bf16", Attention::relaxed_why_not, Attention::relaxed_make},
                                        {"blocks", Attention::why_not, Attention::make}};
constexpr Implementation rotary[] = {{"rows", Rotary::why_not, Rotary::make}};
constexpr Implementation scan[] = {{"lines", Scan::why_not, Scan::make}};
constexpr Implementation sort[] = {{"radix", Sort::why_not, Sort::make}};
constexpr Implementation top_k[] = {{"candidates", TopK::why_not, TopK::make}};
constexpr Implementation unique[] = {{"sorted", Unique::why_not, Unique::make}};
constexpr Implementation nonzero[] = {{"chunks", Nonzero::why_not, Nonzero::make}};
constexpr Implementation one_hot[] = {{"lines", OneHot::why_not, OneHot::make}};
constexpr Implementation random[] = {{"philox", Random::why_not, Random::make}};
constexpr Implementation resize[] = {{"axes", Resize::why_not, Resize::make}};
constexpr Implementation recurrent[] = {{"simd", Recurrent::why_not, Recurrent::make}};
constexpr Implementation fft[] = {{"lines", Fft::why_not, Fft::make}};
constexpr Implementation linear_algebra[] = {{"lapack", LinearAlgebra::why_not, LinearAlgebra::make}};

constexpr ImplementationList lists[] = {
    {EP_PRIMITIVE_fill, copy},
    {EP_PRIMITIVE_copy, copy},
    {EP_PRIMITIVE_unary, elementwise},
    {EP_PRIMITIVE_binary, binary},
    {EP_PRIMITIVE_ternary, elementwise},
    {EP_PRIMITIVE_quantise, quantise},
    {EP_PRIMITIVE_dequantise, quantise},
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
    {EP_PRIMITIVE_scatter, scatter},
    {EP_PRIMITIVE_convolution_weight, convolution_weight},
    {EP_PRIMITIVE_pooling_backward, pooling_backward},
    {EP_PRIMITIVE_layer_norm_backward, layer_norm_backward},
    {EP_PRIMITIVE_batch_norm_training, batch_norm_training},
    {EP_PRIMITIVE_batch_norm_backward, batch_norm_training},
    {EP_PRIMITIVE_scan, scan},
    {EP_PRIMITIVE_sort, sort},
    {EP_PRIMITIVE_top_k, top_k},
    {EP_PRIMITIVE_unique, unique},
    {EP_PRIMITIVE_nonzero, nonzero},
    {EP_PRIMITIVE_one_hot, one_hot},
    {EP_PRIMITIVE_random, random},
    {EP_PRIMITIVE_rms_norm, layer_norm},
    {EP_PRIMITIVE_group_norm, group_norm},
    {EP_PRIMITIVE_attention, attention},
    {EP_PRIMITIVE_rotary, rotary},
    {EP_PRIMITIVE_resize, resize},
    {EP_PRIMITIVE_recurrent, recurrent},
    {EP_PRIMITIVE_fft, fft},
    {EP_PRIMITIVE_linear_algebra, linear_algebra},
};

}  // namespace

std::span<const ImplementationList> implementation_lists() { return lists; }

}  // namespace tenon::provider::cpu
