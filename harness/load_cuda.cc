#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <cctype>
#include <filesystem>

#include "harness/tensors.h"

namespace attest {
namespace {

/// Linux shows each GPU as /dev/nvidia0, /dev/nvidia1, …; WSL shows /dev/dxg. A container may hold any one of them.
bool gpu_node_exists() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename();
    if (name == "dxg") return true;
    if (name.starts_with("nvidia") && name.size() > 6 && std::isdigit(static_cast<unsigned char>(name[6])) != 0) return true;
  }
  return false;
}

/// Asks the driver, which is never linked.
std::optional<std::string> driver_refuses() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (driver == nullptr) return fmt::format("the NVIDIA driver is not usable: {}", dlerror());
  using Init = int (*)(unsigned);
  using Count = int (*)(int*);
  auto init = reinterpret_cast<Init>(dlsym(driver, "cuInit"));
  auto count = reinterpret_cast<Count>(dlsym(driver, "cuDeviceGetCount"));
  if (init == nullptr || count == nullptr) return "libcuda.so.1 lacks cuInit";
  if (const int status = init(0); status != 0) return fmt::format("the NVIDIA driver does not start (cuInit gave {})", status);
  int devices = 0;
  if (count(&devices) != 0 || devices == 0) return "the NVIDIA driver shows no GPU";
  return std::nullopt;
}

/// The folder of the libtorch_cpu.so that this process uses.
std::string torch_folder() {
  std::string folder;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        const std::filesystem::path path = info->dlpi_name;
        if (path.filename() != "libtorch_cpu.so") return 0;
        *static_cast<std::string*>(out) = path.parent_path();
        return 1;
      },
      &folder);
  return folder;
}

std::optional<std::string> try_load() {
  if (!gpu_node_exists()) return "this machine has no NVIDIA GPU";
  if (auto reason = driver_refuses()) return reason;
  const std::string beside = torch_folder() + "/libtorch_cuda.so";
  if (dlopen(beside.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return std::nullopt;
  const std::string first = dlerror();
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr) return std::nullopt;
  return fmt::format("there is a GPU, but libtorch's CUDA part does not load: {}", first);
}

}  // namespace

std::optional<std::string> load_cuda() {
  static const std::optional<std::string> reason = try_load();
  return reason;
}

}  // namespace attest
