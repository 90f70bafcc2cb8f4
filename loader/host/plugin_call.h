// PluginCall: the provider and function that the calling thread is in, for the message about a plug-in that ended the
// process.
#pragma once

namespace tenon::loader {

// From now on, if a plug-in crashes or ends the process in a call of the loader or the core, a line on stderr names the
// plug-in and the function. The signal is then handled as before. For programs that own their process, such as the
// `tenon` tool.
__attribute__((visibility("default"))) void name_ended_calls();

// While this object lives, the thread is in `function` of `provider`. Both texts must outlive the object. Calls nest if
// a provider calls a service of the host that calls a provider.
class PluginCall {
 public:
  PluginCall(const char* provider, const char* function) : provider_(provider), function_(function), outer_(here) {
    here = this;
  }
  ~PluginCall() { here = outer_; }
  PluginCall(const PluginCall&) = delete;
  PluginCall& operator=(const PluginCall&) = delete;

 private:
  friend void name_ended_calls();
  // Writes "The provider 'x' <what> <number> in <function>." if the thread is in a call. Safe in a signal handler.
  static void tell(const char* what, int number);
  static void on_signal(int signal);
  static void on_exit() { tell("ended the process", 0); }

  __attribute__((tls_model("initial-exec"))) static thread_local constinit const PluginCall* here;

  const char* provider_;
  const char* function_;
  const PluginCall* outer_;
};

}  // namespace tenon::loader
