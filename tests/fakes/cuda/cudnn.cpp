// cuDNN's backend interface on host memory. Its ranking begins with engines that the provider must skip: executing one
// of them fails.
#include "tests/fakes/cuda/cudnn.h"

#include <cuda.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "tests/fakes/cuda/control.h"

#define FAKE_API extern "C" __attribute__((visibility("default")))

// Functions of the fake driver.
extern "C" tenon::fakes::cuda::Control* fake_cuda_control();
extern "C" size_t fake_cuda_contexts();

namespace {

using namespace tenon::fakes::cudnn;

// The fake's engines, in the order of its ranking.
struct Engine {
  std::vector<NumericalNote> notes;
  int64_t workspace;
  bool makes_plans;
};
const std::vector<Engine>& engines() {
  static const auto* all = new std::vector<Engine>{
      {{NumericalNote::TENSOR_CORE, NumericalNote::NONDETERMINISTIC}, 0, true},
      {{NumericalNote::TENSOR_CORE, NumericalNote::DOWN_CONVERT_INPUTS}, 0, true},
      {{NumericalNote::REDUCED_PRECISION_REDUCTION}, 0, true},
      {{NumericalNote::WINOGRAD, NumericalNote::WINOGRAD_TILE_4x4}, 0, true},
      {{NumericalNote::FFT}, 0, true},
      {{}, INT64_C(1) << 40, true},
      {{}, 0, false},
      {{NumericalNote::TENSOR_CORE}, 1000, true},
      {{}, 1000, true},
  };
  return *all;
}
constexpr int64_t most_workspace = INT64_C(1) << 30;

// True if no program permits the engine. The other engines with notes may serve a program that permits tier relaxed.
bool is_never_wanted(const Engine& engine) {
  const auto has = [&](NumericalNote note) { return std::count(engine.notes.begin(), engine.notes.end(), note) != 0; };
  return has(NumericalNote::NONDETERMINISTIC) || has(NumericalNote::REDUCED_PRECISION_REDUCTION) ||
         engine.workspace > most_workspace;
}

constexpr Status not_finalized = 2004;
constexpr Status execution_failed = 5000;

thread_local std::string last_error;

Status refuse(Status status, const std::string& why) {
  last_error = why;
  return status;
}

struct Holder {
  BodyPtr body;
};
Body* body_of(Descriptor descriptor) { return static_cast<Holder*>(descriptor)->body.get(); }

size_t size_of(Type type) {
  switch (type) {
    case Type::BOOLEAN: return 1;
    case Type::HANDLE:
    case Type::INT64:
    case Type::DOUBLE:
    case Type::VOID_PTR:
    case Type::BACKEND_DESCRIPTOR: return 8;
    default: return 4;
  }
}

Type type_of(Attribute attribute) {
  using A = Attribute;
  switch (attribute) {
    case A::POINTWISE_MODE: return Type::POINTWISE_MODE;
    case A::POINTWISE_NAN_PROPAGATION: return Type::NAN_PROPOGATION;
    case A::POINTWISE_MATH_PREC:
    case A::CONVOLUTION_COMP_TYPE:
    case A::TENSOR_DATA_TYPE: return Type::DATA_TYPE;
    case A::CONVOLUTION_CONV_MODE: return Type::CONVOLUTION_MODE;
    case A::ENGINEHEUR_MODE: return Type::HEUR_MODE;
    case A::EXECUTION_PLAN_HANDLE:
    case A::OPERATIONGRAPH_HANDLE: return Type::HANDLE;
    case A::TENSOR_IS_VIRTUAL: return Type::BOOLEAN;
    case A::VARIANT_PACK_DATA_POINTERS:
    case A::VARIANT_PACK_WORKSPACE: return Type::VOID_PTR;
    case A::ENGINE_NUMERICAL_NOTE: return Type::NUMERICAL_NOTE;
    case A::CONVOLUTION_DILATIONS:
    case A::CONVOLUTION_FILTER_STRIDES:
    case A::CONVOLUTION_POST_PADDINGS:
    case A::CONVOLUTION_PRE_PADDINGS:
    case A::CONVOLUTION_SPATIAL_DIMS:
    case A::TENSOR_BYTE_ALIGNMENT:
    case A::TENSOR_DIMENSIONS:
    case A::TENSOR_STRIDES:
    case A::TENSOR_UNIQUE_ID:
    case A::VARIANT_PACK_UNIQUE_IDS:
    case A::EXECUTION_PLAN_WORKSPACE_SIZE: return Type::INT64;
    default: return Type::BACKEND_DESCRIPTOR;
  }
}

// alpha and beta have the type of the sums.
bool is_factor(Attribute attribute) {
  const auto number = static_cast<int>(attribute);
  return number >= 700 && number < 718 && (number - 700) % 6 < 2;
}

// A ranking has engines only if the library supports the graph.
int64_t give_ranking(const Body& ranking, int64_t most, void* values) {
  const BodyPtr& graph = ranking.at(Attribute::ENGINEHEUR_OPERATION_GRAPH).bodies[0];
  // Gradients of filters have only fallback engines.
  const bool is_instant = ranking.at(Attribute::ENGINEHEUR_MODE).as<HeurMode>() == HeurMode::INSTANT;
  const bool served = is_served(*graph) && !(is_instant && is_gradient_of_filter(*graph));
  const int64_t count = served ? static_cast<int64_t>(engines().size()) : 0;
  for (int64_t i = 0; i < std::min(most, count); ++i) {
    Body& config = *body_of(static_cast<Descriptor*>(values)[i]);
    config.finalized = true;
    config.engine = static_cast<int>(i);
    config.attributes[Attribute::ENGINEHEUR_OPERATION_GRAPH] = {Type::BACKEND_DESCRIPTOR, 1, {}, {graph}};
  }
  return most == 0 ? count : std::min(most, count);
}

// One call that waits until the stream reaches it.
struct Work {
  BodyPtr graph;
  std::map<int64_t, void*> addresses;
  void* workspace;
  size_t workspace_size;
  bool rounds_to_tf32;
};

void CUDA_CB run(void* data) {
  const auto* work = static_cast<Work*>(data);
  compute(*work->graph, work->addresses, work->rounds_to_tf32);
  if (work->workspace != nullptr) std::memset(work->workspace, 0xff, work->workspace_size);
}

// Calls are kept, because a captured call runs several times.
Work* keep(std::unique_ptr<Work> work) {
  static auto* mutex = new std::mutex;
  static auto* kept = new std::vector<std::unique_ptr<Work>>;
  const std::lock_guard lock(*mutex);
  return kept->emplace_back(std::move(work)).get();
}

struct Context {
  CUstream stream = nullptr;
};

}  // namespace

FAKE_API size_t cudnnGetVersion() {
  const char* text = std::getenv("FAKE_CUDNN_VERSION");
  return text != nullptr ? static_cast<size_t>(std::atol(text)) : 91000;
}
FAKE_API const char* cudnnGetErrorString(Status status) {
  return status == NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
         : status == SUCCESS     ? "CUDNN_STATUS_SUCCESS"
                                 : "an error";
}
FAKE_API void cudnnGetLastErrorString(char* message, size_t size) {
  std::strncpy(message, last_error.c_str(), size - 1);
  message[size - 1] = '\0';
}
FAKE_API Status cudnnCreate(Handle* handle) {
  if (std::getenv("FAKE_CUDNN_CREATE") != nullptr)
    return static_cast<Status>(std::atol(std::getenv("FAKE_CUDNN_CREATE")));
  if (fake_cuda_contexts() == 0) return refuse(execution_failed, "no context is current");
  *handle = reinterpret_cast<Handle>(new Context);
  ++fake_cuda_control()->objects;
  return SUCCESS;
}
FAKE_API Status cudnnDestroy(Handle handle) {
  delete reinterpret_cast<Context*>(handle);
  --fake_cuda_control()->objects;
  return SUCCESS;
}
FAKE_API Status cudnnSetStream(Handle handle, CUstream stream) {
  reinterpret_cast<Context*>(handle)->stream = stream;
  return SUCCESS;
}

FAKE_API Status cudnnBackendCreateDescriptor(Kind kind, Descriptor* descriptor) {
  *descriptor = new Holder{std::make_shared<Body>(kind)};
  ++fake_cuda_control()->objects;
  return SUCCESS;
}
FAKE_API Status cudnnBackendDestroyDescriptor(Descriptor descriptor) {
  delete static_cast<Holder*>(descriptor);
  --fake_cuda_control()->objects;
  return SUCCESS;
}

FAKE_API Status cudnnBackendSetAttribute(Descriptor descriptor, Attribute attribute, Type type, int64_t count,
                                         const void* values) {
  Body& body = *body_of(descriptor);
  if (body.finalized) return refuse(BAD_PARAM, "the descriptor is finalized");
  const bool fits = is_factor(attribute) ? type == Type::FLOAT || type == Type::DOUBLE : type == type_of(attribute);
  if (!fits || count < 1 || values == nullptr) return refuse(BAD_PARAM, "the attribute has another type");
  Values made{type, count, {}, {}};
  const auto* bytes = static_cast<const unsigned char*>(values);
  made.bytes.assign(bytes, bytes + static_cast<size_t>(count) * size_of(type));
  if (type == Type::BACKEND_DESCRIPTOR) {
    for (int64_t i = 0; i < count; ++i) {
      made.bodies.push_back(static_cast<Holder*>(static_cast<const Descriptor*>(values)[i])->body);
    }
  }
  body.attributes[attribute] = std::move(made);
  return SUCCESS;
}

FAKE_API Status cudnnBackendFinalize(Descriptor descriptor) {
  Body& body = *body_of(descriptor);
  if (fake_cuda_contexts() == 0) return refuse(execution_failed, "no context is current");
  const std::string complaint = complaint_about(body);
  if (!complaint.empty()) return refuse(BAD_PARAM, complaint);
  if (body.kind == Kind::EXECUTION_PLAN) {
    body.engine = body.body(Attribute::EXECUTION_PLAN_ENGINE_CONFIG).engine;
    if (!engines()[static_cast<size_t>(body.engine)].makes_plans)
      return refuse(NOT_SUPPORTED, "the engine has no kernel");
  }
  body.finalized = true;
  return SUCCESS;
}

FAKE_API Status cudnnBackendGetAttribute(Descriptor descriptor, Attribute attribute, Type type, int64_t most,
                                         int64_t* count, void* values) {
  const Body& body = *body_of(descriptor);
  if (!body.finalized) return refuse(not_finalized, "the descriptor is not finalized");
  if (type != type_of(attribute)) return refuse(BAD_PARAM, "the attribute has another type");
  if (body.kind == Kind::ENGINEHEUR && attribute == Attribute::ENGINEHEUR_RESULTS) {
    *count = give_ranking(body, most, values);
    return SUCCESS;
  }
  const auto& engine = engines().at(static_cast<size_t>(body.engine));
  if (body.kind == Kind::ENGINECFG && attribute == Attribute::ENGINECFG_ENGINE) {
    Body& out = *body_of(*static_cast<Descriptor*>(values));
    out.finalized = true;
    out.engine = body.engine;
    *count = 1;
    return SUCCESS;
  }
  if (body.kind == Kind::ENGINE && attribute == Attribute::ENGINE_NUMERICAL_NOTE) {
    *count = std::min(most, static_cast<int64_t>(engine.notes.size()));
    std::copy_n(engine.notes.begin(), *count, static_cast<NumericalNote*>(values));
    return SUCCESS;
  }
  if (body.kind == Kind::EXECUTION_PLAN && attribute == Attribute::EXECUTION_PLAN_WORKSPACE_SIZE) {
    std::memcpy(values, &engine.workspace, sizeof engine.workspace);
    *count = 1;
    return SUCCESS;
  }
  return refuse(BAD_PARAM, "the descriptor has no such attribute");
}

FAKE_API Status cudnnBackendExecute(Handle handle, Descriptor plan, Descriptor pack) {
  const Body &how = *body_of(plan), &where = *body_of(pack);
  if (const int status = fake_cuda_control()->fail_cudnn.exchange(0); status != 0) {
    return refuse(status, "the test wants it to fail");
  }
  if (!how.finalized || !where.finalized) return refuse(not_finalized, "a descriptor is not finalized");
  const Engine& engine = engines()[static_cast<size_t>(how.engine)];
  if (is_never_wanted(engine)) return refuse(execution_failed, "nobody wants this engine");
  const Body& config = how.body(Attribute::EXECUTION_PLAN_ENGINE_CONFIG);
  auto work = std::make_unique<Work>();
  work->graph = config.at(Attribute::ENGINEHEUR_OPERATION_GRAPH).bodies[0];
  work->workspace = where.at(Attribute::VARIANT_PACK_WORKSPACE).as<void*>();
  work->rounds_to_tf32 = !engine.notes.empty();
  work->workspace_size = static_cast<size_t>(engine.workspace);
  const bool is_aligned = reinterpret_cast<uintptr_t>(work->workspace) % 256 == 0;
  if (work->workspace_size != 0 && (work->workspace == nullptr || !is_aligned)) {
    return refuse(BAD_PARAM, "there is no workspace");
  }
  const std::vector<int64_t> ids = where.numbers(Attribute::VARIANT_PACK_UNIQUE_IDS);
  for (size_t i = 0; i < ids.size(); ++i) {
    void* address = where.at(Attribute::VARIANT_PACK_DATA_POINTERS).as<void*>(i);
    if (address == nullptr || reinterpret_cast<uintptr_t>(address) % 16 != 0) {
      return refuse(BAD_PARAM, "an address is not aligned");
    }
    work->addresses[ids[i]] = address;
  }
  for (const int64_t id : names_bound(*work->graph)) {
    if (work->addresses.count(id) == 0) return refuse(BAD_PARAM, "a tensor has no address");
  }
  const CUstream stream = reinterpret_cast<Context*>(handle)->stream;
  if (stream == nullptr) return refuse(BAD_PARAM, "the handle has no stream");
  return cuLaunchHostFunc(stream, run, keep(std::move(work))) == CUDA_SUCCESS ? SUCCESS : execution_failed;
}
