/* runtime.cpp - every call of the API: counted, failed on demand, and its error kept. */
#include "runtime.h"

#include <set>
#include <string>
#include <utility>

#include <chrono>
#include <cstdarg>
#include <cstdio>

namespace cuda_emulator::runtime
{

static thread_local cudaError_t last_error = cudaSuccess;

state &the()
{
    static state *s = new state; // lives as long as the process
    return *s;
}

unsigned draw(unsigned below)
{
    unsigned &r = the().random;
    r = r * 1664525U + 1013904223U;
    return below ? (r >> 8) % below : 0;
}

unsigned long long now_ns()
{
    using namespace std::chrono;
    return (unsigned long long)duration_cast<nanoseconds>(steady_clock::now().time_since_epoch())
        .count();
}

void report(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    the().report = text;
    the().count.reports++;
    fprintf(stderr, "# cuda_emulator: %s\n", text);
}

bool kept(cudaError_t error)
{
    switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorExternalDevice:
        return true;
    default:
        return false;
    }
}

/* Where calls of the device stand: of this thread's next one, and of those that failed. */
static thread_local std::pair<const char *, int> site;
static std::set<std::pair<std::string, int>> failed_sites;

bool injected(const char *what, cudaError_t &error)
{
    state &s = the();
    if (s.injections.empty())
        return false;
    auto i = s.injections.find(what);
    if (i == s.injections.end() || --i->second.countdown > 0)
        return false;
    error = i->second.error;
    s.injections.erase(i);
    if (site.first)
        failed_sites.insert(site);
    return true;
}

cudaError_t enter(const char *name, unsigned flags)
{
    state &s = the();
    s.count.calls++;
    s.calls[name]++;
    if (!(flags & ANYWHERE)) {
        if (s.absent != cudaSuccess)
            return s.absent;
        if (s.sticky != cudaSuccess)
            return s.sticky;
    }
    if (flags & UNSAFE) {
        cudaError_t error = capture_guard();
        if (error != cudaSuccess)
            return error;
    }
    cudaError_t error;
    bool fails = injected(name, error);
    site.first = nullptr;
    if (!fails)
        return cudaSuccess;
    if (!kept(error))
        return error;
    if (flags & ASYNC) {
        s.late_error = error;
        return cudaSuccess;
    }
    raise(error);
    return error;
}

cudaError_t leave(cudaError_t error, unsigned flags)
{
    if (error != cudaErrorNotReady || !more_work()) // closing and opening again is what costs
        out_of_reach();
    if (!(flags & ANYWHERE) && the().sticky != cudaSuccess)
        error = the().sticky;
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

} // namespace cuda_emulator::runtime

using namespace cuda_emulator::runtime;

/* Not through api(): these must neither clear nor change the error. */
cudaError_t cudaGetLastError(void)
{
    std::lock_guard<std::mutex> lock(the().mutex);
    the().count.calls++;
    the().calls["cudaGetLastError"]++;
    cudaError_t error = the().sticky != cudaSuccess ? the().sticky : last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    std::lock_guard<std::mutex> lock(the().mutex);
    the().count.calls++;
    the().calls["cudaPeekAtLastError"]++;
    return the().sticky != cudaSuccess ? the().sticky : last_error;
}

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define ERROR(name, value, text) \
    case name:                   \
        return #name;
#include "tests/cuda_emulator/include/cuda_errors.def"
#undef ERROR
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
#define ERROR(name, value, text) \
    case name:                   \
        return text;
#include "tests/cuda_emulator/include/cuda_errors.def"
#undef ERROR
    }
    return "unrecognized error code";
}

void cuda_emulator_site(const char *file, int line)
{
    cuda_emulator::runtime::site = {file, line};
}

static std::string without_folders(const std::string &file)
{
    return file.substr(file.rfind('/') + 1);
}

bool cuda_emulator_failed_at(const char *file, int first, int last)
{
    for (const auto &at : cuda_emulator::runtime::failed_sites)
        if (without_folders(at.first) == without_folders(file) && at.second >= first &&
            at.second <= last)
            return true;
    return false;
}
