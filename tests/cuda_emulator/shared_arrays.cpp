/* Where __shared__ arrays and kernels are. The arrays are static variables to the compiler; what
 * tells them from others is the file: the symbols of this program that come from a .cu file and can
 * be written. So a kernel must be static too, and started by the file that it is compiled in. */
#include "tests/cuda_emulator/machine.h"

#include <algorithm>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <map>
#include <string.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATOR_ASAN 1
#endif
#endif
#if defined(EMULATOR_ASAN) || defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define __asan_region_is_poisoned(at, size) NULL
#endif

namespace cuda_emulator
{
enum { UNSET = 0xff };

struct array {
    unsigned char *at;
    size_t size;
    std::string file; /* that was compiled, without folders */
};

static std::vector<array> arrays; /* of the program */
static std::vector<const array *> chosen;
static std::map<uintptr_t, std::string> functions; /* static ones of .cu files: of which */

/* clang counts the red zone behind an array as part of its symbol. */
static void take(uintptr_t at, size_t size, const char *file)
{
    void *zone = __asan_region_is_poisoned((void *)at, size);
    arrays.push_back({(unsigned char *)at, zone ? (uintptr_t)zone - at : size, file});
}

static bool from_kernels(const char *file)
{
    size_t length = strlen(file);
    return length > 3 && strcmp(file + length - 3, ".cu") == 0;
}

/* Local symbols follow the name of the file that they are from. */
static void take_symbols(const unsigned char *image, const ElfW(Shdr) * sections,
                         const ElfW(Shdr) * table, uintptr_t base)
{
    const char *names = (const char *)image + sections[table->sh_link].sh_offset;
    const ElfW(Sym) *symbols = (const ElfW(Sym) *)(image + table->sh_offset);
    bool inside = false;
    const char *file = "";
    for (unsigned i = 0; i < table->sh_info; i++) { /* sh_info: how many are local */
        const ElfW(Sym) *s = &symbols[i];
        if (ELF64_ST_TYPE(s->st_info) == STT_FILE) {
            file = names + s->st_name;
            inside = from_kernels(file);
        }
        if (inside && ELF64_ST_TYPE(s->st_info) == STT_FUNC)
            functions[base + s->st_value] = file;
        if (!inside || ELF64_ST_TYPE(s->st_info) != STT_OBJECT || s->st_shndx >= SHN_LORESERVE)
            continue;
        const ElfW(Shdr) *in = &sections[s->st_shndx];
        if (in->sh_flags & SHF_WRITE &&
            (in->sh_type == SHT_NOBITS || in->sh_type == SHT_PROGBITS) &&
            strncmp(names + s->st_name, "_ZZ", 3) == 0)
            take(base + s->st_value, s->st_size, file);
    }
}

static int base_of_program(struct dl_phdr_info *info, size_t, void *base)
{
    *(uintptr_t *)base = info->dlpi_addr;
    return 1; /* the first one is the program */
}

static void read_program(const unsigned char *image)
{
    uintptr_t base = 0;
    dl_iterate_phdr(base_of_program, &base);
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)image;
    const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(image + header->e_shoff);
    for (unsigned i = 0; i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB)
            take_symbols(image, sections, &sections[i], base);
}

static void find_arrays()
{
    static bool done;
    struct stat status;
    if (done)
        return;
    done = true;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0)
        return;
    size_t size = (size_t)status.st_size;
    void *image = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (image == MAP_FAILED)
        return;
    read_program((const unsigned char *)image);
    munmap(image, size);
}

static std::string without_folders(const char *file)
{
    const char *last = file ? strrchr(file, '/') : NULL;
    return last ? last + 1 : file ? file : "";
}

bool kernel_is_of(const void *function, const char *file)
{
    find_arrays();
    auto found = functions.find((uintptr_t)function);
    return found != functions.end() && found->second == without_folders(file);
}

void shared_arrays_choose(const char *file)
{
    find_arrays();
    std::string wanted = without_folders(file);
    chosen.clear();
    for (const array &a : arrays)
        if (!file || a.file == wanted)
            chosen.push_back(&a);
}

void shared_arrays_unset()
{
    for (const array *a : chosen)
        memset(a->at, UNSET, a->size);
}

/* What is aside is of the same arrays, or nothing yet. */
void shared_arrays_swap(unsigned place)
{
    static std::vector<unsigned char> aside[MAX_CLUSTER];
    size_t size = 0, at = 0;
    for (const array *a : chosen)
        size += a->size;
    aside[place].resize(size);
    for (const array *a : chosen) {
        std::swap_ranges(a->at, a->at + a->size, aside[place].data() + at);
        at += a->size;
    }
}

bool shared_arrays_hold(const void *p, size_t size)
{
    const unsigned char *at = (const unsigned char *)p;
    for (const array *a : chosen)
        if (at >= a->at && at + size <= a->at + a->size)
            return true;
    return false;
}
} // namespace cuda_emulator
