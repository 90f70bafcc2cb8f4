// Ctrl-C in the middle of a long op. Python's own handler of SIGINT only notes the signal, and Python raises
// KeyboardInterrupt once the op has returned. So Tenon's handler runs before Python's and notes the signal for Tenon
// too: the op then fails as cancelled, and errors.cpp raises what Python has to raise.
//
// This holds while the handler of SIGINT in Python is signal.default_int_handler. Any other handler may want the op to
// go on, and might itself call Tenon, so it runs after the op, as all handlers of Python did.
#include <csignal>

#include <atomic>

#include "core/background/interrupt.h"
#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

using Handler = void (*)(int);

std::atomic<bool> pressed{false};  // perhaps Python has raised it since
std::atomic<Handler> of_python{nullptr};
unsigned long main_thread = 0;

extern "C" void note_interrupt(int number) {
  pressed.store(true, std::memory_order_relaxed);
  of_python.load(std::memory_order_relaxed)(number);
}

// Stands before a handler that may want the op to go on. By it one sees that the handler is still the same.
extern "C" void pass_interrupt(int number) { of_python.load(std::memory_order_relaxed)(number); }

struct sigaction current_action() {
  struct sigaction action {};
  sigaction(SIGINT, nullptr, &action);
  return action;
}

bool is_ours(const struct sigaction& action) {
  return action.sa_handler == note_interrupt || action.sa_handler == pass_interrupt;
}

// True if KeyboardInterrupt is what SIGINT means in Python.
bool raises_keyboard_interrupt() {
  const nb::module_ signals = nb::module_::import_("signal");
  return signals.attr("getsignal")(SIGINT).is(signals.attr("default_int_handler"));
}

// Puts our handler before Python's, if that one is in force: signal.signal has put it there since we looked last.
void watch() {
  struct sigaction action = current_action();
  if (is_ours(action) || action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) return;
  if ((action.sa_flags & SA_SIGINFO) != 0) return;
  const Handler known = of_python.load();
  if (known != nullptr && known != action.sa_handler) return;  // another library's, which may call ours
  of_python.store(action.sa_handler);
  action.sa_flags |= SA_ONSTACK;
  action.sa_handler = raises_keyboard_interrupt() ? note_interrupt : pass_interrupt;
  sigaction(SIGINT, &action, nullptr);
}

// True if Python has noted a SIGINT that it has not raised. It stays noted.
bool is_pending() {
  if (current_action().sa_handler != note_interrupt || PyOS_InterruptOccurred() == 0) return false;
  PyErr_SetInterrupt();
  return true;
}

bool interrupted(bool thorough) {
  if (!thorough && !pressed.load(std::memory_order_relaxed)) return false;
  if (PyThread_get_thread_ident() != main_thread || Py_IsInitialized() == 0) return false;
  if (!pressed.load(std::memory_order_relaxed) && is_ours(current_action())) return false;
  const PyGILState_STATE state = PyGILState_Ensure();
  bool pending = false;
  try {
    watch();
    pending = is_pending();
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("tenon: the handler of SIGINT");
  }
  pressed.store(pending, std::memory_order_relaxed);
  PyGILState_Release(state);
  return pending;
}

// Gives the calling thread a stack for signal handlers, if it has none. Python's handlers run on it, too. Kernels of
// oneDNN 2.6 that copy a strided matrix keep data below their stack pointer, where a handler on the same stack would
// write: the process then dies of a corrupted heap.
void give_signal_stack() {
  constexpr size_t size = 256 * 1024;
  stack_t now{};
  if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
  static char* const stack = new char[size];  // for the life of the process
  now.ss_sp = stack;
  now.ss_size = size;
  now.ss_flags = 0;
  sigaltstack(&now, nullptr);
}

}  // namespace

void add_interrupt() {
  main_thread = nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  if (PyThread_get_thread_ident() == main_thread) give_signal_stack();
  watch();
  set_interrupt_check(&interrupted);
}

}  // namespace tenon::python
