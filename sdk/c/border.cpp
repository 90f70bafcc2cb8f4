#include "sdk/c/border.h"

#include <cstdlib>
#include <stdexcept>

namespace tenon::c {
namespace {

#define TENON_SAME_CODE(name, code) static_assert(name == static_cast<int32_t>(code))
TENON_SAME_CODE(TENON_OK, Code::ok);
TENON_SAME_CODE(TENON_UNSUPPORTED, Code::unsupported);
TENON_SAME_CODE(TENON_FAULT, Code::fault);
TENON_SAME_CODE(TENON_INVALID_ARGUMENT, Code::invalid_argument);
TENON_SAME_CODE(TENON_NOT_FOUND, Code::not_found);
TENON_SAME_CODE(TENON_OUT_OF_HOST_MEMORY, Code::out_of_host_memory);
TENON_SAME_CODE(TENON_OUT_OF_DEVICE_MEMORY, Code::out_of_device_memory);
TENON_SAME_CODE(TENON_DEVICE_LOST, Code::device_lost);
TENON_SAME_CODE(TENON_TIMEOUT, Code::timeout);
TENON_SAME_CODE(TENON_CANCELLED, Code::cancelled);
TENON_SAME_CODE(TENON_BUSY, Code::busy);
TENON_SAME_CODE(TENON_VERSION_MISMATCH, Code::version);
TENON_SAME_CODE(TENON_INTERNAL, Code::internal);
#undef TENON_SAME_CODE

// Names the row of dtypes.def that the header lacks, or has with another number.
#define EP_DTYPE(name, id, bits, type_class) constexpr int32_t id_of_##name = id;
#include "ep_api/dtypes.def"
#undef EP_DTYPE
static_assert(TENON_BOOL == id_of_bool && TENON_I8 == id_of_i8 && TENON_I16 == id_of_i16 && TENON_I32 == id_of_i32 &&
              TENON_I64 == id_of_i64 && TENON_U8 == id_of_u8 && TENON_U16 == id_of_u16 && TENON_U32 == id_of_u32 &&
              TENON_U64 == id_of_u64 && TENON_F16 == id_of_f16 && TENON_BF16 == id_of_bf16 && TENON_F32 == id_of_f32 &&
              TENON_F64 == id_of_f64 && TENON_F8E4M3FN == id_of_f8e4m3fn && TENON_F8E5M2 == id_of_f8e5m2 &&
              TENON_I4 == id_of_i4 && TENON_U4 == id_of_u4 && TENON_F8E4M3FNUZ == id_of_f8e4m3fnuz &&
              TENON_F8E5M2FNUZ == id_of_f8e5m2fnuz && TENON_F8E8M0 == id_of_f8e8m0 && TENON_F6E2M3 == id_of_f6e2m3 &&
              TENON_F6E3M2 == id_of_f6e3m2 && TENON_F4E2M1 == id_of_f4e2m1 && TENON_I2 == id_of_i2 &&
              TENON_U2 == id_of_u2);
#define EP_DTYPE(name, id, bits, type_class) +1
static_assert(0
#include "ep_api/dtypes.def"
                  == 25,
              "tenon_c.h lacks a row of dtypes.def");
#undef EP_DTYPE

// The error that remains possible if there is no memory for another one.
tenon_error& no_memory() {
  static tenon_error error{Status(Code::out_of_host_memory, "There is not enough memory on the host.")};
  return error;
}
// Makes it while there is memory: when the library is loaded.
[[maybe_unused]] const tenon_error& made_early = no_memory();

}  // namespace

Status caught() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return error.status();
  } catch (const std::bad_alloc&) {
    return no_memory().status;
  } catch (const std::length_error&) {
    return no_memory().status;
  } catch (const std::exception& error) {
    try {
      return Status(Code::internal, fmt::format("An exception that is not expected: {}.", error.what()));
    } catch (...) {
      return no_memory().status;
    }
  } catch (...) {
    return no_memory().status;
  }
}

tenon_status store_error(std::string_view function, const Status& status, tenon_error** error) noexcept {
  const auto code = static_cast<tenon_status>(status.code());
  if (error == nullptr) return code;
  try {
    *error = new tenon_error{status.parts().subject.empty() ? status.with_subject(function) : status};
  } catch (...) {
    *error = &no_memory();
    return TENON_OUT_OF_HOST_MEMORY;
  }
  return code;
}

void refuse_null(std::string_view argument) {
  throw Error(Code::invalid_argument, fmt::format("The argument `{}` is NULL.", argument));
}

void refuse_size(size_t size) {
  throw Error(Code::invalid_argument, fmt::format("The member `size` of a struct is {}.", size),
              "Initialise the struct with TENON_INIT.");
}

void refuse_newer(size_t size, size_t known) {
  throw Error(
      Code::unsupported,
      fmt::format("A struct has {} bytes; this library knows the first {}, and a later member is not 0.", size, known),
      "Use a newer Tenon, or leave the member 0.");
}

TensorList tensors_of(const tenon_tensor* const* tensors, size_t count, std::string_view argument) {
  TensorList list;
  list.reserve(count);
  for (size_t i = 0; i < count; ++i) list.push_back(tensor_of(needed(tensors, argument)[i], argument));
  return list;
}

void write_handles(TensorList tensors, tenon_tensor** outputs) {
  for (size_t i = 0; i < tensors.size(); ++i) outputs[i] = handle_of(std::move(tensors[i]));
}

char* owned_text(std::string_view text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

Device device_of(const char* device) { return device == nullptr ? Device::current() : Device(device); }

DType dtype_of(tenon_dtype dtype) {
  const auto type = static_cast<DType>(dtype);
  if (dtype_info(type).bits == 0) throw Error(Code::invalid_argument, fmt::format("There is no dtype {}.", dtype));
  return type;
}

Dims dims_of(int32_t rank, const int64_t* dims, std::string_view argument) {
  if (rank < 0 || rank > TENON_MAX_RANK)
    throw Error(Code::invalid_argument, fmt::format("The rank is {}; it must be from 0 to 8.", rank));
  if (rank > 0) needed(dims, argument);
  return Dims(std::span<const int64_t>(dims, static_cast<size_t>(rank)));
}

std::optional<bool> choice_of(int32_t choice, std::string_view member) {
  switch (choice) {
    case TENON_DEFAULT: return std::nullopt;
    case TENON_ON: return true;
    case TENON_OFF: return false;
    default:
      throw Error(
          Code::invalid_argument,
          fmt::format("The option `{}` is {}; it must be TENON_DEFAULT, TENON_ON or TENON_OFF.", member, choice));
  }
}

std::optional<Compiling> compiling_of(int32_t wait) {
  const std::optional<bool> choice = choice_of(wait, "wait");
  if (!choice) return std::nullopt;
  return *choice ? Compiling::wait : Compiling::beside;
}

}  // namespace tenon::c

using tenon::Code;
using tenon::Status;

extern "C" {

void tenon_free(void* memory) { std::free(memory); }

tenon_status tenon_error_code(const tenon_error* error) {
  return error == nullptr ? TENON_OK : static_cast<tenon_status>(error->status.code());
}
const char* tenon_error_message(const tenon_error* error) {
  return error == nullptr ? "" : error->status.message().c_str();
}
const char* tenon_error_remedy(const tenon_error* error) {
  return error == nullptr ? "" : error->status.remedy().c_str();
}
void tenon_error_free(tenon_error* error) {
  if (error != &tenon::c::no_memory()) delete error;
}

tenon_error* tenon_error_create(tenon_status code, const char* message) {
  try {
    const bool known = code > TENON_OK && code <= TENON_INTERNAL;
    return new tenon_error{Status(known ? static_cast<Code>(code) : Code::internal, message == nullptr ? "" : message)};
  } catch (...) {
    return nullptr;
  }
}

tenon_status tenon_cancellation_create(tenon_cancellation** out, tenon_error** error) {
  return tenon::c::guarded("tenon_cancellation_create", error,
                           [&] { *tenon::c::needed(out, "out") = new tenon_cancellation; });
}
void tenon_cancellation_cancel(const tenon_cancellation* cancellation) {
  if (cancellation != nullptr) cancellation->cancellation.cancel();
}
void tenon_cancellation_free(tenon_cancellation* cancellation) { delete cancellation; }

}  // extern "C"
