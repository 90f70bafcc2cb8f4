#include "sdk/onnx/file/model_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "primitives/text/format.h"
#include "sdk/onnx/proto/wire.h"

namespace tenon::onnx {
namespace {

constexpr uint64_t kWindow = 4096;  // bytes read at once while fields are walked

// Field numbers on the way from the model to the elements of a weight (onnx.proto).
constexpr uint32_t kPath[] = {7, 5, 9};  // ModelProto.graph, GraphProto.initializer, TensorProto.raw_data
constexpr size_t kElements = std::size(kPath) - 1;

}  // namespace

// Walks the fields of a file down to the elements of weights, and skips these elements. Bytes that are not protobuf are
// read whole, so that the parser can report the error.
class Scanner {
 public:
  explicit Scanner(ModelFile* file) : file_(*file) {}

  Status run() {
    TENON_RETURN_IF_ERROR(walk(0, file_.size_, 0));
    return load(loaded_, file_.size_);
  }

 private:
  // Walks the message at depth `level` of the path: the bytes from `at` to `end`.
  Status walk(uint64_t at, uint64_t end, size_t level) {
    while (at < end) {
      uint64_t tag = 0, length = 0;
      TENON_ASSIGN_OR_RETURN(const bool tagged, varint(&at, end, &tag));
      if (!tagged) return Status();
      switch (static_cast<onnx_proto::WireType>(tag & 7)) {
        case onnx_proto::WireType::varint: {
          TENON_ASSIGN_OR_RETURN(const bool whole, varint(&at, end, &length));
          if (!whole) return Status();
          continue;
        }
        case onnx_proto::WireType::fixed64: length = 8; break;
        case onnx_proto::WireType::fixed32: length = 4; break;
        case onnx_proto::WireType::bytes: {
          TENON_ASSIGN_OR_RETURN(const bool whole, varint(&at, end, &length));
          if (!whole || length > end - at) return Status();
          if (tag >> 3 == kPath[level]) TENON_RETURN_IF_ERROR(found(at, at + length, level));
          break;
        }
        default: return Status();
      }
      if (length > end - at) return Status();
      at += length;
    }
    return Status();
  }

  Status found(uint64_t begin, uint64_t end, size_t level) {
    if (level < kElements) return walk(begin, end, level + 1);
    if (end - begin < kLargeWeight) return Status();
    TENON_RETURN_IF_ERROR(load(loaded_, begin));
    file_.holes_.push_back({begin, end});
    loaded_ = end;
    return Status();
  }

  // False if there is no number or it is too long.
  Result<bool> varint(uint64_t* at, uint64_t end, uint64_t* value) {
    *value = 0;
    for (uint32_t shift = 0; *at < end && shift < 64; shift += 7) {
      TENON_ASSIGN_OR_RETURN(const uint8_t byte, look((*at)++));
      *value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  Result<uint8_t> look(uint64_t at) {
    if (at - window_begin_ >= window_.size()) {
      window_begin_ = at;
      window_.resize(std::min(kWindow, file_.size_ - at));
      TENON_RETURN_IF_ERROR(file_.file_->read(at, window_.size(), window_.data()));
    }
    return static_cast<uint8_t>(window_[at - window_begin_]);
  }

  Status load(uint64_t begin, uint64_t end) { return file_.file_->read(begin, end - begin, file_.begin_ + begin); }

  ModelFile& file_;
  uint64_t loaded_ = 0;  // all bytes before this offset are loaded or a hole
  uint64_t window_begin_ = 0;
  std::string window_;
};

Result<ModelFile> ModelFile::open(const std::string& path, uint64_t limit) {
  ModelFile made;
  TENON_ASSIGN_OR_RETURN(made.file_, OpenFile::open(path, limit));
  made.size_ = made.file_->size();
  if (made.size_ == 0) return made;
  // Pages that nobody writes take no memory.
  void* room = mmap(nullptr, made.size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) {
    return Status(Code::out_of_host_memory, fmt::format("There is not enough memory for the {} bytes of '{}': {}.",
                                                        made.size_, path, std::strerror(errno)));
  }
  made.begin_ = static_cast<char*>(room);
  TENON_RETURN_IF_ERROR(Scanner(&made).run());
  return made;
}

ModelFile::ModelFile(ModelFile&& other) noexcept
    : file_(std::move(other.file_)),
      begin_(std::exchange(other.begin_, nullptr)),
      size_(other.size_),
      holes_(std::move(other.holes_)) {}

ModelFile::~ModelFile() {
  if (begin_ != nullptr) munmap(begin_, size_);
}

// True if bytes of `part` were left out, so that bytes() has zeros for them.
bool ModelFile::left_out(std::string_view part) const {
  const auto begin = static_cast<uint64_t>(part.data() - begin_);
  const auto hole =
      std::lower_bound(holes_.begin(), holes_.end(), begin, [](const Hole& one, uint64_t at) { return one.end <= at; });
  return hole != holes_.end() && hole->begin < begin + part.size();
}

Status ModelFile::read(std::string_view part, void* out) const {
  if (left_out(part)) return reader(part)(out);
  std::memcpy(out, part.data(), part.size());
  return Status();
}

std::function<Status(void* out)> ModelFile::reader(std::string_view part) const {
  if (!left_out(part)) return {};
  const auto begin = static_cast<uint64_t>(part.data() - begin_);
  return [file = file_, begin, size = part.size()](void* out) { return file->read(begin, size, out); };
}

}  // namespace tenon::onnx
