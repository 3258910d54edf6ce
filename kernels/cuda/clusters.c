/* clusters.c - which clusters of blocks find room on a device: asked once, when it is opened. */
#include "kernels/cuda/gemm_choice.h"
#include "kernels/cuda/gpu.h"

/* Of the tiles that take clusters: all have as many threads, but not as much shared memory. */
static int most_shared(void)
{
    int one = gemm_tiles[GEMM_groups_32].shared, other = gemm_tiles[GEMM_groups_64].shared;
    return one > other ? one : other;
}

/* How large they may be is the device's, or that of the part of it that this process has: so each
 * size is asked for. */
static bool finds_room(const void *kernel, unsigned blocks)
{
    cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeClusterDimension};
    cudaLaunchConfig_t config = {.gridDim = {1, 1, blocks},
                                 .blockDim = {(unsigned)gemm_tiles[GEMM_groups_64].threads, 1, 1},
                                 .dynamicSmemBytes = (size_t)most_shared(),
                                 .attrs = &attribute,
                                 .numAttrs = 1};
    int held = 0;
    attribute.val.clusterDim.x = attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = blocks;
    cudaError_t error = cudaOccupancyMaxActiveClusters(&held, kernel, &config);
    return error == cudaSuccess && held > 0;
}

unsigned tec_gpu_clusters(int capability)
{
    unsigned sizes = 0;
    if (!tec_cuda_groups(capability) || tec_gpu_switched("TECTUM_CUDA_CLUSTERS", "0"))
        return 0;
    const void *kernel = tec_cuda_cluster_kernel();
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most_shared());
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    for (unsigned n = SHARED_SPLITS; error == cudaSuccess && n <= TEC_CUDA_CLUSTER; n++)
        sizes |= (unsigned)finds_room(kernel, n) << n;
    (void)cudaGetLastError(); /* one that the device keeps comes again */
    return sizes;
}
