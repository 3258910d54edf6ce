/* Names of kernels, kept for as long as the process lives. */
#include "tests/cuda_emulator/machine.h"

#include <emulated_start.h>
#include <mutex>
#include <set>
#include <string.h>
#include <string>

namespace cuda_emulator
{
const char *kernel_of(const char *call)
{
    static std::mutex turn;
    static std::set<std::string> names;
    const char *from = strchr(call, ',');
    if (!from)
        return call;
    from += strspn(from, ", ");
    int depth = 0;
    const char *to = from;
    for (; *to && (*to != ',' || depth); to++)
        depth += (*to == '<' || *to == '(') - (*to == '>' || *to == ')');
    std::lock_guard<std::mutex> guard(turn);
    return names.emplace(from, (size_t)(to - from)).first->c_str();
}
} // namespace cuda_emulator
