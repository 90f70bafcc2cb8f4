// Interrupts: how the program that embeds Tenon stops a long call of one of its threads, as Ctrl-C does in Python.
//
//   tenon::set_interrupt_check([](bool) { return stop_was_pressed.load(); });
#pragma once

#include <atomic>

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

// True if the calling thread is to stop what it does. Tenon asks it on the thread that called Tenon, often: before each
// launch of a program and a few times a second within a long launch. So it must be short, take no lock that the caller
// of Tenon may hold, and throw nothing. It stays true until the call has thrown Error with Code::cancelled.
// `thorough`: a few times a second, and then it may make system calls.
using InterruptCheck = bool (*)(bool thorough);

// Makes Tenon ask `check`; null: nothing. Threads: any. One for the process: the last one counts.
void set_interrupt_check(InterruptCheck check);

}  // namespace tenon
#pragma GCC visibility pop
