// Launches: compares operands, shapes, scalars, workspace and scratch with the descriptor and the provider's demands.
#include <unordered_set>

#include "loader/layers/validate/rules.h"
#include "primitives/descriptor/descriptor.h"
#include "primitives/dtype/dtype.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::loader::validate {
namespace {

constexpr uint64_t block_alignment = 256;   // required alignment of workspace
constexpr int64_t most_compared = 1 << 14;  // elements: the overlap of larger operands is not compared

// An operand as launched: its shape, and the number of bytes from its first element to the end of its last.
struct Operand {
  const ep_operand_desc* desc;
  const int64_t* dims;
  const int64_t* strides;
  int64_t count = 1, last = 0;
  uint64_t bytes = 0;

  std::string name() const {
    const std::string role = table::role_name(desc->role);
    return role.empty() ? fmt::format("operand {}", desc->role) : fmt::format("operand {}", role);
  }
  bool dense() const { return last + 1 == count; }
};

Operand operand_of(const Primitive& primitive, const ep_launch& launch, uint32_t index) {
  const ep_operand_desc& desc = primitive.desc.operands[index];
  Operand operand{&desc, desc.dims, desc.strides};
  if (launch.shapes != nullptr) {
    operand.dims = launch.shapes[index].dims;
    operand.strides = launch.shapes[index].strides;
  }
  if (descriptor::is_opaque(desc)) {
    operand.bytes = opaque_bytes(*primitive.layer, desc);
    return operand;
  }
  for (int32_t axis = 0; axis < desc.rank; ++axis) {
    operand.count *= operand.dims[axis];
    operand.last += (operand.dims[axis] - 1) * operand.strides[axis];
  }
  operand.bytes = static_cast<uint64_t>(dtype_bytes(static_cast<DType>(desc.dtype), operand.last + 1));
  if (primitive.info.pack_operand == index + 1) operand.bytes = primitive.info.pack_bytes;
  return operand;
}

bool is_output(const Primitive& primitive, uint32_t index) {
  if (table::kind_row(primitive.desc.kind) == nullptr) return index == 0;
  return table::is_output(primitive.desc.kind, primitive.desc.operands[index].role);
}

bool is_scalar(const Primitive& primitive, uint32_t index) {
  return (primitive.desc.operands[index].flags & EP_OPERAND_FLAG_SCALAR) != 0;
}

// Checks that dims and strides of one operand match the descriptor and are valid.
void check_shape(Call& call, const Primitive& primitive, const ep_shape& shape, uint32_t index) {
  const ep_operand_desc& desc = primitive.desc.operands[index];
  const std::string name = Operand{&desc, nullptr, nullptr}.name();
  if (shape.rank != desc.rank || (desc.rank > 0 && (shape.dims == nullptr || shape.strides == nullptr))) {
    return call.refuse(
        "P08", fmt::format("{} has rank {} in the launch, but {} in the descriptor", name, shape.rank, desc.rank));
  }
  for (int32_t axis = 0; axis < desc.rank; ++axis) {
    const int64_t dim = shape.dims[axis], stride = shape.strides[axis];
    const bool fits = (desc.dims[axis] == EP_ANY || desc.dims[axis] == dim) &&
                      (desc.strides[axis] == EP_ANY || desc.strides[axis] == stride);
    if (fits && dim > 0 && stride >= 0) continue;
    return call.refuse(
        "P08", fmt::format("{} has dim {} and stride {} at axis {} in the launch; the descriptor has {} and {}", name,
                           dim, stride, axis, desc.dims[axis], desc.strides[axis]));
  }
}

void check_counts(Call& call, const Primitive& primitive, const ep_launch& launch) {
  if (launch.operand_count != primitive.desc.operand_count || launch.operands == nullptr) {
    return call.refuse("P08", fmt::format("{} operands were given, the descriptor has {}", launch.operand_count,
                                          primitive.desc.operand_count));
  }
  if (launch.scalar_count > EP_MAX_SCALARS) {
    return call.refuse(
        "P08", fmt::format("{} scalars were given; at most {} are possible", launch.scalar_count, EP_MAX_SCALARS));
  }
  if (launch.scalar_count > 0 && launch.scalars == nullptr) {
    return call.refuse("P08", fmt::format("the list of {} scalars is NULL", launch.scalar_count));
  }
  if ((launch.shapes != nullptr) != primitive.dynamic) {
    call.refuse("P08", primitive.dynamic ? "the descriptor holds EP_ANY and no shapes were given"
                                         : "shapes were given and the descriptor holds no EP_ANY");
  }
}

// If the address of a block is unknown, it is assumed to be a multiple of the pool's minimum_alignment.
void check_alignment(Call& call, const Memory& memory, uint64_t offset, uint64_t unit, const std::string& what) {
  const auto& pools = memory.layer->info.pools;
  const uint64_t known = memory.pool < pools.size() ? pools[memory.pool].minimum_alignment : 1;
  const uint64_t address = reinterpret_cast<uintptr_t>(memory.host) + offset;
  if (address % (memory.host != nullptr ? unit : std::min(unit, known)) == 0) return;
  call.refuse("M05", fmt::format("{} begins at offset {}, whose address is not a multiple of {}", what, offset, unit));
}

void check_operand(Call& call, const Operand& operand, const Memory* memory, uint64_t offset, bool reads) {
  if (memory == nullptr) return call.refuse("P08", fmt::format("{} has no memory", operand.name()));
  if (descriptor::is_opaque(*operand.desc)) return check_opaque(call, *memory, *operand.desc, offset, reads);
  if (memory->image) return call.refuse("Y06", fmt::format("{} has strides and lies in an image", operand.name()));
  if (reads) check_plain(call, memory, offset, operand.name().c_str());
  check_range(call, *memory, offset, operand.bytes, operand.name());
  const int64_t size = std::max<int64_t>(1, dtype_size(static_cast<DType>(operand.desc->dtype)));
  check_alignment(call, *memory, offset, static_cast<uint64_t>(std::max<int64_t>(size, operand.desc->alignment)),
                  operand.name());
}

void collect(const Operand& operand, uint64_t offset, std::unordered_set<uint64_t>* out) {
  const auto size = static_cast<uint64_t>(std::max<int64_t>(1, dtype_size(static_cast<DType>(operand.desc->dtype))));
  for (int64_t i = 0; i < operand.count; ++i) {
    int64_t rest = i, at = 0;
    for (int32_t axis = operand.desc->rank; axis-- > 0;) {
      at += rest % operand.dims[axis] * operand.strides[axis];
      rest /= operand.dims[axis];
    }
    for (uint64_t byte = 0; byte < size; ++byte) out->insert(offset + static_cast<uint64_t>(at) * size + byte);
  }
}

// True if the two share an element. False for operands that are too large to compare.
bool overlap(const Operand& a, uint64_t a_offset, const Operand& b, uint64_t b_offset) {
  if (a_offset + a.bytes <= b_offset || b_offset + b.bytes <= a_offset) return false;
  if (descriptor::is_opaque(*a.desc) || descriptor::is_opaque(*b.desc)) return true;
  if (a.dense() && b.dense()) return true;
  if (a.count > most_compared || b.count > most_compared) return false;
  std::unordered_set<uint64_t> first, second;
  collect(a, a_offset, &first);
  collect(b, b_offset, &second);
  return std::any_of(second.begin(), second.end(), [&](uint64_t byte) { return first.contains(byte); });
}

bool same_place(const Operand& a, uint64_t a_offset, const Operand& b, uint64_t b_offset) {
  const auto rank = static_cast<size_t>(a.desc->rank);
  return a_offset == b_offset && a.desc->rank == b.desc->rank && a.desc->dtype == b.desc->dtype &&
         std::equal(a.dims, a.dims + rank, b.dims) && std::equal(a.strides, a.strides + rank, b.strides);
}

void check_overlaps(Call& call, const Primitive& primitive, const Argument<const ep_launch*>& launch) {
  const ep_primitive_desc& desc = primitive.desc;
  const table::KindRow* row = table::kind_row(desc.kind);
  for (uint32_t out = 0; out < desc.operand_count; ++out) {
    if (!is_output(primitive, out)) continue;
    for (uint32_t other = 0; other < desc.operand_count; ++other) {
      if (other == out || is_scalar(primitive, other) || launch.memories[other] != launch.memories[out]) continue;
      const Operand a = operand_of(primitive, *launch.launch, out), b = operand_of(primitive, *launch.launch, other);
      const uint64_t a_offset = launch.operands[out].offset, b_offset = launch.operands[other].offset;
      const bool may_alias =
          row == nullptr || (desc.operands[out].role == EP_ROLE_DST && desc.operands[other].role == row->alias);
      const bool opaque = descriptor::is_opaque(*a.desc) || descriptor::is_opaque(*b.desc);
      if (may_alias && !opaque && same_place(a, a_offset, b, b_offset)) continue;
      if (overlap(a, a_offset, b, b_offset)) call.refuse("P05", fmt::format("{} overlaps {}", a.name(), b.name()));
      if (launch.memories[out] != nullptr && is_exclusive(*launch.memories[out])) {
        call.refuse(
            "M11", fmt::format("{} lies in the block of {}, whose pool is EP_POOL_FLAG_EXCLUSIVE", b.name(), a.name()));
      }
    }
  }
}

// Checks the `bytes` of workspace or scratch at `offset` of `memory`.
void check_room(Call& call, const Memory* memory, uint64_t offset, uint64_t bytes, const std::string& what) {
  if (bytes == 0) return;
  if (memory == nullptr) return call.refuse("P08", fmt::format("{} of {} bytes was not given", what, bytes));
  check_range(call, *memory, offset, bytes, what);
  check_alignment(call, *memory, offset, block_alignment, what);
}

uint64_t workspace_bytes(const Primitive& primitive, const ep_launch& launch) {
  const ep_device_ops& ops = primitive.layer->inner;
  if (!primitive.dynamic) return primitive.info.workspace_bytes;
  if (ops.primitive_workspace == nullptr || (primitive.info.flags & EP_PRIMITIVE_INFO_FLAG_NO_WORKSPACE) != 0) return 0;
  uint64_t bytes = 0;
  auto* handle = static_cast<ep_primitive*>(primitive.inner);
  const ep_status status = ops.primitive_workspace(handle, launch.shapes, launch.operand_count, &bytes, nullptr);
  return status == EP_STATUS_OK ? bytes : 0;
}

void check_operands(Call& call, const Primitive& primitive, const Argument<const ep_launch*>& launch) {
  for (uint32_t i = 0; i < primitive.desc.operand_count; ++i) {
    if (is_scalar(primitive, i)) {
      if (launch.memories[i] != nullptr) call.refuse("P08", fmt::format("operand {} is a scalar and has memory", i));
    } else {
      check_operand(call, operand_of(primitive, *launch.launch, i), launch.memories[i], launch.operands[i].offset,
                    !is_output(primitive, i));
    }
  }
  if (!call.refused()) check_overlaps(call, primitive, launch);
}

std::vector<Object*> objects_of(const Argument<const ep_launch*>& launch) {
  std::vector<Object*> objects(launch.memories, launch.memories + launch.inner.operand_count);
  objects.push_back(launch.workspace);
  objects.push_back(launch.scratch);
  return objects;
}

// The accesses of a launch, workspace and scratch included.
std::vector<RecordedCommands::Access> accesses_of(const Primitive& primitive,
                                                  const Argument<const ep_launch*>& launch) {
  std::vector<RecordedCommands::Access> accesses;
  for (uint32_t i = 0; i < primitive.desc.operand_count; ++i) {
    if (launch.memories[i] == nullptr) continue;
    const Operand operand = operand_of(primitive, *launch.launch, i);
    const int64_t size = std::max<int64_t>(1, dtype_size(static_cast<DType>(operand.desc->dtype)));
    const auto unit = static_cast<uint64_t>(std::max<int64_t>(size, operand.desc->alignment));
    accesses.push_back({launch.memories[i], launch.operands[i].offset, operand.bytes, unit, is_output(primitive, i)});
  }
  if (launch.workspace != nullptr) {
    const uint64_t bytes = workspace_bytes(primitive, *launch.launch);
    accesses.push_back({launch.workspace, launch.inner.workspace.offset, bytes, block_alignment, true});
  }
  if (launch.scratch != nullptr) {
    accesses.push_back(
        {launch.scratch, launch.inner.scratch.offset, primitive.info.scratch_bytes, block_alignment, true});
  }
  return accesses;
}

// Records the new contents of a launch's outputs, workspace and scratch.
void note_outputs(const Primitive& primitive, const Argument<const ep_launch*>& launch) {
  for (uint32_t i = 0; i < primitive.desc.operand_count; ++i) {
    if (!is_output(primitive, i) || launch.memories[i] == nullptr) continue;
    const ep_operand_desc& operand = primitive.desc.operands[i];
    const uint64_t offset = launch.operands[i].offset;
    if (descriptor::is_opaque(operand)) {
      note_value(*launch.memories[i], operand, offset);
    } else {
      forget_values(*launch.memories[i], offset, operand_of(primitive, *launch.launch, i).bytes);
    }
  }
  if (launch.workspace != nullptr) {
    forget_values(*launch.workspace, launch.inner.workspace.offset, workspace_bytes(primitive, *launch.launch));
  }
}

}  // namespace

Argument<const ep_launch*>::Argument(Call& call, const ep_launch* given) : launch(given) {
  if (given == nullptr) call.refuse("A01", "the launch is NULL");
  if (given == nullptr) return;
  inner = *given;
  if (given->operand_count > EP_MAX_OPERANDS || given->operands == nullptr) {
    call.refuse("P08", fmt::format("{} operands were given", given->operand_count));
    return;
  }
  const auto pass = [&call](ep_buffer& buffer, Memory*& memory) {
    if (buffer.memory == nullptr) return;
    memory = static_cast<Memory*>(call.enter(Kind::memory, buffer.memory));
    buffer.memory = memory == nullptr ? nullptr : static_cast<ep_memory*>(memory->inner);
  };
  for (uint32_t i = 0; i < given->operand_count; ++i) {
    operands[i] = given->operands[i];
    pass(operands[i], memories[i]);
  }
  pass(inner.workspace, workspace);
  pass(inner.scratch, scratch);
}

void before(Tag<Slot::primitive_launch>, Call& call, PrimitiveHandle& primitive, StreamHandle& stream,
            Argument<const ep_launch*>& launch, Argument<ep_fault*>& fault, Error&) {
  if (call.refused()) return;
  const Primitive& made = *primitive.object;
  if (call.layer->synchronous() && fault.out == nullptr)
    call.refuse("A01", "out_fault is NULL on a synchronous device");
  check_counts(call, made, *launch.launch);
  for (uint32_t i = 0; i < made.desc.operand_count && made.dynamic && !call.refused(); ++i) {
    check_shape(call, made, launch.launch->shapes[i], i);
  }
  if (call.refused()) return;
  check_operands(call, made, launch);
  check_room(call, launch.workspace, launch.inner.workspace.offset, workspace_bytes(made, *launch.launch), "workspace");
  check_room(call, launch.scratch, launch.inner.scratch.offset, made.info.scratch_bytes, "scratch");
  if (!call.refused() && stream.object->recording != nullptr) {
    check_bindings(call, *stream.object, accesses_of(made, launch));
  }
}

void after(Tag<Slot::primitive_launch>, Call& call, ep_status status, PrimitiveHandle& primitive, StreamHandle& stream,
           Argument<const ep_launch*>& launch, Argument<ep_fault*>& fault, Error&) {
  if (status == EP_STATUS_FAULT) {
    if (!call.layer->synchronous()) return call.blame("F01", "a launch on an asynchronous device returned FAULT");
    if (fault.written.tag != launch.inner.tag || fault.written.code <= 0) {
      call.blame("F01", "it answered FAULT and did not fill out_fault with the launch's tag and a code");
    }
  }
  if (status == EP_STATUS_OK || status == EP_STATUS_FAULT) note_outputs(*primitive.object, launch);
  if (stream.object->recording != nullptr) {
    return note_recorded(*stream.object, status, primitive.object, accesses_of(*primitive.object, launch));
  }
  if (status != EP_STATUS_OK || call.layer->synchronous()) return;
  submitted(*stream.object, {primitive.object});
  for (Object* object : objects_of(launch)) {
    if (object != nullptr) object->uses.raise(stream.object->number, stream.object->point);
  }
  if (call.layer->inner.stream_take_fault != nullptr) {
    stream.object->launched.push_back({launch.inner.tag, stream.object->point});
  }
}

void before(Tag<Slot::primitive_pack>, Call& call, PrimitiveHandle& primitive, StreamHandle&, Buffer& dst, Buffer& src,
            Error&) {
  if (call.refused()) return;
  const Primitive& made = *primitive.object;
  if (made.info.pack_operand == 0) return call.refuse("P08", "the primitive packs no operand");
  check_range(call, *dst.object, dst.offset, made.info.pack_bytes, "the packed operand");
  ep_launch plain{};
  const Operand operand = operand_of(made, plain, made.info.pack_operand - 1);
  const auto bytes = static_cast<uint64_t>(dtype_bytes(static_cast<DType>(operand.desc->dtype), operand.last + 1));
  if (!made.dynamic) check_range(call, *src.object, src.offset, bytes, "the operand to pack");
}

void after(Tag<Slot::primitive_pack>, Call&, ep_status status, PrimitiveHandle& primitive, StreamHandle& stream,
           Buffer& dst, Buffer& src, Error&) {
  if (status == EP_STATUS_OK) submitted(*stream.object, {primitive.object, dst.object, src.object});
}

}  // namespace tenon::loader::validate
