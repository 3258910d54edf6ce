/* Names of kernels, and the files that they are in, kept for as long as the process lives. */
#include "runtime.h"
#include "tests/cuda_emulator/machine.h"

#include <ctype.h>
#include <emulated_start.h>
#include <map>
#include <mutex>
#include <string.h>
#include <string>
#include <utility>

namespace cuda_emulator
{
/* By text and file: what is looked up at every start has the same two addresses each time. */
struct kernel_names {
    std::mutex turn;
    std::map<std::pair<const char *, const char *>, std::string> by_call;
    std::map<const char *, const char *> files; /* by the name's address */
    std::map<std::string, std::string> functions;
};

static kernel_names &names()
{
    static kernel_names *kept = new kernel_names;
    return *kept;
}

static std::string second_argument(const char *call)
{
    const char *from = strchr(call, ',');
    if (!from)
        return call;
    from += strspn(from, ", ");
    int depth = 0;
    const char *to = from;
    for (; *to && (*to != ',' || depth); to++)
        depth += (*to == '<' || *to == '(') - (*to == '>' || *to == ')');
    return std::string(from, (size_t)(to - from));
}

const char *kernel_of(const char *call, const char *file)
{
    kernel_names &all = names();
    std::lock_guard<std::mutex> guard(all.turn);
    auto found = all.by_call.find({call, file});
    if (found == all.by_call.end()) {
        found = all.by_call.emplace(std::make_pair(call, file), second_argument(call)).first;
        all.files[found->second.c_str()] = file;
    }
    return found->second.c_str();
}

static bool of_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The first word that ends in _kernel, as all of this tree's do: a call may choose between two. */
static std::string function_in(const std::string &name)
{
    static const std::string last = "_kernel";
    size_t to = 0;
    for (size_t from = 0; from < name.size(); from = to + 1) {
        for (to = from; to < name.size() && of_word(name[to]);)
            to++;
        size_t n = to - from;
        if (n > last.size() && name.compare(to - last.size(), last.size(), last) == 0)
            return name.substr(from, n);
    }
    return name;
}

const char *function_of(const char *name)
{
    kernel_names &all = names();
    std::lock_guard<std::mutex> guard(all.turn);
    auto found = all.functions.find(name);
    if (found == all.functions.end())
        found = all.functions.emplace(name, function_in(name)).first;
    return found->second.c_str();
}

static thread_local const char *name_of_start = "a kernel";

void starts(const char *name)
{
    name_of_start = name;
}

const char *started()
{
    return name_of_start;
}

const char *file_of_kernel(const char *name)
{
    kernel_names &all = names();
    std::lock_guard<std::mutex> guard(all.turn);
    auto found = all.files.find(name);
    return found == all.files.end() ? NULL : found->second;
}
} // namespace cuda_emulator
