#include "tools/bench/isolate.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>

#include "harness/error.h"

namespace attest::bench {
namespace {

void write_line(int fd, std::string line) {
  line += '\n';
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = ::write(fd, line.data() + done, line.size() - done);
    if (n <= 0) _exit(1);  // the parent is gone
    done += static_cast<size_t>(n);
  }
}

[[noreturn]] void be_child(int fd, const std::function<void(const Emit&)>& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int code = 0;
  try {
    work([fd](const std::string& line) { write_line(fd, line); });
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    code = 1;
  }
  std::fflush(nullptr);
  _exit(code);
}

void read_lines(int fd, const Emit& on_line) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(fdopen(fd, "r"), fclose);
  char* line = nullptr;
  size_t size = 0;
  for (ssize_t n; (n = getline(&line, &size, file.get())) > 0;)
    if (line[n - 1] == '\n') on_line(std::string(line, static_cast<size_t>(n) - 1));
  std::free(line);
}

std::string how_it_ended(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace

std::string in_child(const std::function<void(const Emit&)>& work, const Emit& on_line) {
  int ends[2];
  if (pipe(ends) != 0) throw Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw Error(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (child == 0) {
    close(ends[0]);
    be_child(ends[1], work);
  }
  close(ends[1]);
  read_lines(ends[0], on_line);
  return how_it_ended(child);
}

}  // namespace attest::bench
