#include "sdk/onnx/importer/budget.h"

#include "primitives/text/format.h"
#include "sdk/onnx/importer/parsed_model.h"

namespace tenon::onnx {

uint64_t unfolded(const onnx_proto::SparseTensorProto& tensor) {
  constexpr int64_t kWidest = 8;
  if (tensor.dims.size() > EP_MAX_RANK) return 0;
  return static_cast<uint64_t>(checked_count(Dims(tensor.dims), kWidest).value_or(0)) * kWidest;
}

uint64_t size_of(const onnx_proto::AttributeProto& attribute) {
  uint64_t size = attribute.s.size() + 8 * (attribute.ints.size() + attribute.floats.size());
  for (std::string_view text : attribute.strings) size += sizeof(std::string) + text.size();
  if (!attribute.t) return size;
  const onnx_proto::TensorProto& t = *attribute.t;
  for (std::string_view text : t.string_data) size += sizeof(std::string) + text.size();
  return size + t.raw_data.size() +
         8 * (t.float_data.size() + t.int32_data.size() + t.int64_data.size() + t.double_data.size() +
              t.uint64_data.size());
}

void Budget::spend(uint64_t bytes) {
  if (bytes > left_) {
    malformed(
        fmt::format("its sparse tensors in dense form, and the copies made for its functions, take more than "
                    "{} bytes",
                    uint64_t{1} << 30));
  }
  left_ -= bytes;
}

}  // namespace tenon::onnx
