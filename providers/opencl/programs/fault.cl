// A slot for the fault of one launch. The first work-item that meets bad data takes it. Mirrors FaultLog::Slot of
// queue/fault_log.h. For kernels of this folder, the host fills in limit and operand.
struct ep_fault_slot {
  volatile uint taken;
  int code;
  long value;
  long limit;
  int operand;
  int reserved;
};

static inline void report_fault(global struct ep_fault_slot* slots, uint slot, int code, long value) {
  global struct ep_fault_slot* mine = slots + slot;
  if (atomic_cmpxchg((volatile global uint*)&mine->taken, 0u, 1u) != 0u) return;
  mine->code = code;
  mine->value = value;
}
