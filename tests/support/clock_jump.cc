// Preloaded (LD_PRELOAD) into a program under test: its wall clock is off by as many nanoseconds as
// the file $TENON_CLOCK_FILE says (8 bytes, in this machine's order), now and whenever that
// changes. Other clocks stay as they are, as on a machine whose clock is set.
//
// Waits until a moment of the wall clock follow its jumps, too, as those of the kernel do: they are
// cut in slices, and the end of a slice looks to the caller like a wake-up without a reason, which
// he must expect anyway.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kSlice = kSecond / 10;

const volatile std::int64_t* offset = nullptr;

template <class Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

using ClockGettime = int (*)(clockid_t, timespec*);
using Syscall = long (*)(long, ...);
using Timedwait = int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*);
using Clockwait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);

int RealClock(clockid_t id, timespec* t) {
  static const auto next = Next<ClockGettime>("clock_gettime");
  return next(id, t);
}

std::int64_t ToNs(const timespec& t) { return t.tv_sec * kSecond + t.tv_nsec; }
timespec FromNs(std::int64_t ns) {
  if (ns < 0) ns = 0;
  return {.tv_sec = ns / kSecond, .tv_nsec = ns % kSecond};
}
std::int64_t Offset() { return offset == nullptr ? 0 : *offset; }
std::int64_t RealNow() {
  timespec t{};
  RealClock(CLOCK_REALTIME, &t);
  return ToNs(t);
}

// Waits by `wait` until the moment `end` of the jumping clock, or for a slice. `wait` gives true
// when it ended because of the time.
template <class Wait>
bool WaitASlice(const timespec& end, bool& over, const Wait& wait) {
  const std::int64_t real_end = ToNs(end) - Offset();
  const std::int64_t slice_end = RealNow() + kSlice;
  const timespec until = FromNs(real_end < slice_end ? real_end : slice_end);
  const bool timed_out = wait(&until);
  over = timed_out && RealNow() + Offset() >= ToNs(end);
  return timed_out;
}

__attribute__((constructor)) void Map() {
  const char* path = getenv("TENON_CLOCK_FILE");
  if (path == nullptr) return;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void* const page = mmap(nullptr, 8, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (page != MAP_FAILED) offset = static_cast<const std::int64_t*>(page);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t id, timespec* t) noexcept {
  const int result = RealClock(id, t);
  if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
    *t = FromNs(ToNs(*t) + Offset());
  }
  return result;
}

int gettimeofday(timeval* t, void*) noexcept {
  timespec now{};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  *t = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return result;
}

time_t time(time_t* t) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (t != nullptr) *t = now.tv_sec;
  return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex, const timespec* end) {
  static const auto next = Next<Timedwait>("pthread_cond_timedwait");
  // Of glibc: the clock that it was made with.
  if ((cond->__data.__wrefs & 2) != 0) return next(cond, mutex, end);
  int result = 0;
  bool over = false;
  WaitASlice(*end, over, [&](const timespec* until) {
    result = next(cond, mutex, until);
    return result == ETIMEDOUT;
  });
  return result == ETIMEDOUT && !over ? 0 : result;
}

int pthread_cond_clockwait(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* end) {
  static const auto next = Next<Clockwait>("pthread_cond_clockwait");
  if (clock != CLOCK_REALTIME) return next(cond, mutex, clock, end);
  int result = 0;
  bool over = false;
  WaitASlice(*end, over, [&](const timespec* until) {
    result = next(cond, mutex, clock, until);
    return result == ETIMEDOUT;
  });
  return result == ETIMEDOUT && !over ? 0 : result;
}

// Libraries that wait by futexes of their own call it through this.
long syscall(long number, ...) noexcept {
  static const auto next = Next<Syscall>("syscall");
  long a[6];
  va_list list;
  va_start(list, number);
  for (long& one : a) one = va_arg(list, long);
  va_end(list);
  const bool of_wall_clock = number == SYS_futex && (a[1] & FUTEX_CLOCK_REALTIME) != 0 &&
                             (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && a[3] != 0;
  if (!of_wall_clock) return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  long result = 0;
  bool over = false;
  int error = 0;
  WaitASlice(*reinterpret_cast<const timespec*>(a[3]), over, [&](const timespec* until) {
    result = next(number, a[0], a[1], a[2], until, a[4], a[5]);
    error = errno;
    return result == -1 && error == ETIMEDOUT;
  });
  if (result == -1) errno = error == ETIMEDOUT && !over ? EINTR : error;
  return result;
}

}  // extern "C"
