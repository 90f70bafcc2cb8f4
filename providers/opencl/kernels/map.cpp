#include "providers/opencl/kernels/map.h"

namespace tenon::provider::opencl {

void set_dims(const int64_t* dims, int32_t rank, MapParameters* p) {
  p->rank = rank;
  p->count = 1;
  for (int32_t axis = 0; axis < rank; ++axis) {
    p->dims[axis] = static_cast<uint64_t>(dims[axis]);
    p->count *= p->dims[axis];
  }
}

std::string bits_option(int32_t dtype) {
  switch (dtype_size(dtype)) {
    case 1: return "-DEP_BITS=uchar";
    case 2: return "-DEP_BITS=ushort";
    case 4: return "-DEP_BITS=uint";
    default: return "-DEP_BITS=ulong";
  }
}

}  // namespace tenon::provider::opencl
