#include "sdk/onnx/proto/wire.h"
#include "primitives/text/format.h"

namespace tenon::onnx_proto {

bool Reader::fail(std::string_view what) {
  if (error_.empty()) {
    error_ = fmt::format("At byte {}: {}.", at_ - begin_, what);
  }
  return false;
}

bool Reader::varint(uint64_t* value) {
  uint64_t result = 0;
  for (uint32_t shift = 0; shift < 70; shift += 7) {
    if (at_ == end_) return fail("a number is cut off");
    const auto byte = static_cast<uint8_t>(*at_++);
    if (shift == 63 && byte > 1) break;
    result |= uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) == 0) {
      *value = result;
      return true;
    }
  }
  return fail("a number is longer than 64 bits");
}

bool Reader::next(Tag* tag) {
  if (!ok() || at_ == end_) return false;
  uint64_t key = 0;
  if (!varint(&key)) return false;
  if (key >> 3 == 0 || key >> 3 > 0x1fffffff) return fail(fmt::format("the field number {} does not exist", key >> 3));
  tag->field = static_cast<uint32_t>(key >> 3);
  tag->type = static_cast<WireType>(key & 7);
  return true;
}

bool Reader::fixed(void* value, size_t size) {
  if (left() < size) return fail(fmt::format("a value of {} bytes is cut off", size));
  std::memcpy(value, at_, size);
  at_ += size;
  return true;
}

bool Reader::bytes(std::string_view* value) {
  uint64_t size = 0;
  if (!varint(&size)) return false;
  if (size > left()) {
    return fail(fmt::format("a field says it is {} bytes long, but only {} bytes are left", size, left()));
  }
  *value = std::string_view(at_, size);
  at_ += size;
  return true;
}

bool Reader::enter(const char** outer_end) {
  std::string_view body;
  if (!bytes(&body)) return false;
  if (depth_ == 0) return fail(fmt::format("messages are nested more than {} deep", depth_limit_));
  --depth_;
  *outer_end = end_;
  at_ = body.data();
  end_ = body.data() + body.size();
  return true;
}

bool Reader::skip(Tag tag) {
  uint64_t number = 0;
  std::string_view body;
  switch (tag.type) {
    case WireType::varint: return varint(&number);
    case WireType::fixed64: return fixed(&number, 8);
    case WireType::bytes: return bytes(&body);
    case WireType::fixed32: return fixed(&number, 4);
  }
  return fail(fmt::format("field {} has the unknown wire type {}", tag.field, static_cast<uint32_t>(tag.type)));
}

bool Reader::spend(uint64_t bytes) {
  if (bytes > budget_) return fail("the messages decoded so far take more memory than a file of this size may need");
  budget_ -= bytes;
  return true;
}

void Writer::varint(uint64_t value) {
  while (value >= 0x80) {
    text_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  text_.push_back(static_cast<char>(value));
}

}  // namespace tenon::onnx_proto
