// SPDX-License-Identifier: MIT
// The profiler's notes: the threads that callbacks report, the walks, the names from metadata, and
// the file that holds the notes. Invariant: a walk is written as names and offsets, never as
// addresses, so that two runs can be compared. Threads: any. Signal-safe: only collect().
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "guest.hpp"

namespace guest {

HRESULT collect(FunctionID function, UINT_PTR ip, COR_PRF_FRAME_INFO, ULONG32 context_size,
                BYTE context[], void *data) {
  auto *walk = static_cast<Walk *>(data);
  if (walk->count == Walk::kMax) {
    walk->dropped++;
    return S_OK;
  }
  Frame &frame = walk->frames[walk->count++];
  frame = {function, ip, context_size, 0, 0};
  if (context != nullptr && context_size >= sizeof(Context)) {
    auto *registers = reinterpret_cast<const Context *>(context);
    frame.sp = registers->*kSp;
    frame.pc = registers->*kIp;
  }
  return S_OK;
}

// ---- Threads ----
void Threads::created(ThreadID id) {
  std::lock_guard<std::mutex> guard(lock_);
  auto thread = std::make_shared<Thread>();
  thread->id = id;
  threads_[id] = thread;
}

void Threads::assigned(ThreadID id, uint32_t tid) {
  std::lock_guard<std::mutex> guard(lock_);
  auto found = threads_.find(id);
  if (found != threads_.end()) found->second->tid = tid;
}

void Threads::named(ThreadID id, const WCHAR *name, ULONG length) {
  std::lock_guard<std::mutex> guard(lock_);
  auto found = threads_.find(id);
  if (found == threads_.end()) return;
  found->second->name.clear();
  for (ULONG i = 0; i < length && name[i] != 0; i++) {
    found->second->name += name[i] < 128 ? static_cast<char>(name[i]) : '?';
  }
}

void Threads::destroyed(ThreadID id) {
  std::shared_ptr<Thread> thread;
  {
    std::lock_guard<std::mutex> guard(lock_);
    auto found = threads_.find(id);
    if (found == threads_.end()) return;
    thread = found->second;
  }
  std::lock_guard<std::mutex> until_walked(thread->walked);
  thread->destroyed = true;
}

std::vector<std::shared_ptr<Thread>> Threads::alive() {
  std::lock_guard<std::mutex> guard(lock_);
  std::vector<std::shared_ptr<Thread>> out;
  for (auto &entry : threads_) {
    if (!entry.second->destroyed && entry.second->tid != 0) out.push_back(entry.second);
  }
  return out;
}

std::string Threads::name_of(ThreadID id) {
  std::lock_guard<std::mutex> guard(lock_);
  auto found = threads_.find(id);
  return found == threads_.end() || found->second->name.empty() ? "(unnamed)" : found->second->name;
}

std::string Threads::name_of_tid(uint32_t tid) {
  std::lock_guard<std::mutex> guard(lock_);
  for (auto &entry : threads_) {
    const Thread &thread = *entry.second;
    if (thread.tid == tid && !thread.name.empty()) return thread.name;
  }
  return "(unnamed)";
}

// ---- Names ----
static std::string narrow(const WCHAR *wide) {
  std::string out;
  for (; *wide != 0; wide++) out += *wide < 128 ? static_cast<char>(*wide) : '?';
  return out;
}

static std::string type_name(IMetaDataImport *import, mdTypeDef type) {
  WCHAR wide[512] = {};
  DWORD attributes = 0;
  mdToken extends = 0;
  ULONG length = 0;
  if (FAILED(import->GetTypeDefProps(type, wide, 512, &length, &attributes, &extends))) return "?";
  mdTypeDef outer = 0;
  bool nested = (attributes & 7) >= 2 && SUCCEEDED(import->GetNestedClassProps(type, &outer));
  return (nested ? type_name(import, outer) + "/" : "") + narrow(wide);
}

static std::string name_by_metadata(FunctionID function) {
  ClassID owner;
  ModuleID module;
  mdToken token;
  HRESULT hr = info->GetFunctionInfo(function, &owner, &module, &token);
  IMetaDataImport *import = nullptr;
  if (SUCCEEDED(hr)) {
    hr = info->GetModuleMetaData(module, ofRead, IID_IMetaDataImport,
                                 reinterpret_cast<void **>(&import));
  }
  if (FAILED(hr) || import == nullptr) return "(no metadata)";
  WCHAR wide[512] = {};
  mdTypeDef type = 0;
  ULONG length = 0;
  hr = import->GetMethodProps(token, &type, wide, 512, &length, nullptr, nullptr, nullptr, nullptr,
                              nullptr);
  std::string name = FAILED(hr) ? "(no name)" : type_name(import, type) + "." + narrow(wide);
  import->Release();
  return name;
}

std::string function_name(FunctionID function) {
  static std::mutex lock;
  static std::map<FunctionID, std::string> cache;
  if (function == 0) return "[native]";
  std::lock_guard<std::mutex> guard(lock);
  auto found = cache.find(function);
  if (found == cache.end()) found = cache.emplace(function, name_by_metadata(function)).first;
  return found->second;
}

// The offset of an ip in its method, which is the same in two runs.
static std::string offset_of(const Frame &frame) {
  COR_PRF_CODE_INFO code[8];
  ULONG32 count = 0;
  HRESULT hr = info->GetCodeInfo2(frame.function, 8, &count, code);
  for (ULONG32 i = 0; SUCCEEDED(hr) && i < count && i < 8; i++) {
    if (frame.ip - code[i].startAddress > code[i].size) continue;
    char text[32];
    snprintf(text, sizeof(text), "+%zx", static_cast<size_t>(frame.ip - code[i].startAddress));
    return text;
  }
  return "+?";
}

// ---- HRESULT counts ----
void Answers::add(HRESULT hr) {
  for (One &one : all_) {
    HRESULT empty = kEmpty;
    if (one.hr != hr && !one.hr.compare_exchange_strong(empty, hr) && empty != hr) continue;
    one.count++;
    return;
  }
}

long Answers::count(HRESULT hr) const {
  long sum = 0;
  for (const One &one : all_)
    if (one.hr == hr) sum += one.count;
  return sum;
}

void Answers::tell(const char *what) {
  std::map<HRESULT, long> sorted;
  for (const One &one : all_) sorted[one.hr] += one.count;
  sorted.erase(kEmpty);
  for (const auto &one : sorted) {
    notes.say("%s: 0x%08x, %ld times", what, static_cast<unsigned>(one.first), one.second);
  }
}

// ---- The file ----
std::string Notes::text_of(const Walk &walk) {
  char head[256];
  std::string who = walk.thread != 0 ? threads.name_of(walk.thread) : threads.name_of_tid(walk.tid);
  snprintf(head, sizeof(head), "%s\t%s\t0x%08x\t", who.c_str(),
           walk.flags == COR_PRF_SNAPSHOT_DEFAULT ? "DEFAULT" : "REGISTERS",
           static_cast<unsigned>(walk.hr));
  std::string text = head;
  for (unsigned i = 0; i < walk.count; i++) {
    const Frame &frame = walk.frames[i];
    if (i > 0) text += "|";
    text += function_name(frame.function);
    if (frame.function != 0) text += offset_of(frame);
    if (frame.context_size == 0) continue;
    // Between two frames whose stack pointers are known, the distance is a property of the code.
    snprintf(head, sizeof(head), "@%u,%lx%s", frame.context_size,
             i > 0 ? static_cast<unsigned long>(frame.sp - walk.frames[i - 1].sp) : 0,
             frame.pc == frame.ip ? "" : ",rip");
    text += head;
  }
  if (walk.dropped != 0) text += "|(more)";
  return text;
}

void Notes::add(const Walk &walk) {
  std::string text = text_of(walk);
  std::lock_guard<std::mutex> guard(lock_);
  walks_[text]++;
}

void Notes::say(const char *format, ...) {
  char *text = nullptr;
  va_list arguments;
  va_start(arguments, format);
  int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (length < 0) abort();
  std::lock_guard<std::mutex> guard(lock_);
  lines_.push_back(text);
  free(text);
}

void Notes::write() {
  const char *path = getenv("GUEST_OUT");
  FILE *file = path != nullptr ? fopen(path, "w") : nullptr;
  if (file == nullptr) {
    fprintf(stderr, "guest: GUEST_OUT cannot be written\n");
    abort();
  }
  std::lock_guard<std::mutex> guard(lock_);
  for (const std::string &line : lines_) fprintf(file, "say\t%s\n", line.c_str());
  for (const auto &entry : walks_) {
    fprintf(file, "walk\t%llu\t%s\n", static_cast<unsigned long long>(entry.second),
            entry.first.c_str());
  }
  fprintf(file, "end\n");
  if (fclose(file) != 0) abort();
}

}  // namespace guest
