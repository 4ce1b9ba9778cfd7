#include "tools/bnns/explain/explain_command.h"

#include <bnns/bnns.h>
#include <bnns/bnns_extensions.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "tools/bnns/data/idx.h"
#include "tools/bnns/explain/layers.h"
#include "tools/bnns/options.h"
#include "tools/bnns/terminal.h"

namespace bnns::tool {
namespace {

constexpr std::size_t kMostBytes = 1 << 20, kMostThreads = 256;
constexpr const char* kPasses[] = {"forward", "input gradient", "weights gradient"};  // in the order of BNNSExtPass

const Layer& layer_of(const std::string& name) {
  return *std::find_if(layers().begin(), layers().end(), [&](const Layer& each) { return name == each.name; });
}

std::string contents(const std::string& file) {
  const bool is_stdin = file == "-";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened(is_stdin ? nullptr : std::fopen(file.c_str(), "rb"),
                                                               [](std::FILE* f) { return f ? std::fclose(f) : 0; });
  std::FILE* const from = is_stdin ? stdin : opened.get();
  if (from == nullptr) throw DataError(std::strerror(errno));
  std::string text;
  char piece[4096];
  for (std::size_t read = 1; read != 0 && text.size() <= kMostBytes; text.append(piece, read)) {
    read = std::fread(piece, 1, sizeof piece, from);
  }
  if (std::ferror(from) != 0) throw DataError(std::strerror(errno));
  if (text.size() > kMostBytes) throw DataError("more than 1 MB, expected the description of one layer");
  return text;
}

// A description, checked but for its parameters.
struct Description {
  const Layer* layer = nullptr;
  std::string pass = "all";
  std::size_t batch = 1, threads = 0;
  Json parameters = Json::object();
};

std::string text_of(const Json& json, const char* key) {
  if (!json.is_string()) throw DataError(std::string(key) + " is no text");
  return json.get<std::string>();
}

Description read(const std::string& text) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& error) {  // a parse error, or a number that is too large
    const std::string what = error.what();  // "[json.exception...] parse error at line 1, column 2: ..."
    throw DataError(what.substr(what.find("] ") + 2, 200));
  }
  if (!json.is_object()) throw DataError("no JSON object");
  Zeros none;
  Description d;
  for (const auto& [key, value] : json.items()) {
    check_word(key, {"layer", "batch", "pass", "threads", "parameters"}, "the description", "a key here");
    if (key == "layer") {
      const std::string name = text_of(value, "layer");
      check_word(name, layer_names(), "layer", "a layer that is explained");
      d.layer = &layer_of(name);
    }
    if (key == "pass") {
      d.pass = text_of(value, "pass");
      check_word(d.pass, {"all", kPasses[0], kPasses[1], kPasses[2]}, "pass", "a pass");
    }
    if (key == "parameters") d.parameters = value;
  }
  if (d.layer == nullptr) throw DataError("layer is missing");
  Json numbers = Json::object();
  for (const char* key : {"batch", "threads"}) {
    if (json.contains(key)) numbers[key] = json[key];
  }
  Fields(none).add("batch", d.batch).add("threads", d.threads).read(numbers, "");
  if (d.threads > kMostThreads) throw DataError("threads is more than " + std::to_string(kMostThreads));
  return d;
}

// The bytes that the filter holds now, by its own allocator.
std::size_t bytes_held = 0;
constexpr std::size_t kHead = 64;  // in front of each allocation: its size; the library asks for no larger alignment

int allocate(void** memory, std::size_t alignment, std::size_t size) {
  void* base = nullptr;
  const int failed = alignment > kHead ? EINVAL : posix_memalign(&base, kHead, size + kHead);
  if (failed != 0) return failed;
  *static_cast<std::size_t*>(base) = size;
  bytes_held += size;
  *memory = static_cast<char*>(base) + kHead;
  return 0;
}

void release(void* memory) {
  if (memory == nullptr) return;
  char* const base = static_cast<char*>(memory) - kHead;
  bytes_held -= *reinterpret_cast<std::size_t*>(base);
  std::free(base);
}

// What the library says while the layer is made.
struct Log {
  std::string problem;
  std::vector<std::string> notes;
  static void hear(BNNSExtLogLevel level, const char* message, void* user) {
    Log& log = *static_cast<Log*>(user);
    const std::string line = message;
    if (level == BNNSExtLogNote) log.notes.push_back(line);
    if (level != BNNSExtLogVerbose || line.rfind("create,", 0) != 0) return;
    const std::size_t from = std::strlen("create,");
    log.problem = line.substr(from, line.rfind(",batch ") - from);
  }
};

// The answer, as `--json` prints it.
Json explain(const Description& d) {
  Zeros zeros;
  Log log;
  BNNSFilterParameters options{};
  options.flags = BNNSFlagsUseClientPtr;  // no copy of weights, which may be large
  options.n_threads = d.threads;
  options.alloc_memory = allocate, options.free_memory = release;
  setenv("BNNS_VERBOSE", "all", 1);
  BNNSExtSetLogCallback(Log::hear, &log);
  BNNSExtClearLastError();
  const std::unique_ptr<void, void (*)(void*)> filter(d.layer->create(d.parameters, zeros, options), BNNSFilterDestroy);
  const std::string reason = BNNSExtLastError();
  Json answer;
  answer["layer"] = d.layer->name;
  answer["accepted"] = filter != nullptr;
  if (filter == nullptr) {
    answer["reason"] = reason;
  } else {
    answer["problem"] = log.problem, answer["batch"] = d.batch;
    answer["isa"] = BNNSExtGetISA();
    answer["threads"] = d.threads != 0 ? d.threads : BNNSExtGetNumThreads();
    Json& implementations = answer["implementations"] = Json::object();
    for (const BNNSExtPass pass : d.layer->passes) {
      if (d.pass != "all" && d.pass != kPasses[pass]) continue;
      implementations[kPasses[pass]] = BNNSExtImplementation(filter.get(), pass, d.batch);
    }
    if (implementations.empty()) throw DataError("pass: " + d.pass + " is not a pass of " + d.layer->name);
    answer["layer_bytes"] = bytes_held;
    if (d.layer->workspace != nullptr) answer["workspace_bytes"] = d.layer->workspace(d.parameters, zeros, options);
    answer["notes"] = log.notes;
  }
  BNNSExtSetLogCallback(nullptr, nullptr);
  return answer;
}

void print(const Json& answer) {
  const std::size_t columns = terminal_columns(stdout);
  const auto line = [&](const std::string& name, const std::string& text) {
    const std::string left = name + std::string(name.size() < 18 ? 18 - name.size() : 1, ' ');
    put(stdout, wrapped(left + text, columns, 18) + "\n");
  };
  if (!answer["accepted"].get<bool>()) return line("refused", answer["reason"].get<std::string>());
  line("accepted", answer["problem"].get<std::string>() + ", batch " + answer["batch"].dump());
  for (const auto& [pass, name] : answer["implementations"].items()) line(pass, name.get<std::string>());
  line("instruction set", answer["isa"].get<std::string>());
  line("threads", "at most " + answer["threads"].dump());
  line("memory", answer["layer_bytes"].dump() + " bytes that the layer keeps, weights not counted");
  if (answer.contains("workspace_bytes")) line("workspace", answer["workspace_bytes"].dump() + " bytes for one call");
  for (const Json& note : answer["notes"]) line("note", note.get<std::string>());
}

}  // namespace

int run_explain(const ExplainCommand& command) {
  if (!command.example.empty()) {
    try {
      check_word(command.example, layer_names(), "--example", "a layer that is explained");
    } catch (const DataError& error) {
      throw UsageError(error.what());
    }
    put(stdout, layer_of(command.example).example);
    return 0;
  }
  Json answer;
  try {
    answer = explain(read(contents(command.file)));
  } catch (const DataError& error) {
    throw DataError(printable((command.file == "-" ? "stdin" : command.file) + ": " + error.what()));  // it quotes keys
  }
  if (command.json) {
    put(stdout, answer.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    print(answer);
  }
  return answer["accepted"].get<bool>() ? 0 : 1;
}

}  // namespace bnns::tool
