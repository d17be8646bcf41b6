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

#include "harness/error.h"

namespace attest {
namespace bp = boost::process;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr milliseconds kStartUpTime{180000};  // loading libtorch and its CUDA part from a cold disk

/// A file descriptor that no other child inherits. Above 9, so that binding it to 3 or 4 in the child is a real copy.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 10)) {
    if (fd >= 0) close(fd);
  }
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

std::pair<Descriptor, Descriptor> make_pipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) throw Error(fmt::format("cannot make a pipe to a worker: {}", strerror(errno)));
  return {Descriptor(fds[0]), Descriptor(fds[1])};
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

class DiedIdle : public Error {
 public:
  using Error::Error;
};

std::string how_it_ended(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("the process ended with exit code {}", WEXITSTATUS(status));
  const int sig = WTERMSIG(status);
  return fmt::format("the process died of signal {} ({}){}", sig, strsignal(sig),
                     sig == SIGKILL ? "; the machine may have run out of memory" : "");
}

}  // namespace

struct WorkerProcess::Impl {
  enum class Wait : uint8_t { kLine, kTimedOut, kGone };

  explicit Impl(WorkerCommand c) : command(std::move(c)) {}
  ~Impl() { end(); }

  void start();
  /// Kills the process if it still runs, and all that it started; its wait status.
  int end();
  void send(const Job& job);
  Wait read_line(std::string& line, steady_clock::time_point deadline);
  std::string last_words() const { return tail_of(command.log, log_start); }

  WorkerCommand command;
  bp::child child;
  Descriptor jobs, events;
  std::string buffer;
  size_t log_start = 0;
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

int WorkerProcess::Impl::end() {
  jobs.reset();
  events.reset();
  if (!child.valid()) return 0;
  std::error_code ignored;
  kill(-child.id(), SIGKILL);  // with what a kernel forked: a worker leads a process group of its own
  if (child.running(ignored)) child.terminate(ignored);
  child.wait(ignored);
  const int status = child.native_exit_code();
  child = bp::child();
  return status;
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

WorkerProcess::Impl::Wait WorkerProcess::Impl::read_line(std::string& line, steady_clock::time_point deadline) {
  while (true) {
    if (const size_t end = buffer.find('\n'); end != std::string::npos) {
      line = buffer.substr(0, end);
      buffer.erase(0, end + 1);
      return Wait::kLine;
    }
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
    pollfd fd{events.get(), POLLIN, 0};
    const int ready = left <= 0 ? 0 : poll(&fd, 1, static_cast<int>(std::min<int64_t>(left, 1 << 30)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return Wait::kTimedOut;
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

JobResult WorkerProcess::work_once(const Job& job, milliseconds timeout) {
  const bool fresh = !impl_->child.valid();
  if (fresh) impl_->start();
  impl_->send(job);
  JobResult result;
  std::optional<Cell> running;
  bool in_oracle = false;
  auto deadline = steady_clock::now() + (fresh ? kStartUpTime : timeout + milliseconds(10000));
  const auto blame = [&](Status status, const std::string& sentence) {
    result.lost = true;
    if (!running && result.verdicts.empty()) throw DiedIdle("a worker failed before it judged anything: " + sentence);
    if (!running) return;  // between two cells, or after the last
    if (in_oracle) status = Status::kHarnessError;
    result.verdicts.push_back({*running, {status, (in_oracle ? "in the oracle: " : "") + sentence, {}}});
  };
  for (std::string line; true;) {
    switch (impl_->read_line(line, deadline)) {
      case Impl::Wait::kTimedOut:
        impl_->end();
        blame(Status::kTimedOut, fmt::format("no answer within {:g} s", timeout.count() / 1000.0));
        return result;
      case Impl::Wait::kGone: {
        const std::string words = impl_->last_words();
        const int status = impl_->end();
        blame(Status::kCrashed, how_it_ended(status) + words);
        return result;
      }
      case Impl::Wait::kLine:
        break;
    }
    Event event = decode_event(line);
    deadline = steady_clock::now() + timeout;
    if (event == Event::Kind::kStart) running = event.cell;
    in_oracle = event == Event::Kind::kOracle;
    if (event == Event::Kind::kVerdict) result.verdicts.push_back({event.cell, std::move(event.verdict)}), running.reset();
    if (event == Event::Kind::kDone || event == Event::Kind::kPoisoned) {
      result.time = event.time;
      result.lost = event == Event::Kind::kPoisoned;
      if (result.lost) impl_->end();
      return result;
    }
  }
}

}  // namespace attest
