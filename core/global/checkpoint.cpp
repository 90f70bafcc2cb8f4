#include "core/global/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "core/autograd/autograd.h"
#include "core/device/call_site.h"
#include "core/global/checkpoint_index.h"
#include "core/global/communicator.h"
#include "core/global/global.h"
#include "core/global/part_reader.h"
#include "core/global/value.h"
#include "core/ops/op_call.h"
#include "core/ops/ops.h"
#include "core/tensor/file_header.h"
#include "core/tensor/host_watch.h"
#include "core/tensor/safetensors.h"
#include "loader/kept/kept.h"
#include "primitives/text/format.h"

namespace tenon::global {
namespace {

namespace fs = std::filesystem;
using files::refuse;

Communicator& world() { return *value_or_throw(Communicator::world()); }

template <class Call>
Status attempt(const Call& call) {
  try {
    call();
    return {};
  } catch (const Error& error) {
    return error.status();
  } catch (const std::exception& error) {
    return Status(Code::invalid_argument, error.what());
  }
}

// Collective. Returns on all ranks if `own` is ok on all of them; else throws the error of the first failing rank on
// all.
void agree(const Status& own) {
  Communicator& ranks = world();
  if (ranks.size() == 1) return throw_if_error(own);
  std::vector<int32_t> codes(static_cast<size_t>(ranks.size()));
  const auto code = static_cast<int32_t>(own.code());
  const std::vector<int64_t> counts(codes.size(), 1);
  throw_if_error(ranks.all_gather(&code, codes.data(), counts, DType::i32));
  const auto failed = std::find_if(codes.begin(), codes.end(), [](int32_t each) { return each != 0; });
  if (failed == codes.end()) return;
  const auto first = static_cast<int32_t>(failed - codes.begin());
  std::array<char, 2048> text{};
  if (ranks.rank() == first) own.message().copy(text.data(), text.size() - 1);
  throw_if_error(ranks.broadcast(text.data(), text.size(), DType::u8, first));
  throw Error(static_cast<Code>(*failed), fmt::format("rank {}: {}", first, text.data()));
}

// Returns the text of the first rank on all ranks.
std::string of_first_rank(std::string text) {
  auto size = static_cast<int64_t>(text.size());
  throw_if_error(world().broadcast(&size, 1, DType::i64, 0));
  text.resize(static_cast<size_t>(size));
  throw_if_error(world().broadcast(text.data(), size, DType::u8, 0));
  return text;
}

// Names, dtypes, shapes and layouts to be saved, one line per name.
std::string lines_of(const NamedTensors& tensors, const Metadata& texts) {
  std::string lines;
  for (const auto& [name, tensor] : tensors) {
    const GlobalValue* value = value_of(tensor);
    lines += fmt::format("tensor '{}', {} {} {}\n", name, dtype_name(tensor.dtype()), tensor.dims(),
                         value == nullptr ? "that is local" : "on " + value->layout.to_string());
  }
  for (const auto& [name, text] : texts) lines += fmt::format("text '{}', which is '{}'\n", name, text);
  return lines;
}

void agree_on_lines(const std::string& own) {
  if (world().size() == 1) return;
  const uint64_t digest = loader::fnv1a(own);
  std::vector<uint64_t> all(static_cast<size_t>(world().size()));
  const std::vector<int64_t> counts(all.size(), 1);
  throw_if_error(world().all_gather(&digest, all.data(), counts, DType::u64));
  if (std::all_of(all.begin(), all.end(), [&](uint64_t each) { return each == all[0]; })) return;
  const std::string first = of_first_rank(own);
  if (first == own) return agree({});
  size_t at =
      static_cast<size_t>(std::mismatch(own.begin(), own.end(), first.begin(), first.end()).first - own.begin());
  at = at == 0 ? 0 : own.rfind('\n', at - 1) + 1;
  const auto line = [at](const std::string& lines) {
    return at < lines.size() ? lines.substr(at, lines.find('\n', at) - at) : std::string("nothing more");
  };
  agree(Status(Code::invalid_argument, fmt::format("saves {}, and rank 0 {}.", line(own), line(first))));
}

void check_caller(std::string_view caller, const NamedTensors& tensors) {
  if (call_context.host_watch != nullptr) {
    throw Error(Subject{caller}, Code::unsupported, "a compiled function cannot call it.",
                "Call it outside of the function.");
  }
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) refuse(fmt::format("{}: tensor '{}' is undefined.", caller, name));
    const files::Row* row = files::row_of(tensor.dtype());
    if (row != nullptr && !row->safe.empty()) continue;
    throw Error(Subject{caller}, Code::unsupported,
                fmt::format("tensor '{}' has elements of {}, which safetensors does not support.", name,
                            dtype_name(tensor.dtype())));
  }
}

// --- save

// `tensor` with its partial sums reduced. The sums are split where possible.
Tensor without_sums(const Tensor& tensor) {
  const GlobalValue* value = value_of(tensor);
  if (value == nullptr) return tensor;
  NdSbp sbp = value->layout.sbp;
  for (Sbp& each : sbp) {
    if (each.is_partial()) each = tensor.rank() > 0 ? Sbp::split(0) : Sbp::broadcast();
  }
  return sbp == value->layout.sbp ? tensor : to_global(tensor, sbp);
}

// Chooses the rank that writes each part: of the ranks that hold the same part, the one with the fewest bytes so far.
class Shares {
 public:
  explicit Shares(int32_t ranks) : bytes_(static_cast<size_t>(ranks)) {}

  IndexEntry deal(const Tensor& tensor) {
    IndexEntry entry{tensor.dtype(), tensor.dims(), {}};
    for (const auto& [box, holders] : holders_of(tensor)) {
      if (box.empty()) continue;
      const int32_t writer = *std::min_element(holders.begin(), holders.end(), [&](int32_t a, int32_t b) {
        return bytes_[static_cast<size_t>(a)] < bytes_[static_cast<size_t>(b)];
      });
      bytes_[static_cast<size_t>(writer)] += element_count(box.dims) * dtype_size(tensor.dtype());
      entry.parts.push_back({writer, box});
    }
    return entry;
  }

 private:
  using Holders = std::vector<std::pair<Box, std::vector<int32_t>>>;

  static Holders holders_of(const Tensor& tensor) {
    const GlobalValue* value = value_of(tensor);
    if (value == nullptr) return {{{Dims::filled(tensor.rank(), 0), tensor.dims()}, {0}}};
    const Placement& placement = value->layout.placement;
    std::map<int64_t, size_t> known;  // by the coordinates along the axes that split
    Holders all;
    for (int32_t position = 0; position < placement.size(); ++position) {
      const Dims at = placement.coordinates(position);
      int64_t key = 0;
      for (int32_t axis = 0; axis < at.rank(); ++axis) {
        key = key * placement.grid()[axis] + (value->layout.sbp[axis].is_split() ? at[axis] : 0);
      }
      const auto [found, fresh] = known.try_emplace(key, all.size());
      if (fresh) all.push_back({box_of(tensor.dims(), value->layout.sbp, placement.grid(), at), {}});
      all[found->second].second.push_back(placement.ranks()[static_cast<size_t>(position)]);
    }
    return all;
  }

  std::vector<int64_t> bytes_;
};

// The files of the existing checkpoint, if there is one.
std::vector<std::string> files_before(const std::string& folder) {
  std::vector<std::string> before;
  static_cast<void>(attempt([&] {
    for (const auto& [number, file] : CheckpointIndex::read(folder).files) before.push_back(file);
  }));
  return before;
}

// Writes the index after every rank has written its file.
void write_index(const CheckpointIndex& index, const std::vector<uint64_t>& sizes) {
  for (const auto& [rank, file] : index.files) {
    std::error_code error;
    const uint64_t size = fs::file_size(file, error);
    if (error) refuse(fmt::format("Rank 0 cannot see the file {}, which rank {} has written.", file, rank));
    const uint64_t wanted = sizes[static_cast<size_t>(rank)];
    if (size == wanted) continue;
    refuse(fmt::format("The file {} has {} bytes, and rank {} has written {}.", file, size, rank, wanted));
  }
  save_safetensors(index.path, {}, index.as_texts());
}

// --- load

// The elements that this rank reads of a tensor.
struct Wanted {
  const std::string& name;
  const Tensor& tensor;
  const IndexEntry& entry;
  Layout layout = {};  // for a global tensor; partial sums are read as broadcast on each rank
  std::optional<Box> box = {};
};

class Loading {
 public:
  // Reads the index, and checks everything that can be checked before elements are read.
  void prepare(const std::string& path, const NamedTensors& tensors, Metadata* texts) {
    check_caller("load", tensors);
    index_ = CheckpointIndex::read(path);
    for (const auto& [name, tensor] : tensors) {
      wanted_.push_back(want(name, tensor));
      check_files(wanted_.back());
    }
    if (texts == nullptr) return;
    for (auto& [name, text] : *texts) {
      const auto found = index_.texts.find(name);
      if (found == index_.texts.end()) missing(name, "text", index_.tensors.count(name) > 0 ? "a tensor" : "nothing");
      text = found->second;
    }
  }

  // A rank that cannot read continues, so that all ranks make the same calls. Returns the error.
  Status fill() const {
    Status failure;
    for (const Wanted& each : wanted_) {
      Tensor part;
      const Status got = attempt([&] {
        if (!each.box) return;
        part = Tensor::empty(each.box->dims, each.tensor.dtype(), Device::host());
        if (failure.ok()) read(each, part);
      });
      const Status put = attempt([&] { hand_over(each, part); });
      if (failure.ok()) failure = got.ok() ? put : got;
    }
    return failure;
  }

  std::vector<std::string> unread() const {
    std::set<std::string_view> asked_for;
    for (const Wanted& each : wanted_) asked_for.insert(each.name);
    std::vector<std::string> names;
    for (const auto& [name, entry] : index_.tensors) {
      if (asked_for.count(name) == 0) names.push_back(name);
    }
    return names;
  }

 private:
  [[noreturn]] void missing(const std::string& name, std::string_view wanted, std::string_view found) const {
    throw Error(
        Subject{"load"}, Code::not_found,
        fmt::format("the {} '{}' was requested, but {} has {} of that name.", wanted, name, index_.path, found));
  }

  Wanted want(const std::string& name, const Tensor& tensor) const {
    const auto found = index_.tensors.find(name);
    if (found == index_.tensors.end()) missing(name, "tensor", index_.texts.count(name) > 0 ? "a text" : "nothing");
    const IndexEntry& entry = found->second;
    if (entry.dtype != tensor.dtype() || entry.dims != tensor.dims()) {
      refuse(fmt::format("load: tensor '{}' is {} {} in {}, but the tensor to fill is {} {}.", name,
                         dtype_name(entry.dtype), entry.dims, index_.path, dtype_name(tensor.dtype()), tensor.dims()));
    }
    index_.check_parts(name);
    Wanted wanted{name, tensor, entry};
    const GlobalValue* value = value_of(tensor);
    if (value == nullptr) {
      wanted.box = Box{Dims::filled(tensor.rank(), 0), tensor.dims()};
      return wanted;
    }
    wanted.layout = without_partial(value->layout);
    const Placement& placement = wanted.layout.placement;
    if (placement.here()) {
      wanted.box =
          box_of(tensor.dims(), wanted.layout.sbp, placement.grid(), placement.coordinates(placement.position()));
    }
    return wanted;
  }

  // Checks that the needed files hold what the index says.
  void check_files(const Wanted& wanted) {
    for (const StoredPart& part : wanted.entry.parts) {
      if (!wanted.box || !overlap(*wanted.box, part.box)) continue;
      const std::string& path = index_.file(wanted.name, part.file);
      const auto says = [&](std::string_view found) {
        return fmt::format("load: for tensor '{}' the index {} says that {} has {} {}, but it has {}.", wanted.name,
                           index_.path, path, dtype_name(wanted.entry.dtype), part.box.dims, found);
      };
      if (!fs::exists(path)) {
        throw Error(Subject{"load"}, Code::not_found,
                    fmt::format("there is no file {}, which has the part {} of tensor '{}' according to {}.", path,
                                part.box, wanted.name, index_.path));
      }
      if (files_.count(part.file) == 0) files_.emplace(part.file, path);
      const files::StoredTensors& stored = files_.at(part.file).tensors();
      const auto found = stored.find(wanted.name);
      if (found == stored.end()) refuse(says("no such tensor"));
      if (found->second.dtype == wanted.entry.dtype && found->second.dims == part.box.dims) continue;
      refuse(says(fmt::format("{} {}", dtype_name(found->second.dtype), found->second.dims)));
    }
  }

  void read(const Wanted& wanted, const Tensor& to) const {
    for (const StoredPart& part : wanted.entry.parts) {
      if (!overlap(*wanted.box, part.box)) continue;
      const files::SafetensorsFile& file = files_.at(part.file);
      read_part(file.open(), file.tensors().find(wanted.name)->second.begin, part.box, to.dtype(), *wanted.box,
                to.data());
    }
  }

  static void hand_over(const Wanted& wanted, const Tensor& part) {
    Tensor target = wanted.tensor;
    if (!is_global(target)) {
      tenon::copy_(target, part.to(target.device()));
      return;
    }
    const Tensor local = part.defined() ? part.to(wanted.layout.placement.device()) : part;
    tenon::copy_(target, make_global(target.dtype(), target.dims(), wanted.layout, local));
  }

  CheckpointIndex index_;
  std::vector<Wanted> wanted_;
  std::map<int64_t, files::SafetensorsFile> files_;  // the needed files
};

}  // namespace

void save(const std::string& folder, const NamedTensors& tensors, const Metadata& texts) {
  static constexpr OpName kSave{"save"};
  const CalledScope called(kSave);
  const NoGrad scope;
  agree(attempt([&] { check_caller("save", tensors); }));
  agree_on_lines(lines_of(tensors, texts));

  CheckpointIndex index{fs::path(folder) / kIndexName, {}, {}, texts};
  Shares shares(world_size());
  NamedTensors own;
  for (const auto& [name, tensor] : tensors) {
    const Tensor whole = without_sums(tensor);
    const IndexEntry& entry = index.tensors.emplace(name, shares.deal(whole)).first->second;
    for (const StoredPart& part : entry.parts) {
      if (part.file == rank()) own[name] = is_global(whole) ? to_local(whole) : whole;
    }
  }

  std::vector<std::string> before;
  agree(attempt([&] {
    if (rank() != 0) return;
    fs::create_directories(folder);
    before = files_before(folder);
  }));
  const std::string stamp = of_first_rank(fmt::format("{:08x}", std::random_device()()));
  for (const auto& [name, entry] : index.tensors) {
    for (const StoredPart& part : entry.parts) {
      index.files[part.file] = fs::path(folder) / fmt::format("part-{}-{}.safetensors", part.file, stamp);
    }
  }
  const auto mine = index.files.find(rank());
  std::error_code ignored;
  try {
    uint64_t size = 0;
    agree(attempt([&] {
      if (!fs::is_directory(folder)) refuse(fmt::format("save: there is no folder {}, which rank 0 has made.", folder));
      if (mine == index.files.end()) return;
      save_safetensors(mine->second, own);
      size = fs::file_size(mine->second);
    }));
    std::vector<uint64_t> sizes(static_cast<size_t>(world_size()));
    const std::vector<int64_t> counts(sizes.size(), 1);
    throw_if_error(world().all_gather(&size, sizes.data(), counts, DType::u64));
    agree(attempt([&] {
      if (rank() == 0) write_index(index, sizes);
    }));
  } catch (...) {
    if (mine != index.files.end()) fs::remove(mine->second, ignored);
    throw;
  }
  for (const std::string& file : before) fs::remove(file, ignored);  // empty except on rank 0
}

std::vector<std::string> load(const std::string& path, const NamedTensors& tensors, Metadata* texts) {
  static constexpr OpName kLoad{"load"};
  const CalledScope called(kLoad);
  const NoGrad scope;
  Loading loading;
  agree(attempt([&] { loading.prepare(path, tensors, texts); }));
  agree(loading.fill());
  return loading.unread();
}

}  // namespace tenon::global
