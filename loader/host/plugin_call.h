// PluginCall: which function of which provider the calling thread is in, for those who tell of a process that a plug-in
// ends.
#pragma once

namespace tenon::loader {

// From now on, if a plug-in crashes or ends the process in a call of the loader or the core, a line on stderr names the
// plug-in and the function before: for programs that are their own masters, as the tool is. Signals go their way after
// that.
__attribute__((visibility("default"))) void name_ended_calls();

// While one lives, the thread is in `function` of `provider`; both texts live as long. Calls lie inside of each other
// where a provider calls a service of the host that calls a provider.
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
