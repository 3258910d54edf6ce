/* graph_names.c - the CUDA graphs of whole pipelines, as the runtime describes them in DOT: their
 * kernels are by name, grid and order those that the commands of `tectum graph --commands` start by
 * kernels/grids.h. Names are read as a device writes them. */
#include "graph/run/engine/engine.h"
#include "kernels/device_kind.h"
#include "kernels/grids.h"
#include "tests/box.h"
#include "tests/cuda/model.h"

static struct tec_heap heap;
static struct box box;

/* A list of lines, one for each node; a body of a loop behind all that is outside. */
struct lines {
    char *text;
    size_t n;
    FILE *out;
};

static void open_lines(struct lines *l)
{
    l->out = open_memstream(&l->text, &l->n);
    REQUIRE(l->out);
}

static void close_lines(struct lines *l)
{
    REQUIRE(fclose(l->out) == 0);
}

static void line(FILE *out, const char *name, const unsigned blocks[3], unsigned threads,
                 size_t shared)
{
    fprintf(out, "%s %u x %u x %u of %u, %zu bytes\n", name, blocks[0], blocks[1], blocks[2],
            threads, shared);
}

/* --- what is told ---------------------------------------------------------------------------- */

static void tell(void *user, const struct tec_grid *g)
{
    line(user, g->name ? g->name : "?", g->blocks, (unsigned)g->threads, g->shared);
}

static void tell_one(FILE *out, const char *name)
{
    static const unsigned one[3] = {1, 1, 1};
    line(out, name, one, 1, 0);
}

/* A mark is a kernel, a loop one in front and one in its body, and one is at the end. */
static void tell_capture(struct lines *l, const struct tec_capture *c)
{
    const struct tec_cuda_facts facts = {
        90, 132, true, TEC_CUDA_PARTIALS, TEC_CUDA_TERMS, TEC_CUDA_SQUARES, TEC_CUDA_CLUSTERS};
    struct lines bodies;
    open_lines(l);
    open_lines(&bodies);
    FILE *out = l->out;
    for (int i = 0; i < c->n;) {
        enum tec_capture_step_kind kind = c->commands[i].kind;
        if (kind != TEC_RUN)
            tell_one(out, kind == TEC_MARK ? "stamp_kernel" : "loop_kernel");
        if (kind == TEC_REPEAT) {
            fputs("CONDITIONAL\n", out);
            fputs("body\n", bodies.out);
        }
        out = kind == TEC_REPEAT ? bodies.out : kind == TEC_REPEAT_END ? l->out : out;
        i += tec_grids_at(c, i, &facts, tell, out);
    }
    tell_one(l->out, "stamp_kernel");
    close_lines(&bodies);
    fputs(bodies.text, l->out);
    free(bodies.text);
    close_lines(l);
}

/* --- what is there --------------------------------------------------------------------------- */

/* Nodes and edges of the graph that is being read. */
struct counted {
    int nodes, edges, next; /* next: of the edges, those from a node to the one behind it */
};

/* "_Z10map_kernelI4GELUEv...": the length, then the function; or the function alone. */
static void read_name(const char *at, char *name, size_t size)
{
    size_t n = strcspn(at, "\\ ");
    char *end = NULL;
    if (strncmp(at, "_Z", 2) == 0) {
        unsigned long length = strtoul(at + 2, &end, 10);
        REQUIRE(end > at + 2 && length <= n);
        at = end;
        n = length;
    }
    REQUIRE(n > 0 && n < size);
    memcpy(name, at, n);
    name[n] = '\0';
}

/* "name\<\<\<grid,block,shared\>\>\>", where grid and block are a number or \{x,y,z\}. */
static void read_kernel(FILE *out, const char *at)
{
    unsigned size[2][3];
    char name[200];
    read_name(at, name, sizeof name);
    at = strstr(at, "\\<\\<\\<");
    REQUIRE(at);
    at += 6;
    for (int i = 0; i < 2; i++) {
        char *end;
        int n = *at == '\\' ? 3 : 1;
        size[i][1] = size[i][2] = 1;
        at += n == 3 ? 2 : 0;
        for (int k = 0; k < n; k++, at = end + 1)
            size[i][k] = (unsigned)strtoul(at, &end, 10);
        at += n == 3 ? 2 : 0;
    }
    line(out, name, size[0], size[1][0] * size[1][1] * size[1][2], strtoul(at, NULL, 10));
}

/* Whether an edge; it leads to a node that was captured later. */
static bool read_edge(const char *text, struct counted *c)
{
    int of, from, to_of, to;
    if (sscanf(text, "\"graph_%d_node_%d\" -> \"graph_%d_node_%d\"", &of, &from, &to_of, &to) != 4)
        return false;
    CHECK_INT(of, ==, to_of);
    CHECK_INT(from, <, to);
    c->edges++;
    c->next += to == from + 1;
    return true;
}

static void read_dump(struct lines *l, const char *path, struct counted *c)
{
    char text[1000];
    int graphs = 0;
    FILE *in = fopen(path, "re");
    *c = (struct counted){0};
    REQUIRE(in);
    open_lines(l);
    while (fgets(text, sizeof text, in)) {
        const char *label = strstr(text, "label=\"{"), *id = strstr(text, "(topoId: ");
        bool kernel = label && strncmp(label + 8, "KERNEL", 6) == 0;
        if (strncmp(text, "subgraph ", 9) == 0 && graphs++ > 0)
            fputs("body\n", l->out);
        c->nodes += label != NULL;
        if (label && !kernel)
            fputs(label + 8, l->out);
        if (!read_edge(text, c) && strncmp(text, "| {ID | ", 8) == 0) {
            REQUIRE(id && strstr(id, ") | "));
            read_kernel(l->out, strstr(id, ") | ") + 4);
        }
    }
    fclose(in);
    close_lines(l);
}

/* --- both ------------------------------------------------------------------------------------ */

static int n_graphs, n_dumped; /* of all pipelines; of the one that is open */

/* The line in which two texts begin to differ. */
static void show_difference(const char *part, const char *told, const char *there)
{
    int n = 1;
    size_t same = 0, begin = 0;
    for (; told[same] && told[same] == there[same]; same++)
        if (told[same] == '\n') {
            n++;
            begin = same + 1;
        }
    fprintf(stderr, "# %s, node %d: the graph has %.*s; told is %.*s\n", part, n,
            (int)strcspn(there + begin, "\n"), there + begin, (int)strcspn(told + begin, "\n"),
            told + begin);
}

static bool has_branch(const struct tec_capture *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->commands[i].branch)
            return true;
    return false;
}

/* Graphs are written in the order in which they are made. Without a branch one is a line; a body is
 * joined to the outside by its node alone. */
static void check_graph(const char *part, const struct tec_capture *c)
{
    struct lines told, there;
    struct counted n;
    char name[64];
    int bodies = 0;
    snprintf(name, sizeof name, "cuda0_%04d.dot", ++n_dumped);
    snprintf(box.path, sizeof box.path, "%s/%s", box.dir, name);
    tell_capture(&told, c);
    read_dump(&there, box.path, &n);
    for (int i = 0; i < c->n; i++)
        bodies += c->commands[i].kind == TEC_REPEAT;
    CHECK_INT(n.nodes, ==, tec_capture_nodes(c));
    if (!has_branch(c)) {
        CHECK_INT(n.edges, ==, n.nodes - 1 - bodies);
        CHECK_INT(n.next, ==, n.edges);
    }
    if (strcmp(told.text, there.text) != 0)
        show_difference(part, told.text, there.text);
    CHECK(strcmp(told.text, there.text) == 0);
    n_graphs++;
    free(told.text);
    free(there.text);
}

/* The commands of a capture are the steps that `graph --commands` prints. */
static void check_commands(const struct tec_plan_part *part)
{
    const struct tec_capture *c = part->capture;
    REQUIRE(tec_capture_commands(c) == part->program.n_steps);
    for (int i = 0; i < c->n; i++) {
        const struct tec_step *step = &part->program.steps[i];
        REQUIRE((c->commands[i].kind == TEC_RUN) == (step->kind == TEC_STEP_CALL));
        if (step->kind == TEC_STEP_CALL)
            CHECK_STR(c->commands[i].label, step->call.label);
    }
}

static void check_plan(const struct tec_plan *plan)
{
    for (int p = 0; p < plan->n_parts; p++) {
        const struct tec_plan_part *part = &plan->parts[p];
        if (part->capture) {
            check_commands(part);
            check_graph(part->name, part->capture);
        }
        for (int s = 0; s < part->n_slices; s++)
            check_graph(part->name, part->slices[s]);
    }
}

static struct tec_pipeline *load(const char *path)
{
    struct tec_diagnostics d;
    struct tec_pipeline *p = NULL;
    const struct tec_load_options o = {.path = path, .root = "pipelines"};
    tec_diagnostics_init(&d, &heap);
    if (tec_pipeline_load(&p, &o, &heap, &d, &err) != TEC_OK)
        fprintf(stderr, "# %s: %s\n", path, err.message);
    tec_diagnostics_finish(&d);
    REQUIRE(p);
    return p;
}

static void check_pipeline(const char *path)
{
    struct tec_pipeline *p = load(path);
    struct tec_engine *e = NULL;
    const struct tec_engine_options o = {.pipeline = p,
                                         .root = TECTUM_SOURCE,
                                         .random = true,
                                         .seed = 1,
                                         .size = "tiny",
                                         .dtype = "bf16",
                                         .forgets = true,
                                         .device = {.kind = "cuda"},
                                         .saturated = true};
    model_clean();
    model_without_bodies();
    n_dumped = 0;
    if (tec_engine_open(&e, &o, &heap, &err) != TEC_OK)
        fprintf(stderr, "# %s: %s\n", path, err.message);
    REQUIRE(e);
    for (int i = 0; i < e->n_chains; i++)
        if (!e->chains[i].joins)
            check_plan(e->chains[i].plan);
    tec_engine_close(e);
    tec_pipeline_free(p);
}

TEST(kernels_of_a_graph_are_those_of_its_commands)
{
    static const char *const files[] = {"pipelines/pi05_droid.lua",
                                        "pipelines/demo_metaworld.lua",
                                        "pipelines/smolvla_so100.lua",
                                        "pipelines/act_aloha.lua",
                                        "pipelines/qwen_planner.lua",
                                        "pipelines/graphs/g01_planner_sees.lua",
                                        "pipelines/graphs/g06_memory_in_controller.lua",
                                        "pipelines/graphs/g07_ring_and_planner.lua",
                                        "pipelines/graphs/g12_planner_ranks.lua",
                                        "pipelines/graphs/g14_pictures_and_memory.lua"};
    box_make(&box);
    setenv("TECTUM_CUDA_GRAPHS", box.dir, 1);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        check_pipeline(files[i]);
    unsetenv("TECTUM_CUDA_GRAPHS");
    box_remove(&box);
    printf("# %d graphs\n", n_graphs);
    CHECK_INT(n_graphs, >, 40);
    CHECK_INT(heap.live, ==, 0);
}

/* Nothing is written unless it is asked for; a file that cannot be written is said. */
TEST(a_graph_that_cannot_be_written_is_one_error)
{
    struct tec_pipeline *p = load("pipelines/demo_metaworld.lua");
    struct tec_engine *e = NULL;
    const struct tec_engine_options o = {.pipeline = p,
                                         .root = TECTUM_SOURCE,
                                         .random = true,
                                         .size = "tiny",
                                         .device = {.kind = "cuda"},
                                         .saturated = true};
    model_clean();
    model_without_bodies();
    REQUIRE(tec_engine_open(&e, &o, &heap, &err) == TEC_OK);
    CHECK_INT(cuda_emulator_calls("cudaGraphDebugDotPrint"), ==, 0);
    tec_engine_close(e);
    box_make(&box);
    setenv("TECTUM_CUDA_GRAPHS", box.dir, 1);
    cuda_emulator_fail("cudaGraphDebugDotPrint", 1, cudaErrorOperatingSystem);
    CHECK_INT(tec_engine_open(&e, &o, &heap, &err), ==, TEC_DEVICE);
    unsetenv("TECTUM_CUDA_GRAPHS");
    box_remove(&box);
    CHECK(strstr(err.message, "writing a graph into the folder of TECTUM_CUDA_GRAPHS: ") != NULL);
    CHECK(strstr(err.message, "(cudaErrorOperatingSystem)") != NULL);
    tec_pipeline_free(p);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
