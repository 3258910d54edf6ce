/* dump.c - each graph as a DOT file, as the runtime describes it: to see which kernels the commands
 * of a list became on a device, in which order. */
#include "kernels/cuda/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* NULL: nobody asks for them. */
static const char *folder_wanted(void)
{
    const char *folder = getenv("TECTUM_CUDA_GRAPHS");
    return folder && folder[0] ? folder : NULL;
}

enum tec_status tec_gpu_dump_check(struct tec_error *err)
{
    const char *folder = folder_wanted();
    struct stat about;
    if (!folder ||
        (stat(folder, &about) == 0 && S_ISDIR(about.st_mode) && access(folder, W_OK | X_OK) == 0))
        return TEC_OK;
    return tec_fail(err, TEC_INVALID,
                    "TECTUM_CUDA_GRAPHS in the environment is '%s'; it may be a folder that can be "
                    "written to",
                    folder);
}

cudaError_t tec_gpu_dump(struct tec_gpu *gpu, cudaGraph_t graph)
{
    const char *folder = folder_wanted();
    char path[4096];
    if (!folder)
        return cudaSuccess;
    int n = snprintf(path, sizeof path, "%s/cuda%d_%04d.dot", folder, gpu->index, ++gpu->dumped);
    if (n < 0 || (size_t)n >= sizeof path)
        return cudaErrorInvalidValue;
    return cudaGraphDebugDotPrint(graph, path, cudaGraphDebugDotFlagsVerbose);
}
