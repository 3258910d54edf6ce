/* no_memory.c - any allocation of the program may fail, jansson's and the C library's too: it then
 * ends with the exit code for memory and no half result, or its results are what they always are.
 */
#include "tests/allocations.h"
#include "tests/box.h"
#include "tools/cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { MAX_ARGS = 20, TIMEOUT_S = 60, SAMPLES = 40 };

/* --- the program in a child ------------------------------------------------------------------- */

/* A command line; "OUT" in it becomes a file of the box. */
struct line {
    const char *args[MAX_ARGS];
    bool timed;          /* JSON lines with times, which differ: only what was computed counts */
    const char *closing; /* how standard output ends when it is whole; NULL: a line end */
};

struct ended {
    int state; /* of waitpid */
    char *out, *err, *file;
};

static struct box box;

static char *read_text(const char *name)
{
    box.path[0] = '\0';
    snprintf(box.path, sizeof box.path, "%s/%s", box.dir, name);
    FILE *f = fopen(box.path, "rb");
    char *text = NULL;
    size_t room = 0;
    if (!f)
        return NULL;
    if (getdelim(&text, &room, '\0', f) < 0)
        text = text ? (*text = '\0', text) : strdup("");
    fclose(f);
    return text;
}

static void redirect(const char *name, int fd)
{
    snprintf(box.path, sizeof box.path, "%s/%s", box.dir, name);
    int file = open(box.path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || dup2(file, fd) < 0)
        _exit(99);
    close(file);
}

static void child(const struct line *line, long fail_at, bool for_ever)
{
    static char out[500];
    char *argv[MAX_ARGS + 1] = {(char[]){"tectum"}};
    int argc = 1;
    for (; line->args[argc - 1]; argc++) {
        snprintf(out, sizeof out, "%s/file", box.dir);
        bool here = strcmp(line->args[argc - 1], "OUT") == 0;
        argv[argc] = here ? out : (char *)(uintptr_t)line->args[argc - 1];
    }
    redirect("stdout", 1);
    redirect("stderr", 2);
    alarm(TIMEOUT_S);
    atomic_store(&allocations->calls, 0);
    allocations->for_ever = for_ever;
    allocations->fail_at = fail_at;
    _exit(tec_command_main(argc, argv));
}

/* Given back with release(). */
static struct ended run(const struct line *line, long fail_at, bool for_ever)
{
    struct ended e = {.state = -1};
    snprintf(box.path, sizeof box.path, "%s/file", box.dir);
    unlink(box.path);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        child(line, fail_at, for_ever);
    while (pid > 0 && waitpid(pid, &e.state, 0) < 0 && errno == EINTR)
        continue;
    allocations->fail_at = 0;
    e.out = read_text("stdout");
    e.err = read_text("stderr");
    e.file = read_text("file");
    return e;
}

static void release(struct ended *e)
{
    free(e->out);
    free(e->err);
    free(e->file);
}

/* --- judging ---------------------------------------------------------------------------------- */

/* Frames without their times. */
static json_t *without_times(const char *lines)
{
    json_t *all = json_array();
    for (const char *end; lines && (end = strchr(lines, '\n')); lines = end + 1) {
        json_t *line = json_loadb(lines, (size_t)(end - lines), 0, NULL);
        static const char *const times[] = {"start_us", "end_us", "age_us",
                                            "plan",     "missed", "cause"};
        for (size_t i = 0; line && i < sizeof times / sizeof times[0]; i++)
            json_object_del(line, times[i]);
        json_array_append_new(all, line ? line : json_string("broken"));
    }
    return all;
}

static bool same(const struct line *line, const char *a, const char *b)
{
    if (!a || !b || !line->timed)
        return a == b || (a && b && strcmp(a, b) == 0);
    json_t *x = without_times(a), *y = without_times(b);
    bool equal = json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return equal;
}

/* What was printed before the end came: nothing, or whole lines that the good run has too. */
static bool begins_alike(const struct line *line, const char *part, const char *whole)
{
    size_t n = strlen(part);
    if (n == 0)
        return true;
    if (part[n - 1] != '\n')
        return false;
    return line->timed || strncmp(part, whole, n) == 0;
}

/* Are there files in the box besides those that belong there? */
static bool left_over(void)
{
    char command[300];
    snprintf(command, sizeof command, "ls -A %s | grep -qvxE 'stdout|stderr|file|.*\\.jsonl'",
             box.dir);
    bool found = system(command) == 0;
    snprintf(command, sizeof command, "rm -f %s/.tectum-*", box.dir);
    return system(command) != 0 || found;
}

/* What is wrong with how it ended, or NULL. */
static const char *judge(const struct line *line, const struct ended *good, const struct ended *e)
{
    int code = WIFEXITED(e->state) ? WEXITSTATUS(e->state) : -1;
    if (code < 0 || code == TEC_EXIT_BUG)
        return "it ended by a signal";
    if (left_over())
        return "a temporary file is left";
    if (code == TEC_EXIT_DONE)
        return same(line, good->out, e->out) && same(line, good->file, e->file)
                   ? NULL
                   : "exit 0 with another result";
    if (code != TEC_EXIT_DEVICE)
        return "another exit code than 4";
    if (!e->err || !e->out)
        return "no standard output or error";
    if (!strstr(e->err, "memory") && !strstr(e->err, " bytes")) /* what is needed counts as well */
        return "no word of memory";
    if (e->file && !same(line, good->file, e->file))
        return "a half file";
    return begins_alike(line, e->out, good->out) ? NULL : "half an output";
}

static void sweep(const struct line *line)
{
    struct ended good = run(line, 0, false);
    long calls = allocations->calls, step = calls / SAMPLES + 1, failures = 0, refused = 0;
    CHECK_INT(good.state, ==, 0);
    CHECK_INT(calls, >, 20);
    for (long n = 1; n <= calls; n += n < 10 ? 1 : step) {
        struct ended e = run(line, n, n % 2);
        const char *wrong = judge(line, &good, &e);
        refused += e.state != 0;
        if (wrong && failures++ < 20)
            fprintf(stderr, "# allocation %ld of %ld fails%s: %s: exit %x, %.200s%.200s\n", n,
                    calls, n % 2 ? " and all behind it" : "", wrong, (unsigned)e.state >> 8, e.err,
                    e.out);
        release(&e);
    }
    CHECK_INT(failures, ==, 0);
    CHECK_INT(refused, >, 0);
    release(&good);
}

static void test_line(const struct line *line)
{
    if (!ALLOCATIONS_SEEN)
        SKIP("a sanitizer has taken the allocator over");
    struct allocations *own = allocations;
    struct allocations *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    box_make(&box);
    allocations = shared;
    sweep(line);
    allocations = own;
    munmap(shared, sizeof *shared);
    box_remove(&box);
}

#define DEMO "pipelines/demo_metaworld.lua"
#define SCHEDULE "tests/golden/schedules/oxy_fig3/"

TEST(check_is_right_or_says_no_memory)
{
    test_line(&(struct line){.args = {"check", "--format", "json", DEMO}});
}

TEST(expand_is_whole_or_says_no_memory)
{
    test_line(&(struct line){.args = {"expand", DEMO}});
}

TEST(captures_are_whole_or_say_no_memory)
{
    test_line(&(struct line){.args = {"explain", "captures", DEMO}});
    test_line(&(struct line){.args = {"explain", "captures", DEMO, "--format", "json"}});
}

TEST(inspect_is_whole_or_says_no_memory)
{
    test_line(&(struct line){
        .args = {"inspect", "--list", "--format", "json", "pipelines/checkpoints/metaworld"}});
}

TEST(run_gives_whole_lines_or_says_no_memory)
{
    test_line(&(struct line){
        .args = {"run", DEMO, "--threads", "1", "--format", "json", "--out", "OUT", "--input",
                 "observation/image=@tests/golden/demo/episodes/inputs.safetensors#button.image[0]",
                 "--input",
                 "observation/wrist_image=@tests/golden/demo/episodes/"
                 "inputs.safetensors#button.wrist_image[0]",
                 "--input", "observation/state=[0,0,0,0]", "--input", "prompt=press the button"},
        .timed = true});
}

TEST(simulate_gives_a_whole_trace_or_says_no_memory)
{
    test_line(&(struct line){.args = {"simulate", SCHEDULE "pipeline.lua", "--costs",
                                      SCHEDULE "costs.json", "--scenario", SCHEDULE "scenario.json",
                                      "--policy", "oxygen", "--trace", "OUT", "--format", "json"}});
}

TAP_MAIN
