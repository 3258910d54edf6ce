/* add_table.cu - a row of a table onto each row. */
#include "kernels/cuda/row.cuh"

static __global__ void __launch_bounds__(ROW_THREADS)
    add_table_kernel(struct tec_add_table_args a, bool wide)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.x, c = quad_column(), n = a.cols - c;
    if (r >= live_count(a.rows, a.max_rows) || n <= 0)
        return;
    int row = a.row ? a.row[r] : r % a.period;
    row = row >= 0 && row < a.period ? row : 0;
    float *y = a.y + (size_t)r * (size_t)a.ldy + c;
    struct quad v = quad_load(y, n, wide);
    struct quad add = quad_load(a.table + (size_t)row * (size_t)a.ldt + c, n, wide);
    TEC_UNROLL
    for (int i = 0; i < QUAD; i++)
        v.v[i] += add.v[i];
    quad_store(y, v, n, wide);
}

void tec_cuda_add_table(const struct tec_add_table_args *a, struct tec_cuda_launch *launch)
{
    bool wide = floats_aligned(a->y, a->ldy) && floats_aligned(a->table, a->ldt);
    tec_cuda_start(launch, add_table_kernel, quad_grid(a->max_rows, a->cols), dim3(ROW_THREADS), 0,
                   *a, wide);
}
