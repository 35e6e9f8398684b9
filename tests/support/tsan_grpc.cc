// Tells ThreadSanitizer what it cannot see: the order that the locks of abseil and the completion
// queues of gRPC make between threads, in libraries that are not instrumented. Linked into every
// program of a build with it, in front of the libraries' own functions, which do the work.
//
// Only order that is really there is told: from who gives a lock back to who takes it next, and
// from who starts a batch of operations to what is called back when it is done. So a race in our
// own code stays one.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <cstdlib>

#include <grpc/grpc.h>

#include "absl/synchronization/mutex.h"

namespace {

template <class Function>
Function* Library(const char* symbol) {
  void* const found = dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) std::abort();  // Another version of the library.
  return reinterpret_cast<Function*>(found);
}

using Run = void(grpc_completion_queue_functor*, int);

constexpr char kSuccess[] =
    "_ZN4grpc8internal22CallbackWithSuccessTag9StaticRunEP29grpc_completion_queue_functori";

}  // namespace

// What grpcpp calls back, in the copies of this program.
__attribute__((weak)) Run SuccessRun __asm__(
    "_ZN4grpc8internal22CallbackWithSuccessTag9StaticRunEP29grpc_completion_queue_functori");
__attribute__((weak)) Run StatusRun __asm__(
    "_ZN4grpc8internal21CallbackWithStatusTag9StaticRunEP29grpc_completion_queue_functori");

namespace {

void Success(grpc_completion_queue_functor* tag, int ok) {
  __tsan_acquire(tag);
  SuccessRun(tag, ok);
}
void LibrarySuccess(grpc_completion_queue_functor* tag, int ok) {
  static Run* const run = Library<Run>(kSuccess);
  __tsan_acquire(tag);
  run(tag, ok);
}
void StatusDone(grpc_completion_queue_functor* tag, int ok) {
  __tsan_acquire(tag);
  StatusRun(tag, ok);
}

// `tag` begins with the function that is called back, or it is of another kind and begins with a
// pointer to data.
void CallBackThroughHere(void* tag) {
  static Run* const library_success = Library<Run>(kSuccess);
  auto* const functor = static_cast<grpc_completion_queue_functor*>(tag);
  Run*& run = functor->functor_run;
  if (run == nullptr) return;
  if (run == SuccessRun) {
    run = Success;
  } else if (run == library_success) {
    run = LibrarySuccess;
  } else if (run == StatusRun) {
    run = StatusDone;
  }
}

}  // namespace

extern "C" grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t count,
                                                 void* tag, void* reserved) {
  static auto* const start =
      Library<grpc_call_error(grpc_call*, const grpc_op*, size_t, void*, void*)>(
          "grpc_call_start_batch");
  CallBackThroughHere(tag);
  __tsan_release(tag);
  return start(call, ops, count, tag, reserved);
}

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static auto* const lock = Library<void(Mutex*)>("_ZN4absl7debian35Mutex4LockEv");
  lock(this);
  __tsan_acquire(this);
}
void Mutex::Unlock() {
  static auto* const unlock = Library<void(Mutex*)>("_ZN4absl7debian35Mutex6UnlockEv");
  __tsan_release(this);
  unlock(this);
}
bool Mutex::TryLock() {
  static auto* const lock = Library<bool(Mutex*)>("_ZN4absl7debian35Mutex7TryLockEv");
  const bool taken = lock(this);
  if (taken) __tsan_acquire(this);
  return taken;
}
void Mutex::ReaderLock() {
  static auto* const lock = Library<void(Mutex*)>("_ZN4absl7debian35Mutex10ReaderLockEv");
  lock(this);
  __tsan_acquire(this);
}
void Mutex::ReaderUnlock() {
  static auto* const unlock = Library<void(Mutex*)>("_ZN4absl7debian35Mutex12ReaderUnlockEv");
  __tsan_release(this);
  unlock(this);
}
void CondVar::Wait(Mutex* mutex) {
  static auto* const wait =
      Library<void(CondVar*, Mutex*)>("_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE");
  __tsan_release(mutex);
  wait(this, mutex);
  __tsan_acquire(mutex);
}
bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static auto* const wait = Library<bool(CondVar*, Mutex*, Time)>(
      "_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  __tsan_release(mutex);
  const bool late = wait(this, mutex, deadline);
  __tsan_acquire(mutex);
  return late;
}

ABSL_NAMESPACE_END
}  // namespace absl
