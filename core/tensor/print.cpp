#include "core/tensor/print.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <vector>

#include "core/tensor/factory.h"
#include "core/tensor/recording.h"
#include "primitives/dtype/convert.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

constexpr int64_t kWhole = 1000;  // most elements of a tensor that is shown in full
constexpr int64_t kEdge = 3;
constexpr size_t kLineWidth = 75;
constexpr int kDigits = 8;  // most digits after the point

// --- what is shown, in row-major order ---

bool is_cut(const Dims& dims, int32_t axis) { return element_count(dims) > kWhole && dims[axis] > 2 * kEdge; }

// The elements of a packed dtype as bytes on the host; other tensors unchanged.
Tensor unpacked(const Tensor& tensor) {
  if (dtype_size(tensor.dtype()) != 0) return tensor;
  std::vector<uint8_t> packed(static_cast<size_t>(tensor.bytes()));
  tensor.copy_to_host(packed.data());
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < static_cast<size_t>(tensor.elements()); ++i) {
    const int nibble = packed[i / 2] >> (i % 2 * 4) & 15;
    bytes.push_back(static_cast<uint8_t>(tensor.dtype() == DType::i4 && nibble > 7 ? nibble - 16 : nibble));
  }
  const DType dtype = tensor.dtype() == DType::i4 ? DType::i8 : DType::u8;
  return Tensor::copy_from_host(bytes.data(), tensor.dims(), dtype, Device::host());
}

Tensor part(const Tensor& tensor, int32_t axis, int64_t start, int64_t length) {
  Dims dims = tensor.dims();
  dims[axis] = length;
  return make_view(tensor, tensor.dtype(), dims, tensor.strides(),
                   tensor.impl()->offset + start * tensor.strides()[axis]);
}

void read(const Tensor& tensor, std::vector<uint64_t>* bits) {
  const auto size = static_cast<size_t>(dtype_size(tensor.dtype()));
  std::vector<char> bytes(static_cast<size_t>(tensor.bytes()));
  tensor.copy_to_host(bytes.data());
  for (size_t at = 0; at < bytes.size(); at += size) {
    std::memcpy(&bits->emplace_back(0), bytes.data() + at, size);
  }
}

// Reads the elements of `tensor` that are shown. The axes before `axis` have been cut to one index; `whole` are the
// dims of the tensor that is printed.
void read_shown(const Tensor& tensor, const Dims& whole, int32_t axis, std::vector<uint64_t>* bits) {
  bool cut = false;
  for (int32_t later = axis; later < whole.rank(); ++later) cut = cut || is_cut(whole, later);
  if (!cut) return read(tensor, bits);
  const int64_t dim = whole[axis];
  if (axis == whole.rank() - 1) {
    read(part(tensor, axis, 0, kEdge), bits);
    return read(part(tensor, axis, dim - kEdge, kEdge), bits);
  }
  for (int64_t i = 0; i < dim; ++i) {
    if (is_cut(whole, axis) && i == kEdge) i = dim - kEdge;
    read_shown(part(tensor, axis, i, 1), whole, axis + 1, bits);
  }
}

// --- one element ---

std::string number(double value, std::chars_format format, int digits) {
  char text[400];
  const auto end = std::to_chars(text, text + sizeof text, value, format, digits);
  std::string made(text, end.ptr);
  if (digits == 0) made.insert(std::min(made.find('e'), made.size()), 1, '.');
  return made;
}

// The fewest digits after the point that tell `bits` from every other number of `dtype`.
int digits_needed(DType dtype, uint64_t bits, std::chars_format format) {
  const double value = decode_float(dtype, bits);
  for (int digits = 0; digits < kDigits; ++digits) {
    const std::string text = number(value, format, digits);
    double read_back = 0;
    std::from_chars(text.data(), text.data() + text.size(), read_back, format);
    if (encode_float(dtype, read_back) == bits) return digits;
  }
  return kDigits;
}

// True if the column would be too wide without exponents, as in NumPy.
bool wants_exponent(const std::vector<double>& values) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (double value : values) {
    const double magnitude = std::abs(value);
    if (!std::isfinite(magnitude) || magnitude == 0) continue;
    least = std::min(least, magnitude);
    most = std::max(most, magnitude);
  }
  return most >= 1e8 || least < 1e-4 || most > least * 1000;
}

std::string special(double value) { return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf"; }

void pad_left(std::vector<std::string>* texts) {
  size_t width = 0;
  for (const std::string& text : *texts) width = std::max(width, text.size());
  for (std::string& text : *texts) text.insert(0, width - text.size(), ' ');
}

// Appends blanks so that all numbers have their point at the same distance from the end.
void align_points(std::vector<std::string>* texts) {
  size_t width = 0;
  const auto behind = [](const std::string& text) { return text.size() - std::min(text.find('.'), text.size()); };
  for (const std::string& text : *texts) width = std::max(width, behind(text));
  for (std::string& text : *texts) {
    if (behind(text) != 0) text.append(width - behind(text), ' ');
  }
}

std::vector<std::string> float_texts(DType dtype, const std::vector<uint64_t>& bits) {
  std::vector<double> values;
  for (uint64_t one : bits) values.push_back(decode_float(dtype, one));
  const bool exponent = wants_exponent(values);
  const std::chars_format format = exponent ? std::chars_format::scientific : std::chars_format::fixed;
  std::vector<int> digits;
  int most = 0;
  for (size_t i = 0; i < bits.size(); ++i) {
    digits.push_back(std::isfinite(values[i]) ? digits_needed(dtype, bits[i], format) : 0);
    most = std::max(most, digits[i]);
  }
  std::vector<std::string> texts;
  for (size_t i = 0; i < bits.size(); ++i) {
    if (!std::isfinite(values[i])) {
      texts.push_back(special(values[i]));
      continue;
    }
    std::string text = number(values[i], format, exponent ? most : digits[i]);
    if (!exponent && digits[i] == kDigits) text.erase(text.find_last_not_of('0') + 1);
    texts.push_back(std::move(text));
  }
  if (!exponent) align_points(&texts);
  pad_left(&texts);
  return texts;
}

std::string integer_text(DType dtype, uint64_t bits) {
  if (dtype == DType::boolean) return bits != 0 ? "true" : "false";
  if (dtype_info(dtype).type_class == DTypeClass::UINT) return fmt::format("{}", bits);
  const int unused = 64 - dtype_info(dtype).bits;
  return fmt::format("{}", static_cast<int64_t>(bits << unused) >> unused);
}

std::vector<std::string> element_texts(DType dtype, const std::vector<uint64_t>& bits) {
  if (is_floating(dtype)) return float_texts(dtype, bits);
  std::vector<std::string> texts;
  for (uint64_t one : bits) texts.push_back(integer_text(dtype, one));
  pad_left(&texts);
  return texts;
}

// --- the brackets ---

class Layout {
 public:
  Layout(const Dims& dims, std::vector<std::string> texts) : dims_(dims), texts_(std::move(texts)) {}

  std::string text() {
    if (dims_.empty()) return texts_[0];
    if (texts_.empty()) return "[]";
    block(0);
    return std::move(text_);
  }

 private:
  void block(int32_t axis) {
    text_ += '[';
    const bool innermost = axis == dims_.rank() - 1;
    for (int64_t i = 0; i < dims_[axis]; ++i) {
      if (i > 0 && !innermost) new_line(axis + 1, dims_.rank() - 1 - axis);
      if (is_cut(dims_, axis) && i == kEdge) {
        if (innermost) {
          word("...", axis, i);
        } else {
          text_ += "...";
          new_line(axis + 1, dims_.rank() - 1 - axis);
        }
        i = dims_[axis] - kEdge;
      }
      if (innermost) {
        word(texts_[next_++], axis, i);
      } else {
        block(axis + 1);
      }
    }
    text_ += ']';
  }

  // Writes `text`. If the line is full, starts a new one, indented to the line's first element.
  void word(const std::string& text, int32_t axis, int64_t index) {
    const size_t closing = dims_.size();
    if (index > 0 && text_.size() - line_ + 1 + text.size() + closing > kLineWidth) {
      new_line(axis + 1, 1);
    } else if (index > 0) {
      text_ += ' ';
    }
    text_ += text;
  }

  void new_line(int32_t indent, int32_t count) {
    text_.append(static_cast<size_t>(count), '\n');
    line_ = text_.size();
    text_.append(static_cast<size_t>(indent), ' ');
  }

  Dims dims_;
  std::vector<std::string> texts_;
  std::string text_;
  size_t next_ = 0;
  size_t line_ = 0;  // where the last line begins
};

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  const std::string kind =
      fmt::format("{} {} {}", dtype_name(tensor.dtype()), tensor.dims(), tensor.device().spelling());
  if (tensor.impl()->storage == nullptr) {
    const SpreadValue* value = spread_value(tensor);
    return fmt::format("{}, {}", kind, value != nullptr ? value->origin() : "being recorded");
  }
  const Tensor readable = unpacked(tensor);
  std::vector<uint64_t> bits;
  read_shown(readable, readable.dims(), 0, &bits);
  return Layout(readable.dims(), element_texts(readable.dtype(), bits)).text() + '\n' + kind;
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_string(tensor); }
std::ostream& operator<<(std::ostream& out, const Dims& dims) { return out << to_string(dims); }
std::ostream& operator<<(std::ostream& out, DType dtype) { return out << dtype_name(dtype); }
std::ostream& operator<<(std::ostream& out, Device device) { return out << device.spelling(); }
std::ostream& operator<<(std::ostream& out, const Scalar& number) {
  if (number.dtype() == DType::f64) return out << fmt::format("{}", number.to_double());
  if (number.dtype() == DType::boolean) return out << (number.to<bool>() ? "true" : "false");
  return number.dtype() == DType::u64 ? out << number.to<uint64_t>() : out << number.to_int();
}

}  // namespace tenon
