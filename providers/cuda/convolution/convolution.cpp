// DST[n, g] = WEIGHT[g] x COLUMNS[n, g], where a column holds the elements of SRC that one position of DST reads. Two
// strided copies write the columns into the workspace (SRC into a larger image of zeros, then windows into columns), a
// few images at a time; a window of one element needs no copy. matmul computes the product. Bias and epilogues follow
// in place; for narrow types they work on a result in f32, so that it is rounded once.
#include "providers/cuda/convolution/convolution.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "providers/cuda/convolution/convolution_tail.h"
#include "providers/cuda/matmul/matmul.h"
#include "providers/cuda/movement/mover.h"

namespace tenon::provider::cuda {
namespace {

constexpr int32_t most_spatial = 3;
constexpr int64_t most_column_bytes = int64_t{1} << 28;  // limit for the images of one product
constexpr uint64_t column_share = 8;                     // and at most this fraction (1 / n) of the device's memory
constexpr int32_t wanted_alignment = 16;                 // the alignment that matmul wants
constexpr int64_t aligned_elements = 8;                  // a multiple of wanted_alignment in every dtype

using Spatial = std::array<int64_t, most_spatial>;

int64_t count_of(const Spatial& dims) { return dims[0] * dims[1] * dims[2]; }

// Sizes of a convolution with three spatial axes; missing leading axes have length 1.
struct Sizes {
  int64_t images, channels, outputs, groups;
  Spatial src, window, dst;
  Spatial stride, dilation, low, padded;

  int64_t column() const { return channels * count_of(window); }
  int64_t positions() const { return count_of(dst); }
  bool has_padding() const { return padded != src; }
  bool is_pointwise() const { return count_of(window) == 1 && stride == Spatial{1, 1, 1} && !has_padding(); }
};

Sizes sizes_of(const ep_primitive_desc& desc) {
  const ep_convolution_attributes& given = desc.attributes.convolution;
  const ep_operand_desc& dst = desc.operands[0];
  const ep_operand_desc& src = *operand(desc, EP_ROLE_SRC);
  const ep_operand_desc& weight = *operand(desc, EP_ROLE_WEIGHT);
  Sizes sizes{src.dims[0], src.dims[1], dst.dims[1], given.groups, {}, {}, {}, {}, {}, {}, {}};
  const int32_t first = most_spatial - given.spatial_rank;
  for (int32_t axis = 0; axis < most_spatial; ++axis) {
    const auto at = static_cast<size_t>(axis);
    const int32_t from = axis - first;
    const bool is_there = from >= 0;
    sizes.src[at] = is_there ? src.dims[2 + from] : 1;
    sizes.window[at] = is_there ? weight.dims[2 + from] : 1;
    sizes.dst[at] = is_there ? dst.dims[2 + from] : 1;
    sizes.stride[at] = is_there ? given.stride[from] : 1;
    sizes.dilation[at] = is_there ? given.dilation[from] : 1;
    sizes.low[at] = is_there ? given.pad_low[from] : 0;
    sizes.padded[at] = sizes.src[at] + (is_there ? given.pad_low[from] + given.pad_high[from] : 0);
  }
  return sizes;
}

// The stride of axes [first, rank) seen as one axis; none if they cannot be merged.
std::optional<int64_t> stride_of_run(const ep_operand_desc& operand, int32_t first) {
  std::optional<int64_t> stride;
  int64_t next = 0;
  for (int32_t axis = operand.rank - 1; axis >= first; --axis) {
    if (operand.dims[axis] == 1) continue;
    if (stride && operand.strides[axis] != next) return std::nullopt;
    if (!stride) stride = operand.strides[axis];
    next = operand.strides[axis] * operand.dims[axis];
  }
  return stride.value_or(1);
}

void set_axes(ep_operand_desc* operand, int32_t role, std::array<int64_t, 4> dims, std::array<int64_t, 4> strides) {
  operand->role = role;
  operand->rank = 4;
  operand->flags = 0;
  std::copy_n(dims.begin(), 4, operand->dims);
  std::copy_n(strides.begin(), 4, operand->strides);
}

// Strides of a matrix [images, group, rows, columns].
using Strides = std::array<int64_t, 4>;
Strides turned(Strides strides) {
  std::swap(strides[2], strides[3]);
  return strides;
}

// True if the channels of the result are innermost; then all matrices of the product are transposed.
bool is_turned(const ep_operand_desc& dst) { return dst.strides[1] == 1 && stride_of_run(dst, 2) != 1; }

// The descriptor of the product for `images` images.
Refusal product_of(const ep_primitive_desc& desc, const Sizes& sizes, int64_t images, ep_primitive_desc* out) {
  const ep_operand_desc dst = ConvolutionTail::product_of(desc, false);
  const ep_operand_desc& src = *operand(desc, EP_ROLE_SRC);
  const ep_operand_desc& weight = *operand(desc, EP_ROLE_WEIGHT);
  const std::optional<int64_t> position = stride_of_run(dst, 2);
  const std::optional<int64_t> column = stride_of_run(weight, 1);
  const std::optional<int64_t> pixel = stride_of_run(src, 2);
  if (!position) return Refusal::because("the positions of its result are not contiguous");
  if (!column) return Refusal::because("the elements of a filter are not contiguous");
  const bool direct = sizes.is_pointwise();
  if (direct && !pixel) return Refusal::because("the positions of its source are not contiguous");
  const int64_t rows = sizes.outputs / sizes.groups, length = sizes.column() / sizes.groups;
  const Strides to = {dst.strides[0], rows * dst.strides[1], dst.strides[1], *position};
  const Strides filter = {0, rows * weight.strides[0], weight.strides[0], *column};
  const Strides copied = {sizes.column() * sizes.positions(), length * sizes.positions(), sizes.positions(), 1};
  const Strides own = {src.strides[0], length * src.strides[1], src.strides[1], pixel.value_or(1)};
  const Strides& from = direct ? own : copied;
  *out = {};
  out->kind = EP_PRIMITIVE_matmul;
  out->precision = desc.precision;
  out->accumulate_dtype = desc.accumulate_dtype;
  out->operand_count = 3;
  const int64_t groups = sizes.groups, positions = sizes.positions();
  ep_operand_desc& a = out->operands[1];
  ep_operand_desc& b = out->operands[2];
  if (is_turned(dst)) {
    set_axes(&out->operands[0], EP_ROLE_DST, {images, groups, positions, rows}, turned(to));
    set_axes(&a, EP_ROLE_SRC, {images, groups, positions, length}, turned(from));
    set_axes(&b, EP_ROLE_SRC_B, {images, groups, length, rows}, turned(filter));
  } else {
    set_axes(&out->operands[0], EP_ROLE_DST, {images, groups, rows, positions}, to);
    set_axes(&a, EP_ROLE_SRC, {images, groups, rows, length}, filter);
    set_axes(&b, EP_ROLE_SRC_B, {images, groups, length, positions}, from);
  }
  out->operands[0].dtype = dst.dtype;
  a.dtype = b.dtype = src.dtype;
  return {};
}

// Finds an implementation of the product; if `out` is given, creates it.
Refusal choose_product(const ep_device& device, const ep_primitive_desc& product, ep_device* makes,
                       ep_primitive** out) {
  ep_support_info terms{};
  ep_primitive_info facts{};
  Refusal refusal = CublasLtMatmul::why_not(device, product, terms);
  if (!refusal && makes != nullptr) refusal = CublasLtMatmul::make(*makes, product, out, facts);
  if (!refusal) return {};
  refusal = PlainMatmul::why_not(device, product, terms);
  if (!refusal && makes != nullptr) refusal = PlainMatmul::make(*makes, product, out, facts);
  return refusal;
}

struct Destroy {
  void operator()(ep_primitive* primitive) const { destroy_primitive(primitive); }
};
using Product = std::unique_ptr<ep_primitive, Destroy>;

// The number of images per product. Limits the memory of columns, but takes more images if aligned results need them.
int64_t images_at_once(const Sizes& sizes, int32_t size, uint64_t memory) {
  if (sizes.is_pointwise()) return sizes.images;
  const int64_t bytes = sizes.column() * sizes.positions() * size;
  const int64_t most = std::min(most_column_bytes, static_cast<int64_t>(memory / column_share));
  const int64_t fit = most / bytes / aligned_elements * aligned_elements;
  return std::clamp<int64_t>(fit, std::min(sizes.images, aligned_elements), sizes.images);
}

class ConvolutionPrimitive final : public ep_primitive {
 public:
  struct Parts {
    Product whole;  // product of at_once images
    Product rest;   // product of the remaining images, if any
    Mover mover;
    ConvolutionTail tail;
  };

  ConvolutionPrimitive(const ep_primitive_desc& desc, const Sizes& sizes, int64_t at_once, Parts parts)
      : desc_(desc),
        sizes_(sizes),
        at_once_(at_once),
        src_(find_operand(desc, EP_ROLE_SRC)),
        weight_(find_operand(desc, EP_ROLE_WEIGHT)),
        size_(dtype_size(desc.operands[0].dtype)),
        parts_(std::move(parts)) {
    wide_bytes_ = parts_.tail.workspace();
    if (!sizes_.is_pointwise()) {
      if (sizes_.has_padding()) padded_bytes_ = part_bytes(at_once_ * sizes_.channels * count_of(sizes_.padded), size_);
      column_bytes_ = part_bytes(at_once_ * sizes_.column() * sizes_.positions(), size_);
    }
  }

  uint64_t workspace(const ep_shape*) const override {
    uint64_t product = parts_.whole->workspace(nullptr);
    if (parts_.rest != nullptr) product = std::max(product, parts_.rest->workspace(nullptr));
    return wide_bytes_ + padded_bytes_ + column_bytes_ + product;
  }
  bool has_workspace() const override { return workspace(nullptr) != 0; }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    const ep_buffer wide = launch.workspace;
    const ep_buffer result = wide_bytes_ != 0 ? wide : launch.operands[0];
    for (int64_t first = 0; first < sizes_.images; first += at_once_) {
      const ep_status status = multiply(stream, launch, result, first, error);
      if (status != EP_STATUS_OK) return status;
    }
    return parts_.tail.run(stream, launch, result, error);
  }

 private:
  uint64_t bytes_to(const ep_operand_desc& operand, int64_t image) const {
    return static_cast<uint64_t>(image * operand.strides[0] * dtype_size(operand.dtype));
  }

  ep_status multiply(ep_stream* stream, const ep_launch& launch, ep_buffer result, int64_t first,
                     ep_error** error) const {
    const int64_t images = std::min(at_once_, sizes_.images - first);
    ep_buffer columns = behind(launch.operands[src_], bytes_to(desc_.operands[src_], first));
    if (!sizes_.is_pointwise()) {
      const ep_status status = make_columns(stream, launch, columns, images, error);
      if (status != EP_STATUS_OK) return status;
      columns = behind(launch.workspace, wide_bytes_ + padded_bytes_);
    }
    const ep_operand_desc& dst = parts_.tail.product();
    const bool turned = is_turned(dst);
    const ep_buffer& filters = launch.operands[weight_];
    const ep_buffer operands[] = {behind(result, bytes_to(dst, first)), turned ? columns : filters,
                                  turned ? filters : columns};
    ep_launch product = launch;
    product.operands = operands;
    product.operand_count = 3;
    product.scalar_count = 0;
    product.workspace = behind(launch.workspace, wide_bytes_ + padded_bytes_ + column_bytes_);
    ep_primitive& chosen = images == at_once_ ? *parts_.whole : *parts_.rest;
    return chosen.launch(stream, product, error);
  }

  ep_status make_columns(ep_stream* stream, const ep_launch& launch, ep_buffer src, int64_t images,
                         ep_error** error) const {
    const int64_t* strides = desc_.operands[src_].strides;
    const int32_t spatial = desc_.attributes.convolution.spatial_rank;
    std::array<int64_t, 5> image = {strides[0], strides[1], 0, 0, 0};
    std::copy_n(strides + 2, spatial, image.begin() + 5 - spatial);
    CUdeviceptr from = address_of(src);
    if (sizes_.has_padding()) {
      const ep_status status =
          pad(stream, address_of(behind(launch.workspace, wide_bytes_)), from, images, &image, error);
      if (status != EP_STATUS_OK) return status;
      from = address_of(behind(launch.workspace, wide_bytes_));
    }
    const Spatial &window = sizes_.window, &dst = sizes_.dst;
    const int64_t dims[EP_MAX_RANK] = {images,    sizes_.channels, window[0], window[1],
                                       window[2], dst[0],          dst[1],    dst[2]};
    int64_t to[EP_MAX_RANK];
    int64_t stride = 1;
    for (int32_t axis = EP_MAX_RANK - 1; axis >= 0; --axis) {
      to[axis] = stride;
      stride *= dims[axis];
    }
    int64_t windows[EP_MAX_RANK] = {image[0], image[1]};
    for (size_t axis = 0; axis < most_spatial; ++axis) {
      windows[2 + axis] = sizes_.dilation[axis] * image[2 + axis];
      windows[5 + axis] = sizes_.stride[axis] * image[2 + axis];
    }
    const CUdeviceptr columns = address_of(behind(launch.workspace, wide_bytes_ + padded_bytes_));
    return parts_.mover.run(stream, {dims, to, EP_MAX_RANK}, columns, {dims, windows, EP_MAX_RANK}, from, error);
  }

  // Copies images into larger ones of zeros at `to`. `image` receives the strides of the larger images.
  ep_status pad(ep_stream* stream, CUdeviceptr to, CUdeviceptr from, int64_t images, std::array<int64_t, 5>* image,
                ep_error** error) const {
    const CUresult cleared = stream->device->driver->memset_d8_async(to, 0, padded_bytes_, stream->handle);
    if (cleared != CUDA_SUCCESS) return driver_failed(stream->device, cleared, "clearing memory", error);
    const Spatial &padded = sizes_.padded, &src = sizes_.src, &low = sizes_.low;
    const int64_t plane = count_of(padded);
    const std::array<int64_t, 5> strides = {sizes_.channels * plane, plane, padded[1] * padded[2], padded[2], 1};
    const int64_t dims[] = {images, sizes_.channels, src[0], src[1], src[2]};
    const int64_t inside = low[0] * strides[2] + low[1] * strides[3] + low[2];
    const std::array<int64_t, 5> given = std::exchange(*image, strides);
    return parts_.mover.run(stream, {dims, strides.data(), 5}, to + static_cast<uint64_t>(inside * size_),
                            {dims, given.data(), 5}, from, error);
  }

  ep_primitive_desc desc_;
  Sizes sizes_;
  int64_t at_once_;
  int32_t src_;
  int32_t weight_;
  int32_t size_;
  Parts parts_;
  // Parts of the workspace: result in f32, padded images, columns, and the workspace of the product.
  uint64_t wide_bytes_ = 0;
  uint64_t padded_bytes_ = 0;
  uint64_t column_bytes_ = 0;
};

Refusal check_operands(const ep_primitive_desc& desc) {
  if (desc.operand_count < 3 || desc.operands[0].role != EP_ROLE_DST || operand(desc, EP_ROLE_SRC) == nullptr ||
      operand(desc, EP_ROLE_WEIGHT) == nullptr) {
    return Refusal::because("an operand is missing");
  }
  if (is_dynamic(desc)) return Refusal::because("its sizes are not static");
  const int32_t dtype = desc.operands[0].dtype;
  const int32_t spatial = desc.attributes.convolution.spatial_rank;
  if (!is_floating(dtype) || dtype_size(dtype) < 2) return Refusal::because("results in %s", dtype_name(dtype));
  if (spatial < 1 || spatial > most_spatial) return Refusal::because("%d spatial axes", spatial);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& each = desc.operands[i];
    const int32_t rank = each.role == EP_ROLE_BIAS ? 1 : spatial + 2;
    if (is_scalar(each) || each.rank != rank) return Refusal::because("operand %u has rank %d", i, each.rank);
    if (each.dtype != dtype)
      return Refusal::because("operand %u is %s, the result %s", i, dtype_name(each.dtype), dtype_name(dtype));
    for (int32_t axis = 0; axis < each.rank; ++axis) {
      if (each.dims[axis] == 0) return Refusal::because("operand %u has no elements", i);
    }
  }
  return {};
}

Refusal check_attributes(const ep_convolution_attributes& given) {
  if (given.transposed != 0) return Refusal::because("it is transposed");
  if (given.groups < 1) return Refusal::because("%lld groups", static_cast<long long>(given.groups));
  for (int32_t axis = 0; axis < given.spatial_rank; ++axis) {
    if (given.pad_low[axis] < 0 || given.pad_high[axis] < 0)
      return Refusal::because("a negative border of axis %d", axis);
    if (given.stride[axis] < 1 || given.dilation[axis] < 1)
      return Refusal::because("a stride or a dilation below 1 along axis %d", axis);
  }
  return {};
}

// Below this, the number of launches decides, and cuDNN has fewer.
constexpr double least_preferred_work = 1e9;
// From this many rows on, a product in f32 is faster than cuDNN even with the time for copying columns.
constexpr int64_t least_preferred_rows = 256;

// True if the product is faster than cuDNN, measured on an H100 with cuDNN 9 (providers/DECISIONS.md).
bool beats_cudnn(const ep_primitive_desc& desc, const Sizes& sizes) {
  const int64_t rows = sizes.outputs / sizes.groups;
  const double work = 2.0 * static_cast<double>(sizes.images * sizes.positions()) *
                      static_cast<double>(sizes.column()) * static_cast<double>(rows);
  if (work < least_preferred_work) return false;
  const bool planes = operand(desc, EP_ROLE_SRC)->strides[1] != 1;
  if (desc.operands[0].dtype == EP_DTYPE_f32) {
    return sizes.is_pointwise() || (planes && rows >= least_preferred_rows);
  }
  // cuDNN copies narrow planes into another layout unless nothing follows the product.
  const bool has_tail = find_operand(desc, EP_ROLE_BIAS) >= 0 || desc.epilogue_count != 0;
  return sizes.is_pointwise() && planes && has_tail;
}

}  // namespace

Refusal PreferredProduct::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (Refusal refusal = Convolution::why_not(device, desc, info)) return refusal;
  return beats_cudnn(desc, sizes_of(desc)) ? Refusal() : Refusal::because("cuDNN is faster");
}

Refusal PreferredProduct::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                               ep_primitive_info& info) {
  const std::string& missing = device.cublaslt.load();
  if (!missing.empty()) return Refusal::because("%s", missing.c_str());
  return Convolution::make(device, desc, out, info);
}

Refusal Convolution::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (Refusal refusal = check_operands(desc)) return refusal;
  if (Refusal refusal = check_attributes(desc.attributes.convolution)) return refusal;
  if (Refusal refusal = ConvolutionTail::why_not(desc)) return refusal;
  for (uint32_t i = 0; i < desc.operand_count; ++i) info.alignment[i] = wanted_alignment;
  const Sizes sizes = sizes_of(desc);
  ep_primitive_desc product;
  if (Refusal refusal = product_of(desc, sizes, sizes.images, &product)) return refusal;
  return choose_product(device, product, nullptr, nullptr);
}

Refusal Convolution::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                          ep_primitive_info& info) {
  const Sizes sizes = sizes_of(desc);
  const int64_t at_once = images_at_once(sizes, dtype_size(desc.operands[0].dtype), device.facts.memory);
  ConvolutionPrimitive::Parts parts;
  for (const int64_t images : {at_once, sizes.images % at_once}) {
    if (images == 0) continue;
    ep_primitive_desc product;
    if (Refusal refusal = product_of(desc, sizes, images, &product)) return refusal;
    ep_primitive* made = nullptr;
    if (Refusal refusal = choose_product(device, product, &device, &made)) return refusal;
    (images == at_once ? parts.whole : parts.rest).reset(made);
  }
  if (Refusal refusal = Mover::make(device, desc.operands[0].dtype, &parts.mover)) return refusal;
  if (Refusal refusal = ConvolutionTail::make(device, desc, false, &parts.tail)) return refusal;
  info.host_bytes = sizeof(ConvolutionPrimitive) + 16384;
  *out = make_primitive<ConvolutionPrimitive>(device, desc, sizes, at_once, std::move(parts));
  return {};
}

}  // namespace tenon::provider::cuda
