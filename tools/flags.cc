#include "tools/flags.h"

#include <filesystem>

#include "harness/printable.h"

namespace attest {

CLI::Validator not_empty() {
  return {[](std::string& text) { return text.empty() ? std::string("an empty text is none") : std::string(); }, "TEXT"};
}

CLI::Validator natural_number() {
  return {[](std::string& text) {
            const bool natural = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
            return natural ? std::string() : "'" + text + "' is no number from 0 on";
          },
          "UINT"};
}

void add_load(CLI::App& app, Selection& selection) {
  app.add_option("--load", selection.load, "shared library with Torch operators or variants of your own")
      ->check(not_empty())
      ->transform([](const std::string& path) { return std::filesystem::absolute(path).lexically_normal().string(); });
}

std::string load_arguments(const Selection& selection) {
  std::string text;
  for (const std::string& library : selection.load) text += (text.empty() ? "--load " : " --load ") + shell_word(library);
  return text;
}

}  // namespace attest
