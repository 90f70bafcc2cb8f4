#include "core/global/ahead.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/device/call_site.h"
#include "core/global/boxing.h"
#include "core/global/communicator.h"
#include "core/global/exchange.h"
#include "core/global/global_program.h"
#include "core/ops/ops.h"

namespace tenon::global {
namespace {

// The layout in which the last step needed a leaf's gradient, and after how many additions.
struct Expected {
  Layout to;
  int64_t additions = 0;
};
struct OfLeaf {
  std::optional<Expected> expected;
};

// Sums that are sent together, along one axis of a grid.
struct Bucket {
  Layout from, to;  // layouts of a list
  DType dtype = DType::none;
  Tensor list;
  int64_t used = 0;
  Tensor sums;  // set when the bucket is sent

  int64_t room() const { return list.elements() - used; }
  bool goes() const { return sums.defined(); }
};

}  // namespace

struct Ahead {
  std::shared_ptr<OfLeaf> leaf;
  int64_t additions = 0;  // since the gradient was last needed
  bool needed = false;    // since the last addition
  uint64_t writes = 0, version = 0;
  // The boxing that was begun.
  std::optional<Layout> to;
  Tensor part;
  std::shared_ptr<Bucket> bucket;
  int64_t at = 0;  // position in the bucket

  bool is_as_added(const GlobalValue& value) const {
    return writes == value.writes->count && version == write_count(value.local);
  }
  void forget() {
    to.reset();
    part = Tensor();
    bucket.reset();
  }
};

namespace {

constexpr OpName kBackward{"backward"};

void go(Bucket* bucket) {
  const CalledScope called(kBackward);
  const Tensor list = tenon::slice(bucket->list, 0, 0, bucket->used);
  bucket->sums = box(list, bucket->dtype, list.dims(), bucket->from, bucket->to, Needed::later);
  bucket->list = Tensor();
}

// The buckets that are being filled, one per line and element type.
class Buckets {
 public:
  // Copies `local` into a bucket; returns the bucket and the position in it.
  std::pair<std::shared_ptr<Bucket>, int64_t> add(const Tensor& local, const Layout& from, const Layout& to) {
    const std::lock_guard lock(mutex_);
    Open& open = open_[{from.placement.line(axis_of(from)), local.dtype()}];
    if (open.bucket != nullptr && open.bucket->room() < local.elements()) {
      go(open.bucket.get());
      open = {nullptr, kBucket};
    }
    if (open.bucket == nullptr) {
      const int64_t count = open.bytes / dtype_size(local.dtype());
      open.bucket = std::make_shared<Bucket>();
      open.bucket->from = from;
      open.bucket->to = to;
      open.bucket->dtype = local.dtype();
      open.bucket->list = Tensor::empty({std::max(count, local.elements())}, local.dtype(), local.device());
    }
    const int64_t at = open.bucket->used;
    Tensor place = tenon::slice(open.bucket->list, 0, at, at + local.elements());
    tenon::copy_(place, tenon::reshape(local, {local.elements()}));
    open.bucket->used += local.elements();
    return {open.bucket, at};
  }

  // Gradients are needed: sends all buckets along the same line.
  void send(const Placement& placement) {
    const std::lock_guard lock(mutex_);
    for (auto& [key, open] : open_) {
      if (open.bucket != nullptr && open.bucket->from.placement == placement) go(open.bucket.get());
      if (open.bucket != nullptr && open.bucket->goes()) open = {nullptr, kFirstBucket};
    }
  }

  static int32_t axis_of(const Layout& from) {
    return static_cast<int32_t>(std::find(from.sbp.begin(), from.sbp.end(), Sbp::partial()) - from.sbp.begin());
  }

 private:
  struct Open {
    std::shared_ptr<Bucket> bucket;
    int64_t bytes = kFirstBucket;
  };
  std::mutex mutex_;
  std::map<std::pair<Communicator*, DType>, Open> open_;
};

Buckets& buckets() {
  static auto* all = new Buckets;
  return *all;
}

// True if ranks add sums on the way, and nothing leaves the placement.
bool adds(const Layout& from, const Layout& to) {
  if (!(from.placement == to.placement) || !from.placement.here()) return false;
  for (int32_t axis = 0; axis < from.sbp.rank(); ++axis) {
    if (from.sbp[axis].is_partial() && !to.sbp[axis].is_partial() && from.placement.grid()[axis] > 1) return true;
  }
  return false;
}

// The axis along which a partial sum becomes broadcast, if nothing else changes; else -1.
int32_t only_sum(const Layout& from, const Layout& to) {
  int32_t found = -1;
  for (int32_t axis = 0; axis < from.sbp.rank(); ++axis) {
    if (from.sbp[axis] == to.sbp[axis]) continue;
    if (found >= 0 || !from.sbp[axis].is_partial() || !to.sbp[axis].is_broadcast()) return -1;
    found = axis;
  }
  return found;
}

void begin(Ahead* ahead, const Tensor& gradient, const Layout& to) {
  const CalledScope called(kBackward);
  const InterpreterScope scope(parts_interpreter());
  const GlobalValue& value = *value_of(gradient);
  ahead->to = to;
  const int32_t axis = only_sum(value.layout, to);
  if (axis < 0 || value.local.bytes() >= kLarge || value.local.elements() == 0) {
    ahead->part = box(value.local, gradient.dtype(), gradient.dims(), value.layout, to, Needed::later);
    return;
  }
  Layout list = to;
  for (Sbp& sbp : list.sbp) sbp = Sbp::broadcast();
  Layout of_sums = list;
  of_sums.sbp[axis] = Sbp::partial();
  std::tie(ahead->bucket, ahead->at) = buckets().add(value.local, of_sums, list);
}

Tensor take(Ahead* ahead, const GlobalValue& value) {
  buckets().send(value.layout.placement);
  Tensor part = std::exchange(ahead->part, Tensor());
  if (ahead->bucket != nullptr) {
    const InterpreterScope scope(parts_interpreter());
    const int64_t count = value.local.elements();
    part = tenon::reshape(tenon::slice(ahead->bucket->sums, 0, ahead->at, ahead->at + count), value.local.dims());
  }
  ahead->forget();
  return part;
}

uint64_t program_number() { return current_program() == nullptr ? 0 : current_program()->number; }

// Null: unknown, or written since.
const KnownSum* known_of(const GlobalValue& value) {
  const KnownSum* known = value.known.get();
  if (known == nullptr || known->program != program_number() || known->writes != value.writes->count ||
      known->version != write_count(value.local) || known->own_version != write_count(known->part)) {
    return nullptr;
  }
  return known;
}

void keep(GlobalValue* value, const Layout& at, const Tensor& part) {
  if (!part.defined()) return;
  value->known = std::make_shared<KnownSum>(
      KnownSum{at, part, value->writes->count, write_count(value->local), write_count(part), program_number()});
}

bool is_whole(const Layout& layout) {
  return std::all_of(layout.sbp.begin(), layout.sbp.end(), [](Sbp each) { return each.is_broadcast(); });
}

// Expects the next step to need what this one needs. True if the boxing was begun ahead.
bool note_need(const GlobalValue& value, const Layout& to) {
  Ahead* ahead = value.ahead.get();
  if (ahead == nullptr || value.layout == to || current_program() != nullptr) return false;
  const bool is_as_added = ahead->is_as_added(value);
  if (!ahead->needed) {
    ahead->needed = true;
    ahead->leaf->expected.reset();
    if (is_as_added && adds(value.layout, to)) ahead->leaf->expected = Expected{to, ahead->additions};
  }
  if (is_as_added && ahead->to && *ahead->to == to) return true;
  ahead->forget();
  return false;
}

// box(), which in a program also states when its elements were ready.
Tensor moved(const GlobalValue& value, const Tensor& tensor, const Layout& to, Needed needed) {
  GlobalProgram* program = current_program();
  if (program == nullptr) return box(value.local, tensor.dtype(), tensor.dims(), value.layout, to, needed);
  // Sums may be reduced as soon as they are made; other exchanges would keep their results in memory for long.
  const int64_t ready = adds(value.layout, to) ? value.ready_at(program->number) : GlobalProgram::kNow;
  const int64_t before = std::exchange(program->ready, ready);
  Tensor part = box(value.local, tensor.dtype(), tensor.dims(), value.layout, to, needed);
  program->ready = before;
  return part;
}

}  // namespace

void note_accumulation(const Tensor& gradient, std::shared_ptr<void>* of_leaf) {
  GlobalValue& value = *value_of(gradient);
  if (current_program() != nullptr || value.program != 0 || !value.layout.placement.here()) return;
  if (*of_leaf == nullptr) *of_leaf = std::make_shared<OfLeaf>();
  if (value.ahead == nullptr) value.ahead = std::make_shared<Ahead>();
  Ahead& ahead = *value.ahead;
  ahead.forget();
  ahead.leaf = std::static_pointer_cast<OfLeaf>(*of_leaf);
  ahead.additions = ahead.needed ? 1 : ahead.additions + 1;
  ahead.needed = false;
  ahead.writes = value.writes->count;
  ahead.version = write_count(value.local);
  const std::optional<Expected>& expected = ahead.leaf->expected;
  if (expected && expected->additions == ahead.additions && adds(value.layout, expected->to)) {
    begin(&ahead, gradient, expected->to);
  }
}

Tensor boxed(const Tensor& tensor, const Layout& to, Needed needed) {
  GlobalValue& value = *value_of(tensor);
  if (value.layout == to || !adds(value.layout, to)) {
    note_need(value, to);
    return moved(value, tensor, to, needed);
  }
  const bool is_begun = note_need(value, to);
  if (const KnownSum* known = known_of(value); known != nullptr && !is_begun) {
    Tensor part = box(known->part, tensor.dtype(), tensor.dims(), known->layout, to, needed);
    if (known->layout != to && is_whole(to)) keep(&value, to, part);
    return part;
  }
  Tensor part = is_begun ? take(value.ahead.get(), value) : moved(value, tensor, to, needed);
  keep(&value, to, part);
  return part;
}

const Layout* known_layout(const GlobalValue& value) {
  if (const KnownSum* known = known_of(value)) return &known->layout;
  const Ahead* ahead = value.ahead.get();
  return ahead != nullptr && ahead->to && ahead->is_as_added(value) ? &*ahead->to : nullptr;
}

void note_overwritten(const Tensor& tensor, const Layout& at, const Tensor& part) {
  GlobalValue& value = *value_of(tensor);
  if (adds(value.layout, at)) keep(&value, at, part);
}

void forget_shared(GlobalValue* value, const Tensor& part) {
  if (!part.defined() || known_of(*value) == nullptr) return;
  const bool shares = current_program() != nullptr || value->known->part.impl()->storage == part.impl()->storage;
  if (shares) value->known.reset();
}

}  // namespace tenon::global
