#include "harness/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/io.hpp>
#include <boost/process/posix.hpp>
#include <csignal>
#include <fstream>
#include <optional>
#include <thread>

#include "harness/error.h"
#include "harness/hearing.h"
#include "harness/printable.h"

namespace attest {
namespace bp = boost::process;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr milliseconds kStartUpTime{180000};  // loading libtorch and its CUDA part from a cold disk
constexpr milliseconds kTimeToDie{2000};       // between closing its pipe and being gone, with a core to unmap
constexpr milliseconds kStopCheck{50};         // between two looks at whether the user wants to stop
constexpr size_t kLongestLine = size_t{1} << 20;

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  int get() const { return fd_; }
  void reset() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

[[noreturn]] void no_pipe(int why) {
  throw Error(fmt::format("cannot make a pipe to a worker: {}; ulimit -n must allow about 10 files for each of --jobs",
                          strerror(why == EINVAL ? EMFILE : why)));  // EINVAL: not even descriptor 10 is allowed
}

/// Its two ends, inherited by no other child; above 9, so that binding one to 3 or 4 in the child is a real copy.
std::pair<Descriptor, Descriptor> make_pipe() {
  int low[2];
  if (pipe2(low, O_CLOEXEC) != 0) no_pipe(errno);
  std::pair ends{Descriptor(fcntl(low[0], F_DUPFD_CLOEXEC, 10)), Descriptor(fcntl(low[1], F_DUPFD_CLOEXEC, 10))};
  const int why = errno;
  for (int fd : low) close(fd);
  if (ends.first.get() < 0 || ends.second.get() < 0) no_pipe(why);
  return ends;
}

/// What a process wrote since `from`, its last 400 bytes, for the verdict's sentence.
std::string tail_of(const std::string& path, size_t from) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const size_t size = file ? static_cast<size_t>(file.tellg()) : 0;
  if (size <= from) return "";
  std::string text(std::min<size_t>(400, size - from), '\0');
  file.seekg(static_cast<std::streamoff>(size - text.size()));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  while (!text.empty() && isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  return text.empty() ? text : "; it wrote: " + text;
}

std::string how_it_ended(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("the process ended with exit code {}", WEXITSTATUS(status));
  const int sig = WTERMSIG(status);
  return fmt::format("the process died of signal {} ({}){}", sig, strsignal(sig),
                     sig == SIGKILL ? "; the machine may have run out of memory" : "");
}

/// Returns when the child `pid` has ended, or after `grace`. Its wait status is left for who reaps it.
void await_end(pid_t pid, milliseconds grace) {
  const auto deadline = steady_clock::now() + grace;
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0 &&
         steady_clock::now() < deadline)
    std::this_thread::sleep_for(milliseconds(1));
}

}  // namespace

struct WorkerProcess::Impl {
  enum class Wait : uint8_t { kLine, kTimedOut, kGone, kGivenUp };

  explicit Impl(WorkerCommand c) : command(std::move(c)) {}
  ~Impl() { end(); }

  void start();
  /// Ends the process, which may first end by itself within `grace`, and all that it started; its wait status.
  int end(milliseconds grace = {});
  void send(const Job& job);
  Wait read_line(std::string& line, steady_clock::time_point deadline);
  /// Waits for what the worker sends; false at `deadline`, or where it is time to give up.
  bool wait_for_event(steady_clock::time_point deadline);
  bool out_of_patience();
  std::string last_words() const { return tail_of(command.log, log_start); }
  /// A line of ours into the log.
  void note(const std::string& line);

  WorkerCommand command;
  bp::child child;
  Descriptor jobs, events;
  std::string buffer;
  size_t log_start = 0;
  std::optional<steady_clock::time_point> give_up_at;  // set when `stop` first said so
};

void WorkerProcess::Impl::start() {
  buffer.clear();
  auto [job_source, job_sink] = make_pipe();
  auto [event_source, event_sink] = make_pipe();
  FILE* log = fopen(command.log.c_str(), "ae");
  if (log == nullptr) throw Error(fmt::format("cannot write the worker log {}: {}", command.log, strerror(errno)));
  fseek(log, 0, SEEK_END);
  log_start = static_cast<size_t>(ftell(log));
  std::error_code failed;
  child = bp::child(bp::exe = command.program, bp::args = command.args, bp::std_in<bp::null, (bp::std_out & bp::std_err)> log,
                    bp::posix::fd.bind(3, job_source.get()), bp::posix::fd.bind(4, event_sink.get()), failed);
  fclose(log);
  if (failed) throw Error(fmt::format("cannot start the worker {}: {}", command.program, failed.message()));
  jobs = std::move(job_sink);
  events = std::move(event_source);
}

int WorkerProcess::Impl::end(milliseconds grace) {
  jobs.reset();
  events.reset();
  if (!child.valid()) return 0;
  const pid_t pid = child.id();
  child.detach();  // reaped here: Boost forgets the status of what it kills
  child = bp::child();
  await_end(pid, grace);
  kill(-pid, SIGKILL);  // with what a kernel forked: a worker leads a process group of its own
  kill(pid, SIGKILL);   // it may not lead one yet
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void WorkerProcess::Impl::note(const std::string& line) {
  std::ofstream file(command.log, std::ios::app);
  file << "attest: " << line << std::endl;
  log_start = static_cast<size_t>(file.tellp());
}

void WorkerProcess::Impl::send(const Job& job) {
  const std::string line = encode(job) + "\n";
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = write(jobs.get(), line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // it is gone: reading says so
    done += static_cast<size_t>(n);
  }
}

bool WorkerProcess::Impl::out_of_patience() {
  if (!give_up_at && command.stop && command.stop()) give_up_at = steady_clock::now() + kPatience;
  return give_up_at && steady_clock::now() >= *give_up_at;
}

bool WorkerProcess::Impl::wait_for_event(steady_clock::time_point deadline) {
  while (!out_of_patience()) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd fd{events.get(), POLLIN, 0};
    const milliseconds longest = command.stop ? kStopCheck : milliseconds(1 << 30);
    const int ready = poll(&fd, 1, static_cast<int>(std::min(left, longest).count()));
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
  }
  return false;
}

WorkerProcess::Impl::Wait WorkerProcess::Impl::read_line(std::string& line, steady_clock::time_point deadline) {
  while (true) {
    if (const size_t end = buffer.find('\n'); end != std::string::npos) {
      line = buffer.substr(0, end);
      buffer.erase(0, end + 1);
      return Wait::kLine;
    }
    if (buffer.size() > kLongestLine) {  // no event: who reads it will say so
      line = std::exchange(buffer, "");
      return Wait::kLine;
    }
    if (!wait_for_event(deadline)) return out_of_patience() ? Wait::kGivenUp : Wait::kTimedOut;
    char chunk[65536];
    const ssize_t n = read(events.get(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Wait::kGone;
    buffer.append(chunk, static_cast<size_t>(n));
  }
}

WorkerProcess::WorkerProcess(WorkerCommand command) : impl_(std::make_unique<Impl>(std::move(command))) {
  signal(SIGPIPE, SIG_IGN);  // a dead worker is a verdict, not our end
}
WorkerProcess::~WorkerProcess() = default;
WorkerProcess::WorkerProcess(WorkerProcess&&) noexcept = default;
WorkerProcess& WorkerProcess::operator=(WorkerProcess&&) noexcept = default;

JobResult WorkerProcess::work(const Job& job, milliseconds timeout) {
  // A process that broke while it cleaned up after the job before is found dead only now: that is no verdict on this one.
  constexpr int kAttempts = 3;
  for (int attempt = 1; attempt < kAttempts; ++attempt) {
    try {
      return work_once(job, timeout);
    } catch (const DiedIdle&) {
    }
  }
  return work_once(job, timeout);
}

JobResult WorkerProcess::work_and_confirm(const Job& job, milliseconds timeout) {
  JobResult result = work(job, timeout);
  if (!result.doubtful || result.given_up) return result;
  const Cell cell = result.verdicts.back().cell;
  Verdict& verdict = result.verdicts.back().verdict;
  JobResult again = work({job.source, {cell}, cell == job.cells.back() ? job.record : ""}, timeout);
  result.given_up = again.given_up;
  if (again.given_up && again.verdicts.empty()) result.verdicts.pop_back();  // nothing has confirmed it
  if (again.verdicts.empty()) return result;
  const Verdict& second = again.verdicts.back().verdict;
  impl_->note(fmt::format("{} × {} on {} was {} ({}); judged again: {} ({})", cell.variant, cell.property, to_string(job.source),
                          name_of(verdict.status), verdict.sentence, name_of(second.status), second.sentence));
  verdict = second;
  result.time += again.time;
  return result;
}

JobResult WorkerProcess::work_once(const Job& job, milliseconds timeout) {
  const bool fresh = !impl_->child.valid();
  if (fresh) impl_->start();
  impl_->send(job);
  Hearing hearing(job);
  auto deadline = steady_clock::now() + (fresh ? kStartUpTime : timeout + milliseconds(10000));
  for (std::string line; !hearing.done(); deadline = steady_clock::now() + timeout) {
    const Impl::Wait wait = impl_->read_line(line, deadline);
    if (wait == Impl::Wait::kLine && hearing.hear(line)) continue;
    if (wait == Impl::Wait::kGivenUp) {
      impl_->end();
      hearing.result().lost = hearing.result().given_up = true;
      break;
    }
    const int status = impl_->end(wait == Impl::Wait::kGone ? kTimeToDie : milliseconds(0));
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (wait == Impl::Wait::kTimedOut)
      hearing.lose(Status::kTimedOut, fmt::format("no answer within {:g} s", timeout.count() / 1000.0), true);
    else if (wait == Impl::Wait::kGone)
      hearing.lose(Status::kCrashed, how_it_ended(status) + impl_->last_words(), killed);
    else
      hearing.lose(Status::kCrashed, "it wrote to the channel of its worker: " + printable(line, 200), false);
    return std::move(hearing.result());
  }
  if (hearing.result().lost) impl_->end();
  return std::move(hearing.result());
}

}  // namespace attest
