#include "core/global/checkpoint_index.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "core/tensor/file_header.h"
#include "core/tensor/safetensors.h"
#include "primitives/text/format.h"

namespace tenon::global {
namespace {

namespace fs = std::filesystem;
using files::refuse;

constexpr std::string_view kVersionKey = "tenon checkpoint", kVersion = "1";
constexpr std::string_view kFile = "file ", kTensor = "tensor ", kText = "text ";

std::string text_of(const IndexEntry& entry) {
  std::string text = fmt::format("{} {}:", dtype_name(entry.dtype), entry.dims);
  for (const StoredPart& part : entry.parts) {
    text += fmt::format("{} {} {}", &part == entry.parts.data() ? "" : ",", part.file, part.box);
  }
  return text;
}

Box box_from(files::HeaderReader* reader) {
  std::vector<int64_t> begin, dims;
  reader->expect('[');
  while (!reader->take(']')) {
    begin.push_back(reader->number());
    reader->expect(':');
    dims.push_back(reader->number() - begin.back());
    if (!reader->take(',')) {
      reader->expect(']');
      break;
    }
  }
  return {files::checked_dims("a part", begin), files::checked_dims("a part", dims)};
}

IndexEntry entry_from(std::string_view what, std::string_view text) {
  const size_t space = std::min(text.find(' '), text.size());
  const std::optional<DType> dtype = dtype_from_name(text.substr(0, space));
  if (!dtype) refuse(fmt::format("{}: '{}' is not a dtype.", what, text.substr(0, space)));
  files::HeaderReader reader(what, text.substr(space));
  IndexEntry entry{*dtype, files::checked_dims(what, reader.numbers('[', ']')), {}};
  if (!files::byte_count({entry.dims.begin(), entry.dims.end()}, *dtype)) {
    refuse(fmt::format("{}: a tensor of shape {} is too large.", what, entry.dims));
  }
  reader.expect(':');
  while (!reader.ended()) {
    const int64_t file = reader.number();
    entry.parts.push_back({file, box_from(&reader)});
    if (!reader.take(',')) break;
  }
  if (!reader.ended()) refuse(fmt::format("{}: there is text after the parts.", what));
  return entry;
}

// The path of a file of the index, which must lie in the same folder.
std::string checked_file(std::string_view index, const fs::path& folder, const std::string& name) {
  if (name.empty() || name == ".." || fs::path(name).filename() != name) {
    refuse(fmt::format("The index {} names the file '{}', which is not in its folder.", index, name));
  }
  return folder / name;
}

CheckpointIndex index_of_file(const files::SafetensorsFile& file) {
  CheckpointIndex index{file.path(), {{0, file.path()}}, {}, file.texts()};
  for (const auto& [name, stored] : file.tensors()) {
    IndexEntry entry{stored.dtype, stored.dims, {}};
    if (element_count(stored.dims) > 0) entry.parts.push_back({0, {Dims::filled(stored.dims.rank(), 0), stored.dims}});
    index.tensors.emplace(name, std::move(entry));
  }
  return index;
}

// The axis along which the parts begin at the most positions.
int32_t busiest_axis(const IndexEntry& entry) {
  int32_t best = 0;
  size_t most = 0;
  for (int32_t axis = 0; axis < entry.dims.rank(); ++axis) {
    std::set<int64_t> begins;
    for (const StoredPart& part : entry.parts) begins.insert(part.box.begin[axis]);
    if (begins.size() > most) best = axis, most = begins.size();
  }
  return best;
}

}  // namespace

std::string to_string(const Box& box) {
  std::string text = "[";
  for (int32_t axis = 0; axis < box.dims.rank(); ++axis) {
    text += fmt::format("{}{}:{}", axis > 0 ? ", " : "", box.begin[axis], box.begin[axis] + box.dims[axis]);
  }
  return text + "]";
}

CheckpointIndex CheckpointIndex::read(const std::string& path) {
  std::error_code error;
  const fs::path folder = path;
  if (!fs::is_directory(folder, error)) return index_of_file(files::SafetensorsFile(path));
  const files::SafetensorsFile file(folder / kIndexName);
  CheckpointIndex index;
  index.path = file.path();
  const auto version = file.texts().find(kVersionKey);
  if (version == file.texts().end() || version->second != kVersion) {
    refuse(fmt::format("The file {} is the index of {}; this version of Tenon reads checkpoints of version {}.",
                       index.path, version == file.texts().end() ? "no checkpoint" : "version " + version->second,
                       kVersion));
  }
  for (const auto& [key, text] : file.texts()) {
    const std::string what = fmt::format("The index {}, '{}'", index.path, key);
    if (key.starts_with(kFile)) {
      files::HeaderReader number(what, std::string_view(key).substr(kFile.size()));
      index.files.emplace(number.number(), checked_file(index.path, folder, text));
    } else if (key.starts_with(kTensor)) {
      index.tensors.emplace(key.substr(kTensor.size()), entry_from(what, text));
    } else if (key.starts_with(kText)) {
      index.texts.emplace(key.substr(kText.size()), text);
    }
  }
  return index;
}

Metadata CheckpointIndex::as_texts() const {
  Metadata all{{std::string(kVersionKey), std::string(kVersion)}};
  for (const auto& [number, file] : files) all[fmt::format("{}{}", kFile, number)] = fs::path(file).filename();
  for (const auto& [name, entry] : tensors) all[std::string(kTensor) + name] = text_of(entry);
  for (const auto& [name, text] : texts) all[std::string(kText) + name] = text;
  return all;
}

const std::string& CheckpointIndex::file(std::string_view name, int64_t number) const {
  const auto found = files.find(number);
  if (found == files.end())
    refuse(fmt::format("The index {}: tensor '{}' has a part in file {}, which the index does not list.", path, name,
                       number));
  return found->second;
}

void CheckpointIndex::check_parts(std::string_view name) const {
  const IndexEntry& entry = tensors.find(name)->second;
  const auto where = [&](const StoredPart& part) { return fmt::format("{} in {}", part.box, file(name, part.file)); };
  int64_t covered = 0;
  for (const StoredPart& part : entry.parts) {
    bool fits = part.box.dims.rank() == entry.dims.rank();
    for (int32_t axis = 0; fits && axis < entry.dims.rank(); ++axis) {
      fits = part.box.dims[axis] > 0 && part.box.begin[axis] <= entry.dims[axis] - part.box.dims[axis];
    }
    if (!fits) {
      refuse(fmt::format("The index {}: tensor '{}' of shape {} has no part {}.", path, name, entry.dims, where(part)));
    }
    if (covered <= element_count(entry.dims))
      covered += element_count(part.box.dims);  // if it exceeds the elements, parts overlap
  }
  // Parts are sorted by where they begin along an axis; each is compared with earlier parts that have not ended yet.
  const int32_t axis = entry.dims.rank() == 0 ? -1 : busiest_axis(entry);
  std::vector<const StoredPart*> sorted, open;
  for (const StoredPart& part : entry.parts) sorted.push_back(&part);
  if (axis >= 0) {
    std::stable_sort(sorted.begin(), sorted.end(), [axis](const StoredPart* a, const StoredPart* b) {
      return a->box.begin[axis] < b->box.begin[axis];
    });
  }
  for (const StoredPart* part : sorted) {
    std::erase_if(open, [&](const StoredPart* other) {
      return axis >= 0 && other->box.begin[axis] + other->box.dims[axis] <= part->box.begin[axis];
    });
    for (const StoredPart* other : open) {
      if (!overlap(other->box, part->box)) continue;
      refuse(fmt::format("The index {}: of tensor '{}' the parts {} and {} overlap.", path, name, where(*other),
                         where(*part)));
    }
    open.push_back(part);
  }
  if (covered != element_count(entry.dims)) {
    refuse(fmt::format("The index {}: the parts of tensor '{}' have {} of the {} elements that its shape {} has.", path,
                       name, covered, element_count(entry.dims), entry.dims));
  }
}

}  // namespace tenon::global
