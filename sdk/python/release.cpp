// The interpreter lock, and references to Python objects that tensor memory holds. Their last user may be a thread of
// Tenon.
#include <unistd.h>

#include <mutex>
#include <vector>

#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

struct Waiting {
  std::mutex mutex;
  std::vector<PyObject*> objects;
  bool asked = false;  // drain is on Python's list of pending calls
};

// Lives for ever, since a thread may drop a tensor after main has ended.
Waiting& waiting() {
  static auto* all = new Waiting;
  return *all;
}

int drain(void*) {
  std::vector<PyObject*> objects;
  {
    std::lock_guard lock(waiting().mutex);
    objects.swap(waiting().objects);
    waiting().asked = false;
  }
  for (PyObject* object : objects) Py_DECREF(object);
  return 0;
}

}  // namespace

void Unlocked::take_back() {
  try {
    PyEval_RestoreThread(state_);
  } catch (...) {
    for (;;) pause();
  }
}

void release(PyObject* object) noexcept {
  if (Py_IsInitialized() == 0) return;
  if (PyGILState_Check() == 1) {
    Py_DECREF(object);
    return;
  }
  std::lock_guard lock(waiting().mutex);
  waiting().objects.push_back(object);
  // If Python's list of pending calls is full, the next release tries again.
  if (!waiting().asked) waiting().asked = Py_AddPendingCall(&drain, nullptr) == 0;
}

}  // namespace tenon::python
