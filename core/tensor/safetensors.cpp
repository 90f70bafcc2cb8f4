#include "core/tensor/safetensors.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/tensor/file_header.h"
#include "primitives/text/format.h"

namespace tenon {
namespace files {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char sign : text) {
    if (sign == '"' || sign == '\\') result += '\\';
    if (static_cast<unsigned char>(sign) < 32) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(sign));
    } else {
      result += sign;
    }
  }
  return result + '"';
}

struct SafeEntry {
  std::string name;
  DType dtype = DType::none;
  std::vector<int64_t> dims;
  uint64_t begin = 0, end = 0;
};

SafeEntry read_entry(std::string name, HeaderReader* reader) {
  SafeEntry entry;
  entry.name = std::move(name);
  int keys = 0;
  reader->expect('{');
  do {
    const std::string key = reader->text("\"");
    reader->expect(':');
    if (key == "dtype") {
      const std::string text = reader->text("\"");
      for (const Row& row : rows()) {
        if (row.safe == text) entry.dtype = row.dtype;
      }
      if (entry.dtype == DType::none)
        refuse(fmt::format("safetensors: '{}' has elements of the unknown type {}.", entry.name, text));
      keys |= 1;
    } else if (key == "shape") {
      entry.dims = reader->numbers('[', ']');
      keys |= 2;
    } else if (key == "data_offsets") {
      const std::vector<int64_t> offsets = reader->numbers('[', ']');
      if (offsets.size() != 2)
        refuse(fmt::format("safetensors: '{}' has {} offsets; two are needed.", entry.name, offsets.size()));
      entry.begin = static_cast<uint64_t>(offsets[0]);
      entry.end = static_cast<uint64_t>(offsets[1]);
      keys |= 4;
    } else {
      refuse(fmt::format("safetensors: '{}' has the unknown key '{}'.", entry.name, key));
    }
  } while (reader->take(','));
  reader->expect('}');
  if (keys != 7) refuse(fmt::format("safetensors: '{}' lacks dtype, shape or data_offsets.", entry.name));
  return entry;
}

void read_metadata(HeaderReader* reader, Metadata* metadata) {
  reader->expect('{');
  while (!reader->take('}')) {
    const std::string key = reader->text("\"");
    reader->expect(':');
    std::string value = reader->text("\"");
    if (metadata != nullptr) (*metadata)[key] = std::move(value);
    if (!reader->take(',')) {
      reader->expect('}');
      break;
    }
  }
}

std::vector<SafeEntry> read_safe_header(std::string_view text, Metadata* metadata) {
  HeaderReader reader("safetensors", text);
  std::vector<SafeEntry> entries;
  reader.expect('{');
  while (!reader.take('}')) {
    std::string name = reader.text("\"");
    reader.expect(':');
    if (name == "__metadata__")
      read_metadata(&reader, metadata);
    else
      entries.push_back(read_entry(std::move(name), &reader));
    if (!reader.take(',')) {
      reader.expect('}');
      break;
    }
  }
  if (!reader.ended()) refuse("safetensors: there is text after the header.");
  return entries;
}

void check_extent(const SafeEntry& entry, uint64_t most) {
  const std::optional<uint64_t> bytes = byte_count(entry.dims, entry.dtype);
  if (entry.begin <= entry.end && entry.end <= most && bytes && *bytes == entry.end - entry.begin) return;
  refuse(fmt::format("safetensors: '{}' takes bytes {} to {} of {}, which does not fit its shape.", entry.name,
                     entry.begin, entry.end, most));
}

// The length of the header, from the first eight bytes of a file.
uint64_t header_length(const char* bytes, uint64_t file_bytes) {
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) length |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  if (length > file_bytes - 8) {
    refuse(fmt::format("safetensors: a header of {} bytes ends beyond the file.", length));
  }
  return length;
}

[[noreturn]] void refuse_short() { refuse("safetensors: the file is shorter than the length of its header."); }

// The bytes before the elements.
std::string start_of(const NamedTensors& tensors, const Metadata& metadata) {
  std::string header = "{";
  if (!metadata.empty()) {
    std::string texts;
    for (const auto& [key, value] : metadata)
      texts += fmt::format("{}{}:{}", texts.empty() ? "" : ",", quoted(key), quoted(value));
    header += fmt::format("\"__metadata__\":{{{}}}", texts);
  }
  uint64_t begin = 0;
  for (const auto& [name, tensor] : tensors) {
    const Row* row = tensor.defined() ? row_of(tensor.dtype()) : nullptr;
    if (row == nullptr) {
      throw Error(Subject{"safetensors"}, Code::unsupported,
                  fmt::format("'{}' has a dtype that the format lacks.", name));
    }
    const uint64_t end = begin + static_cast<uint64_t>(tensor.bytes());
    std::string dims;
    for (const int64_t dim : tensor.dims()) dims += fmt::format("{}{}", dims.empty() ? "" : ",", dim);
    header += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          header.size() > 1 ? "," : "", quoted(name), row->safe, dims, begin, end);
    begin = end;
  }
  header += "}";
  while ((header.size() + 8) % 64 != 0) header += ' ';
  std::string start;
  for (int i = 0; i < 8; ++i) start += static_cast<char>(header.size() >> (8 * i) & 255);
  return start + header;
}

std::string bytes_of(const Tensor& tensor) {
  std::string bytes(static_cast<size_t>(tensor.bytes()), '\0');
  tensor.copy_to_host(bytes.data());
  return bytes;
}

}  // namespace

StoredTensors read_safetensors_header(std::string_view header, uint64_t data_bytes, Metadata* metadata) {
  std::vector<SafeEntry> entries = read_safe_header(header, metadata);
  std::sort(entries.begin(), entries.end(), [](const SafeEntry& a, const SafeEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t at = 0;
  StoredTensors tensors;
  for (const SafeEntry& entry : entries) {
    check_extent(entry, data_bytes);
    if (entry.begin != at) {
      refuse(fmt::format("safetensors: '{}' begins at byte {}, but the tensors before it end at {}.", entry.name,
                         entry.begin, at));
    }
    at = entry.end;
    const StoredTensor stored{entry.dtype, checked_dims("safetensors", entry.dims), 8 + header.size() + entry.begin};
    if (!tensors.emplace(entry.name, stored).second) {
      refuse(fmt::format("safetensors: there are two tensors '{}'.", entry.name));
    }
  }
  if (at != data_bytes) refuse(fmt::format("safetensors: the tensors end at byte {} of {}.", at, data_bytes));
  return tensors;
}

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  const FileReader file(path);
  try {
    if (file.size() < 8) refuse_short();
    char first[8];
    file.read(0, first, sizeof first);
    std::string header(header_length(first, file.size()), '\0');
    file.read(8, header.data(), header.size());
    tensors_ = read_safetensors_header(header, file.size() - 8 - header.size(), &texts_);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("The file {}: {}", path, error.what()));
  }
}

}  // namespace files

std::string safetensors_to_bytes(const NamedTensors& tensors, const Metadata& metadata) {
  std::string bytes = files::start_of(tensors, metadata);
  for (const auto& [name, tensor] : tensors) bytes += files::bytes_of(tensor);
  return bytes;
}

NamedTensors safetensors_from_bytes(std::string_view bytes, Device device, Metadata* metadata) {
  if (bytes.size() < 8) files::refuse_short();
  const uint64_t length = files::header_length(bytes.data(), bytes.size());
  const std::string_view header = bytes.substr(8, static_cast<size_t>(length));
  NamedTensors tensors;
  for (const auto& [name, stored] : files::read_safetensors_header(header, bytes.size() - 8 - length, metadata)) {
    tensors.emplace(name, Tensor::copy_from_host(bytes.data() + stored.begin, stored.dims, stored.dtype, device));
  }
  return tensors;
}

void save_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata) {
  const std::string start = files::start_of(tensors, metadata);
  files::FileWriter file(path);
  file.write(start);
  for (const auto& [name, tensor] : tensors) file.write(files::bytes_of(tensor));
  file.finish();
}

}  // namespace tenon
