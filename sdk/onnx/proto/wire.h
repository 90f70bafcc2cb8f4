// The protobuf wire format, as far as onnx.proto needs it. The reader works on one buffer and limits nesting and the
// memory of decoded messages. Strings and bytes are views into the buffer.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "primitives/text/format.h"

namespace tenon::onnx_proto {

enum class WireType : uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct Tag {
  uint32_t field = 0;
  WireType type = WireType::varint;
};

struct Limits {
  uint32_t depth = 64;
  // The limit for memory of decoded messages and numbers, without views. 0: 64 MiB plus 32 times the buffer. A node
  // takes about 250 bytes, twice that while the list of nodes grows, and its text takes 15 or more.
  uint64_t bytes = 0;
};

// Reads the fields of one message in turn. enter() narrows `end` to a sub-message. The first error is kept.
class Reader {
 public:
  Reader(std::string_view buffer, Limits limits)
      : begin_(buffer.data()),
        at_(buffer.data()),
        end_(buffer.data() + buffer.size()),
        depth_(limits.depth),
        depth_limit_(limits.depth),
        budget_(limits.bytes != 0 ? limits.bytes : (uint64_t{64} << 20) + 32 * buffer.size()) {}

  bool ok() const { return error_.empty(); }
  // A sentence with the position in the buffer.
  const std::string& error() const { return error_; }
  bool fail(std::string_view what);

  // Reads the tag of the next field. False at the end of the message or after an error.
  bool next(Tag* tag);
  bool skip(Tag tag);
  bool varint(uint64_t* value);
  bool bytes(std::string_view* value);
  bool fixed(void* value, size_t size);
  bool at_end() const { return at_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }

  // Narrows the reader to the next length-delimited field. leave() restores what enter() returned.
  bool enter(const char** outer_end);
  void leave(const char* outer_end) {
    at_ = end_;
    end_ = outer_end;
    ++depth_;
  }
  // Counts memory that is about to be allocated. False if the limit is exceeded.
  bool spend(uint64_t bytes);

 private:
  const char* begin_;
  const char* at_;
  const char* end_;
  uint32_t depth_;
  uint32_t depth_limit_;
  uint64_t budget_;
  std::string error_;
};

class Writer {
 public:
  std::string& text() { return text_; }
  void varint(uint64_t value);
  void tag(uint32_t field, WireType type) { varint(uint64_t{field} << 3 | static_cast<uint32_t>(type)); }
  void bytes(std::string_view value) {
    varint(value.size());
    text_.append(value);
  }
  void raw(const void* data, size_t size) { text_.append(static_cast<const char*>(data), size); }

 private:
  std::string text_;
};

template <class T>
constexpr WireType fixed_type() {
  return sizeof(T) == 8 ? WireType::fixed64 : WireType::fixed32;
}

inline bool expect(Reader& in, Tag tag, WireType type) {
  if (tag.type == type) return true;
  return in.fail(fmt::format("field {} has wire type {} where {} is expected", tag.field,
                             static_cast<uint32_t>(tag.type), static_cast<uint32_t>(type)));
}

template <class T>
bool read_varint(Reader& in, Tag tag, T* out) {
  uint64_t value = 0;
  if (!expect(in, tag, WireType::varint) || !in.varint(&value)) return false;
  *out = static_cast<T>(value);
  return true;
}

template <class T>
bool read_fixed(Reader& in, Tag tag, T* out) {
  return expect(in, tag, fixed_type<T>()) && in.fixed(out, sizeof(T));
}

inline bool read_bytes(Reader& in, Tag tag, std::string_view* out) {
  return expect(in, tag, WireType::bytes) && in.bytes(out);
}

template <class T>
bool read_body(Reader& in, T* out) {
  const char* outer = nullptr;
  if (!in.enter(&outer) || !read(in, out)) return false;
  in.leave(outer);
  return true;
}

template <class T>
bool read_message(Reader& in, Tag tag, std::unique_ptr<T>* out) {
  if (!expect(in, tag, WireType::bytes)) return false;
  if (!*out) {
    if (!in.spend(sizeof(T))) return false;
    *out = std::make_unique<T>();
  }
  return read_body(in, out->get());
}

template <class T>
bool read_repeated_message(Reader& in, Tag tag, std::vector<T>* out) {
  if (!expect(in, tag, WireType::bytes) || !in.spend(2 * sizeof(T))) return false;
  return read_body(in, &out->emplace_back());
}

inline bool read_repeated_bytes(Reader& in, Tag tag, std::vector<std::string_view>* out) {
  return expect(in, tag, WireType::bytes) && in.spend(2 * sizeof(std::string_view)) && in.bytes(&out->emplace_back());
}

// Accepts packed and single numbers, as protobuf requires of readers.
template <class T>
bool read_repeated_varint(Reader& in, Tag tag, std::vector<T>* out) {
  const char* outer = nullptr;
  uint64_t value = 0;
  if (tag.type == WireType::varint) {
    if (!in.spend(2 * sizeof(T)) || !in.varint(&value)) return false;
    out->push_back(static_cast<T>(value));
    return true;
  }
  if (!expect(in, tag, WireType::bytes) || !in.enter(&outer)) return false;
  while (!in.at_end()) {
    if (!in.spend(2 * sizeof(T)) || !in.varint(&value)) return false;
    out->push_back(static_cast<T>(value));
  }
  in.leave(outer);
  return true;
}

template <class T>
bool read_repeated_fixed(Reader& in, Tag tag, std::vector<T>* out) {
  if (tag.type == fixed_type<T>()) return in.spend(2 * sizeof(T)) && in.fixed(&out->emplace_back(), sizeof(T));
  const char* outer = nullptr;
  if (!expect(in, tag, WireType::bytes) || !in.enter(&outer)) return false;
  if (in.left() % sizeof(T) != 0) return in.fail("a packed field is not a whole number of elements long");
  const size_t more = in.left() / sizeof(T), before = out->size();
  if (!in.spend(more * sizeof(T))) return false;
  out->resize(before + more);
  if (more != 0 && !in.fixed(out->data() + before, more * sizeof(T))) return false;
  in.leave(outer);
  return true;
}

template <class T>
void write_varint(Writer& out, uint32_t field, T value) {
  out.tag(field, WireType::varint);
  out.varint(static_cast<uint64_t>(static_cast<int64_t>(value)));
}

template <class T>
void write_fixed(Writer& out, uint32_t field, T value) {
  out.tag(field, fixed_type<T>());
  out.raw(&value, sizeof(T));
}

inline void write_bytes(Writer& out, uint32_t field, std::string_view value) {
  out.tag(field, WireType::bytes);
  out.bytes(value);
}

template <class T>
void write_body(Writer& out, uint32_t field, const T& message) {
  Writer body;
  write(body, message);
  write_bytes(out, field, body.text());
}

template <class T>
void write_message(Writer& out, uint32_t field, const std::unique_ptr<T>& message) {
  write_body(out, field, *message);
}

template <class T>
void write_repeated_message(Writer& out, uint32_t field, const std::vector<T>& messages) {
  for (const T& message : messages) write_body(out, field, message);
}

inline void write_repeated_bytes(Writer& out, uint32_t field, const std::vector<std::string_view>& values) {
  for (std::string_view value : values) write_bytes(out, field, value);
}

template <class T>
void write_repeated_varint(Writer& out, uint32_t field, const std::vector<T>& values) {
  for (T value : values) write_varint(out, field, value);
}

template <class T>
void write_repeated_fixed(Writer& out, uint32_t field, const std::vector<T>& values) {
  if (values.empty()) return;
  out.tag(field, WireType::bytes);
  out.varint(values.size() * sizeof(T));
  out.raw(values.data(), values.size() * sizeof(T));
}

// Reads `buffer` as one message; views in the message point into `buffer`. Returns an empty string or an error.
template <class T>
std::string decode(std::string_view buffer, T* out, Limits limits = {}) {
  Reader in(buffer, limits);
  return read(in, out) ? std::string() : in.error();
}

template <class T>
std::string encode(const T& message) {
  Writer out;
  write(out, message);
  return std::move(out.text());
}

}  // namespace tenon::onnx_proto
