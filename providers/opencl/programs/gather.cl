// gather moves elements as bits: EP_BITS is uchar, ushort, uint or ulong. The parameters are those of a map over the
// results, with operands DST, SRC and INDICES; SRC has stride 0 along the gathered axis. scalars[0] is the stride of SRC
// along that axis, scalars[1] its length. op is 1 if indices have 64 bits.
#include "providers/opencl/programs/shape.cl"
#include "providers/opencl/programs/fault.cl"

#define INDEX_OUT_OF_RANGE 1

kernel void gather(global EP_BITS* dst, global const EP_BITS* src, global const uchar* indices,
                   global struct ep_fault_slot* faults, struct map_parameters p) {
  const ulong number = get_global_id(0);
  if (number >= p.count) return;
  const struct places at = strided_places(&p, number, 3);
  const long index = p.op != 0 ? ((global const long*)indices)[at.of[2]] : ((global const int*)indices)[at.of[2]];
  const long length = (long)p.scalars[1];
  const long position = index < 0 ? index + length : index;
  if (position < 0 || position >= length) {
    report_fault(faults, p.fault_slot, INDEX_OUT_OF_RANGE, index);
    return;
  }
  dst[at.of[0]] = src[at.of[1] + (ulong)position * p.scalars[0]];
}
