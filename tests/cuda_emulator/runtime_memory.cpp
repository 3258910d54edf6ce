/* runtime_memory.cpp - device, pinned and managed memory: pages of its own, guarded, never soon
 * used again. */
#include "runtime.h"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define __asan_poison_memory_region(p, n) ((void)(p), (void)(n))
#define __asan_unpoison_memory_region(p, n) ((void)(p), (void)(n))
#endif

namespace cuda_emulator::runtime
{

enum : size_t {
    PAGE = 4096,
    ALIGN = 256,
    ARENA = (size_t)1 << 40,  /* addresses of each of the two arenas */
    FILLED = (size_t)1 << 28, /* memory up to this size starts as 0xff, */
    PIECE = (size_t)1 << 24,  /* from this size on page by page, when it is first touched */
};

/* Addresses are reserved once and dealt out in a circle, so that a stale pointer meets no new
 * memory for a long time. */
struct arena {
    char *base = nullptr, *next = nullptr;

    bool holds(const void *p) const
    {
        return base && (const char *)p >= base && (const char *)p < base + ARENA;
    }
};
static arena device_arena, host_arena;

static char *fit(arena &a, size_t pages)
{
    if (!a.base) {
        void *p =
            mmap(nullptr, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            return nullptr;
        madvise(p, ARENA, MADV_HUGEPAGE); /* fewer pages to open and close at every launch */
        a.base = a.next = (char *)p;
    }
    auto &all = the().allocations;
    for (int round = 0; round < 2; round++, a.next = a.base) {
        char *at = a.next;
        while (at + pages + 2 * PAGE <= a.base + ARENA) {
            auto hit = all.lower_bound(at); // the first that begins at or behind `at`
            if (hit == all.end() || hit->first >= at + pages + 2 * PAGE) {
                a.next = at + pages + PAGE;
                return at + PAGE;
            }
            at = hit->first + hit->second.pages;
        }
    }
    return nullptr;
}

/* A file of PIECE bytes 0xff, -1 where there is none. */
static int filled_file()
{
    static int file = -2;
    if (file != -2)
        return file;
    file = memfd_create("cuda_emulator", MFD_CLOEXEC);
    std::vector<char> bytes(PIECE, (char)0xff);
    if (file >= 0 && write(file, bytes.data(), PIECE) != (ssize_t)PIECE) {
        close(file);
        file = -1;
    }
    return file;
}

/* Large memory is work space of which little is used: its pages are copies of the file's, made when
 * they are written. */
static bool map_filled(char *base, size_t pages)
{
    int file = pages >= PIECE && pages <= FILLED ? filled_file() : -1;
    for (size_t i = 0; file >= 0 && i < pages; i += PIECE) {
        size_t size = pages - i < PIECE ? pages - i : (size_t)PIECE;
        if (mmap(base + i, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                 file, 0) == MAP_FAILED)
            return false;
    }
    return file >= 0;
}

/* Nothing lies here any more; the system's pages are given back. */
static void unmap(char *base, size_t pages)
{
    if (mmap(base, pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) != MAP_FAILED)
        madvise(base, pages, MADV_HUGEPAGE);
}

/* Memory that is out of reach looks to the system like the guard pages around it, and would become
 * one mapping with them, to be cut again at the next launch; a flag that nothing else depends on
 * (whether a page goes into a core file) keeps them apart. */
static void guard(const allocation &a, int flag)
{
    madvise(a.base - PAGE, PAGE, flag);
    if (flag == MADV_DONTDUMP)
        madvise(a.base + a.pages, PAGE, flag);
}

static int reach(const allocation &a)
{
    bool open = a.where != place::device || !the().protect || the().reachable;
    return open ? PROT_READ | PROT_WRITE : PROT_NONE;
}

static void set_reach(bool reachable)
{
    if (the().reachable == reachable)
        return;
    the().reachable = reachable;
    if (!the().protect)
        return;
    for (auto &entry : the().allocations)
        if (entry.second.where == place::device)
            mprotect(entry.second.base, entry.second.pages, reach(entry.second));
}

void reach_device()
{
    set_reach(true);
}

void out_of_reach()
{
    set_reach(false);
}

/* The memory ends where its last page does, as far as its alignment lets it. */
static cudaError_t allocate(void **to, size_t size, place where, unsigned flags)
{
    state &s = the();
    if (!to)
        return cudaErrorInvalidValue;
    *to = nullptr;
    if (size == 0)
        return cudaSuccess;
    bool pinned = where == place::pinned;
    if (size > s.memory || (!pinned && size > s.memory - s.count.device_bytes))
        return cudaErrorMemoryAllocation;
    allocation a;
    a.size = size;
    size_t used = (size + ALIGN - 1) / ALIGN * ALIGN;
    a.pages = (used + PAGE - 1) / PAGE * PAGE;
    a.base = fit(where == place::device ? device_arena : host_arena, a.pages);
    if (!a.base || mprotect(a.base, a.pages, PROT_READ | PROT_WRITE) != 0)
        return cudaErrorMemoryAllocation;
    a.at = a.base + (a.pages - used);
    a.where = where;
    a.flags = flags;
    a.serial = (unsigned long)++s.serial;
    if (!map_filled(a.base, a.pages))
        memset(a.base, 0xff, size <= FILLED ? a.pages : 0);
    __asan_poison_memory_region(a.base, a.pages);
    __asan_unpoison_memory_region(a.at, a.size);
    guard(a, MADV_DONTDUMP);
    mprotect(a.base, a.pages, reach(a));
    s.allocations[a.base] = a;
    s.count.allocations++;
    (pinned ? s.count.pinned_bytes : s.count.device_bytes) += size;
    if (s.count.device_bytes > s.count.device_peak)
        s.count.device_peak = s.count.device_bytes;
    *to = a.at;
    return cudaSuccess;
}

/* What lies between the memory and the ends of its pages must be as it was. */
static void check_edges(const allocation &a)
{
#ifndef __SANITIZE_ADDRESS__
    if (a.size > FILLED)
        return;
    within_reach edges(a.at);
    for (const char *p = a.base; p < a.base + a.pages; p++) {
        if (p == a.at)
            p += a.size;
        if (p < a.base + a.pages && *p != (char)0xff) {
            report("memory of %zu bytes was written at offset %td", a.size, p - a.at);
            return;
        }
    }
#else
    (void)a;
#endif
}

static void release(const allocation &a)
{
    check_edges(a);
    __asan_unpoison_memory_region(a.base, a.pages);
    unmap(a.base, a.pages);
    guard(a, MADV_DODUMP);
    (a.where == place::pinned ? the().count.pinned_bytes : the().count.device_bytes) -= a.size;
    the().count.frees++;
    the().allocations.erase(a.base);
}

const allocation *find_allocation(const void *p)
{
    auto &all = the().allocations;
    auto i = all.upper_bound((char *)(uintptr_t)p);
    if (i == all.begin())
        return nullptr;
    --i;
    const allocation &a = i->second;
    return (const char *)p >= a.at && (const char *)p < a.at + a.size ? &a : nullptr;
}

within_reach::within_reach(const char *at)
{
    const allocation *a = find_allocation(at);
    if (!a || reach(*a) != PROT_NONE)
        return;
    opened = a;
    mprotect(a->base, a->pages, PROT_READ | PROT_WRITE);
}

within_reach::~within_reach()
{
    if (opened)
        mprotect(opened->base, opened->pages, PROT_NONE);
}

cudaError_t find_range(const void *p, size_t size, range &to)
{
    to.at = (char *)(uintptr_t)p;
    to.size = size;
    to.where = place::pageable;
    to.serial = 0;
    if (!p)
        return cudaErrorInvalidValue;
    const allocation *a = find_allocation(p);
    if (!a) {
        if (!device_arena.holds(p) && !host_arena.holds(p))
            return cudaSuccess;
        report("%s memory at %p is freed or was never allocated",
               device_arena.holds(p) ? "device" : "pinned", p);
        return cudaErrorInvalidValue;
    }
    to.where = a->where;
    to.serial = a->serial;
    if (size <= (size_t)(a->at + a->size - to.at))
        return cudaSuccess;
    report("%zu bytes from offset %td of memory of %zu bytes", size, to.at - a->at, a->size);
    return cudaErrorInvalidValue;
}

bool alive(const range &r)
{
    if (r.where == place::pageable)
        return true;
    const allocation *a = find_allocation(r.at);
    return a && a->serial == r.serial;
}

void forget_memory()
{
    while (!the().allocations.empty()) {
        allocation a = the().allocations.begin()->second;
        release(a);
    }
}

static cudaError_t free_memory(void *p, bool host)
{
    if (!p)
        return cudaSuccess;
    const allocation *a = find_allocation(p);
    if (!a || a->at != p || (a->where == place::pinned) != host) {
        report("%p is freed as %s memory, and is none", p, host ? "pinned" : "device");
        return cudaErrorInvalidValue;
    }
    allocation copy = *a;
    cudaError_t error = wait_for_all();
    release(copy);
    return error;
}

} // namespace cuda_emulator::runtime

using namespace cuda_emulator::runtime;

cudaError_t cudaMalloc(void **devPtr, size_t size)
{
    return api(__func__, UNSAFE, [&] { return allocate(devPtr, size, place::device, 0); });
}

cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned flags)
{
    return api(__func__, UNSAFE, [&] {
        if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)
            return cudaErrorInvalidValue;
        return allocate(devPtr, size, place::managed, flags);
    });
}

cudaError_t cudaMallocHost(void **ptr, size_t size)
{
    return api(__func__, UNSAFE, [&] { return allocate(ptr, size, place::pinned, 0); });
}

cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned flags)
{
    return api(__func__, UNSAFE, [&] {
        if (flags & ~7U)
            return cudaErrorInvalidValue;
        return allocate(pHost, size, place::pinned, flags);
    });
}

cudaError_t cudaFree(void *devPtr)
{
    return api(__func__, UNSAFE, [&] { return free_memory(devPtr, false); });
}

cudaError_t cudaFreeHost(void *ptr)
{
    return api(__func__, UNSAFE, [&] { return free_memory(ptr, true); });
}

cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned flags)
{
    return api(__func__, PLAIN, [&] {
        const allocation *a = find_allocation(pHost);
        if (!pDevice || flags != 0 || !a || a->where != place::pinned)
            return cudaErrorInvalidValue;
        *pDevice = pHost;
        return cudaSuccess;
    });
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *to, const void *ptr)
{
    return api(__func__, PLAIN, [&] {
        if (!to)
            return cudaErrorInvalidValue;
        const allocation *a = find_allocation(ptr);
        void *p = (void *)(uintptr_t)ptr;
        *to = {cudaMemoryTypeUnregistered, -2, nullptr, p};
        if (a && a->where == place::pinned)
            *to = {cudaMemoryTypeHost, 0, p, p};
        if (a && a->where == place::managed)
            *to = {cudaMemoryTypeManaged, 0, p, p};
        if (a && a->where == place::device)
            *to = {cudaMemoryTypeDevice, 0, p, nullptr};
        return cudaSuccess;
    });
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    return api(__func__, PLAIN, [&] {
        if (!free || !total)
            return cudaErrorInvalidValue;
        *total = the().memory;
        *free = the().memory - the().count.device_bytes;
        return cudaSuccess;
    });
}
