/* run_memory.c - tests of a pipeline's memory through the engine: texts change between frames and
 * the store fails, while answers stay those of full prompts. */
#include "base/clock.h"
#include "tests/planner.h"
#include "tests/told.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* What happens to a kitchen, and how many segments a prompt has behind it. */
static const struct {
    const char *goal, *changes;
    int segments, fresh; /* fresh: of them not kept when the prompt is made */
} story[] = {
    {"put a clean apple in the fridge",
     "{\"put\": {\"apple\": \"the apple is in the fridge and is sliced\\n\", \"cup\": \"the cup is "
     "on "
     "the table and is dirty\\n\", \"fridge\": \"the fridge is in the kitchen\\n\"}}",
     3, 3},
    {"put a clean cup in the fridge", NULL, 3, 0},
    {"where is the cup", "{\"put\": {\"cup\": \"the cup is on the shelf\\n\"}}", 3, 1},
    {"where is the cup now", "{\"put\": {\"cup\": \"the cup is on the shelf\\n\"}}", 3, 0},
    {"wash the knife", "{\"put\": {\"knife\": \"a knife is in the drawer\\n\"}}", 4, 1},
    {"bring a cup", "{\"remove\": [\"cup\", \"spoon\"]}", 3, 0},
    {"bring it again",
     "{\"put\": {\"cup\": \"the cup is dirty again\\n\"}, \"remove\": [\"apple\"]}", 3, 1},
    {"and the knife", NULL, 3, 0},
};
enum { CHAPTERS = sizeof story / sizeof *story };

TEST(answers_are_those_of_full_prompts)
{
    struct open full, keep;
    int segments = 0, fresh = 0, different = 0;
    struct answer before = {0};
    folder_make();
    REQUIRE(open_planner(&full, "", FULL, NULL) == TEC_OK);
    REQUIRE(open_planner(&keep, path, FIRST, DECAY) == TEC_OK);
    int beginning = keep.engine->chains[0].memory->n_beginning * keep.engine->memories[0]->layers;
    for (int i = 0; i < CHAPTERS; i++) {
        struct answer want = ask(&full, story[i].goal, story[i].changes);
        struct answer is = ask(&keep, story[i].goal, story[i].changes);
        CHECK(same(&want, &is));
        different += !same(&is, &before);
        before = is;
        settle(&keep);
        struct tec_memory_counts c = counts(&keep);
        CHECK_INT(c.prompts, ==, i + 1);
        CHECK_INT(c.segments, ==, segments += story[i].segments);
        CHECK_INT(c.missing, ==, fresh += story[i].fresh);
        CHECK_INT(c.rows, ==, c.rows_full - (i + 1) * beginning); /* which never changes */
        CHECK_INT(c.whole + c.failed, ==, 0);
    }
    CHECK(different > CHAPTERS / 2); /* else equal answers say nothing */
    struct tec_memory_counts c = counts(&keep);
    CHECK_INT(c.store.segments, ==, 3);
    CHECK_INT(c.store.puts, ==, 6);
    CHECK_INT(c.store.same, ==, 1);
    CHECK_INT(c.store.removes, ==, 2);
    CHECK(c.remembered_tokens > 0);
    CHECK_INT(lines(0), ==, 0);
    close_planner(&keep);
    close_planner(&full);
    folder_remove();
}

TEST(kept_keys_spare_rows_and_survive_the_program)
{
    struct open o;
    folder_make();
    REQUIRE(open_planner(&o, path, "nodes.recall.select=reuse", NULL) == TEC_OK);
    ask(&o, story[0].goal, story[0].changes);
    settle(&o);
    struct tec_memory_counts one = counts(&o);
    CHECK_INT(one.missing, ==, 3);
    struct answer kept = ask(&o, story[1].goal, NULL);
    struct tec_memory_counts two = counts(&o);
    CHECK_INT(two.missing, ==, 3);
    CHECK(two.rows - one.rows < (two.rows_full - one.rows_full) / 2);
    CHECK(two.prefetch.bytes[TEC_KEPT_RAM] > 0);
    int layers = o.engine->memories[0]->layers;
    bool sends = !tec_device_reads_host(o.engine->device);
    CHECK_INT(two.fed - one.fed, ==, sends ? layers : 0);
    CHECK(two.ahead - one.ahead <= two.fed - one.fed);
    /* what was loaded, the beginning, and what stands behind pieces in one copy with others */
    int64_t sent = two.sent_bytes - one.sent_bytes, loaded = two.prefetch.bytes[TEC_KEPT_RAM];
    CHECK(sends ? sent > loaded : sent == 0);
    close_planner(&o);
    REQUIRE(open_planner(&o, path, "nodes.recall.select=reuse", NULL) == TEC_OK);
    struct answer again = ask(&o, story[1].goal, NULL);
    CHECK(same(&kept, &again));
    CHECK_INT(counts(&o).missing, ==, 0);
    CHECK_INT(counts(&o).remembered_tokens, ==, 0);
    struct tec_memory_counts three = counts(&o);
    CHECK_INT(three.rows, ==, two.rows - one.rows);
    /* From the file, or from RAM where a slow start had time to bring them there. */
    CHECK(three.prefetch.bytes[TEC_KEPT_FILE] + three.prefetch.bytes[TEC_KEPT_RAM] > 0);
    close_planner(&o);
    folder_remove();
}

/* Damage everything behind the first page of the file. */
static void spoil(void)
{
    static const unsigned char zeros[4096];
    struct stat about;
    int file = open(path, O_WRONLY);
    REQUIRE(file >= 0 && fstat(file, &about) == 0);
    for (int64_t at = 4096; at < about.st_size; at += 4096) {
        int64_t n = about.st_size - at < 4096 ? about.st_size - at : 4096;
        REQUIRE(pwrite(file, zeros, (size_t)n, at) == n);
    }
    close(file);
}

TEST(a_file_spoiled_under_it_costs_whole_prompts_and_says_why)
{
    struct open full, o;
    int64_t whole = 0;
    folder_make();
    REQUIRE(open_planner(&full, "", FULL, NULL) == TEC_OK);
    REQUIRE(open_planner(&o, path, "nodes.recall.select=reuse", NO_RAM) == TEC_OK);
    CHECK_INT(lines(1), ==, 1);
    CHECK(strstr(said.lines[0], "memory 'mem': tiers.host keeps nothing: "));
    said.n = 0;
    ask(&o, story[0].goal, story[0].changes);
    ask(&full, story[0].goal, story[0].changes);
    settle(&o);
    ask(&o, story[1].goal, NULL);
    CHECK_INT(counts(&o).whole, ==, 0);
    CHECK(counts(&o).prefetch.bytes[TEC_KEPT_FILE] > 0);
    spoil();
    for (int i = 0; i < 5; i++) { /* a segment after the other is found out */
        char goal[32];
        snprintf(goal, sizeof goal, "bring cup number %d", i);
        struct answer is = ask(&o, goal, NULL), want = ask(&full, goal, NULL);
        CHECK(counts(&o).whole > whole || i > 0);
        if (counts(&o).whole > whole) /* it was a full prompt */
            CHECK(same(&is, &want));
        whole = counts(&o).whole;
        CHECK_INT(lines((int)whole), ==, whole);
    }
    CHECK(whole >= 1 && whole <= 3);
    CHECK_INT(counts(&o).store.damages, ==, 3);
    struct tec_memory_damages damages;
    tec_memory_damages(o.engine->memories[0], &damages);
    CHECK_INT(damages.n, ==, 3);
    CHECK(damages.first[0].serial >= 1 && damages.first[0].serial <= 3);
    char place[48];
    snprintf(place, sizeof place, "is damaged, at byte %lld", (long long)damages.first[0].offset);
    CHECK(strstr(said.lines[0], place));
    printf("# %s\n", said.lines[0]);
    CHECK(strstr(said.lines[0], "pipelines/qwen_planner.lua:"));
    CHECK(strstr(said.lines[0], "'recall', memory 'mem': a prompt was computed whole: segment '"));
    CHECK(strstr(said.lines[0], "is damaged"));
    CHECK(strstr(said.lines[0], path));
    ask(&o, "now a knife", "{\"put\": {\"knife\": \"a knife is in the drawer\\n\"}}");
    settle(&o); /* what was spoiled is computed and kept again */
    struct tec_memory_counts before = counts(&o);
    ask(&o, "and the knife", NULL);
    CHECK_INT(counts(&o).missing, ==, before.missing);
    CHECK_INT(counts(&o).whole, ==, whole);
    close_planner(&o);
    close_planner(&full);
    folder_remove();
}

/* A disk is full: changes are refused, and answers continue. */
TEST(a_full_disk_refuses_changes_and_nothing_else)
{
    struct open full, o;
    struct stat about;
    struct rlimit limit;
    struct tec_frame_input input;
    const struct tec_value values[] = {
        text_value("goal", "wash the knife"),
        text_value("memory", "{\"put\": {\"knife\": \"a knife is in the drawer\\n\"}}")};
    folder_make();
    REQUIRE(open_planner(&full, "", FULL, NULL) == TEC_OK);
    REQUIRE(open_planner(&o, path, FIRST, DECAY) == TEC_OK);
    ask(&o, story[0].goal, story[0].changes);
    ask(&full, story[0].goal, story[0].changes);
    settle(&o);
    REQUIRE(stat(path, &about) == 0 && getrlimit(RLIMIT_FSIZE, &limit) == 0);
    struct rlimit small = {.rlim_cur = (rlim_t)about.st_size, .rlim_max = limit.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    CHECK_INT(see(&o, values, 2, &input), ==, TEC_IO);
    printf("# %s\n", err.message);
    CHECK(strstr(err.message, "'knife'") && strstr(err.message, "not written"));
    CHECK_INT(lines(1), ==, 1);
    CHECK(strstr(said.lines[0], "'knife'") && strstr(said.lines[0], "not written"));
    CHECK(tec_memory_fails(o.engine->memories[0]));
    struct answer is = ask(&o, story[1].goal, NULL), want = ask(&full, story[1].goal, NULL);
    CHECK(same(&is, &want));
    CHECK_INT(counts(&o).store.segments, ==, 3);
    CHECK_INT(counts(&o).missing, ==, 3);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    REQUIRE(see(&o, values, 2, &input) == TEC_OK); /* there is room again */
    CHECK(!tec_memory_fails(o.engine->memories[0]));
    CHECK_INT(lines(2), ==, 2);
    CHECK(strstr(said.lines[1], "is written again"));
    char trouble[TEC_MEMORY_TEXT] = "x";
    for (int i = 0; i < 1000 && trouble[0]; i++, usleep(1000))
        tec_memory_trouble(o.engine->memories[0], trouble);
    CHECK_STR(trouble, "");
    const struct tec_value away[] = {values[0], text_value("memory", "{\"remove\": [\"knife\"]}")};
    REQUIRE(see(&o, away, 2, &input) == TEC_OK);
    close_planner(&o);
    REQUIRE(open_planner(&o, path, FIRST, DECAY) == TEC_OK);
    CHECK_INT(counts(&o).store.segments, ==, 3);
    is = ask(&o, story[1].goal, NULL);
    CHECK(same(&is, &want));
    close_planner(&o);
    close_planner(&full);
    folder_remove();
}

/* One bit of the newest text: the segment goes, and everybody is told which, where and of what
 * file.
 */
TEST(damage_that_is_found_when_the_file_is_opened_is_said)
{
    static char all[1 << 20];
    static const char newest[] = "the cup is on the shelf";
    struct open o;
    struct tec_memory_damages d;
    folder_make();
    REQUIRE(open_planner(&o, path, FIRST, DECAY) == TEC_OK);
    ask(&o, story[0].goal, story[0].changes);
    ask(&o, story[2].goal, story[2].changes);
    settle(&o);
    close_planner(&o);
    int file = open(path, O_RDWR);
    ssize_t n = read(file, all, sizeof all);
    REQUIRE(n > 4096);
    const char *text = memmem(all, (size_t)n, newest, sizeof newest - 1);
    REQUIRE(text && pwrite(file, "T", 1, text - all) == 1);
    close(file);
    said.n = 0;
    REQUIRE(open_planner(&o, path, FIRST, DECAY) == TEC_OK);
    CHECK_INT(counts(&o).store.segments, ==, 2);
    CHECK_INT(lines(1), ==, 1);
    printf("# %s\n", said.lines[0]);
    tec_memory_damages(o.engine->memories[0], &d);
    CHECK_INT(d.n, ==, 1);
    CHECK_STR(d.first[0].segment, "cup");
    CHECK(d.first[0].offset < text - all && d.first[0].offset + d.first[0].bytes > text - all);
    CHECK_STR(tec_memory_file(o.engine->memories[0]), path);
    char want[160];
    snprintf(want, sizeof want, "%s is damaged at byte %lld: segment 'cup', the record is damaged",
             path, (long long)d.first[0].offset);
    CHECK(strstr(said.lines[0], want));
    close_planner(&o);
    folder_remove();
}

/* What a text makes of a prompt behind its segments, given as ids, makes the same prompt. */
TEST(a_goal_may_be_token_ids)
{
    struct open o;
    struct tec_frame_input input;
    static int ids[600], first[3072];
    folder_make();
    REQUIRE(open_planner(&o, "", FIRST, DECAY) == TEC_OK);
    ask(&o, story[0].goal, story[0].changes);
    struct tec_value values[] = {text_value("goal", "put the cup there"), {.name = NULL}};
    REQUIRE(see(&o, values, 1, &input) == TEC_OK);
    int n = input.chains[0].prefix.n_text, query = input.chains[0].memory->query;
    REQUIRE(n <= 3072 && n - query <= 300);
    memcpy(first, input.chains[0].prefix.ids, (size_t)n * sizeof(int));
    memcpy(ids, first + query, (size_t)(n - query) * sizeof(int));
    struct answer of_text = run(&o, &input);
    values[1] = (struct tec_value){"goal#ids",  TEC_VALUE_I32, 1,
                                   {n - query}, ids,           (size_t)(n - query) * sizeof(int)};
    REQUIRE(see(&o, values, 2, &input) == TEC_OK); /* with the text that finds the segments */
    CHECK_INT(input.chains[0].prefix.n_text, ==, n);
    CHECK_INT(memcmp(input.chains[0].prefix.ids, first, (size_t)n * sizeof(int)), ==, 0);
    struct answer of_ids = run(&o, &input);
    CHECK(same(&of_text, &of_ids));
    ids[2] = (ids[2] + 1) % 500;
    REQUIRE(see(&o, values + 1, 1, &input) == TEC_OK); /* without */
    CHECK_INT(input.chains[0].memory->n_segments, ==, 3);
    CHECK_INT(input.chains[0].prefix.ids[input.chains[0].memory->query + 2], ==, ids[2]);
    ids[1] = -1;
    CHECK_INT(see(&o, values + 1, 1, &input), ==, TEC_INVALID);
    CHECK_STR(err.message, "goal: token 2 is -1, the model's vocabulary has 512");
    ids[1] = 1;
    values[1].shape[0] = 300;
    values[1].bytes = 300 * sizeof(int);
    CHECK_INT(see(&o, values + 1, 1, &input), ==, TEC_INVALID);
    CHECK(strstr(err.message,
                 "the prompt behind the segments has 300 tokens, the pipeline allows 256"));
    close_planner(&o);
    folder_remove();
}

/* A message of changes: segments a0, a1, ... of `bytes` spaces each, and what stands behind them.
 */
static char *message(int n, size_t bytes, const char *rest)
{
    size_t room = (size_t)n * (bytes + 32) + strlen(rest) + 64, at = 0;
    char *text = malloc(room);
    REQUIRE(text);
    at += (size_t)snprintf(text, room, "{\"put\": {");
    for (int i = 0; i < n; i++) {
        at += (size_t)snprintf(text + at, room - at, "%s\"a%d\": \"", i ? ", " : "", i);
        memset(text + at, ' ', bytes);
        at += bytes;
        at += (size_t)snprintf(text + at, room - at, "\"");
    }
    snprintf(text + at, room - at, "%s", rest);
    return text;
}

/* Spaces are one made-up token, however many there are, so a refusal here is for the bytes. */
TEST(changes_beyond_a_bound_are_refused_as_a_whole)
{
    static const struct {
        int n;
        size_t bytes;
        const char *rest, *why;
    } wrong[] = {
        {1, 1 << 16, "}}", NULL},
        {1, (1 << 16) + 1, "}}", "memory: 'a0' has 65537 bytes; at most 65536 are possible"},
        {3, 9, ", \"\": \"x\"}}", "an id of 0 bytes"},
        {3, 9, ", \"b\": 7}}", "the text of 'b' is no string"},
        {3, 9, "}, \"remove\": [\"a0\", 7]}", "remove[1] is no string"},
        {3, 9, "}, \"remove\": \"a0\"}", "changes are"},
        {1024, 9, "}}", NULL},
        {1025, 9, "}}", "changes of 1025 segments in one observation; at most 1024"},
        {1023, 9, "}, \"remove\": [\"b\", \"c\"]}", "changes of 1025 segments"},
        {16, 1 << 16, "}}", NULL},
        {17, 1 << 16, "}}", "up to 'a16' the texts of one observation have 1114112 bytes"},
        {140, 1 << 16, "}}", "at most 8388608 are possible"},
    };
    struct open o;
    struct tec_frame_input input;
    folder_make();
    REQUIRE(open_planner(&o, "", NULL, NULL) == TEC_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct tec_store_counts before = counts(&o).store;
        char *text = message(wrong[i].n, wrong[i].bytes, wrong[i].rest);
        const struct tec_value values[] = {text_value("goal", "find it"),
                                           text_value("memory", text)};
        enum tec_status status = see(&o, values, 2, &input);
        struct tec_store_counts after = counts(&o).store;
        CHECK((status == TEC_OK) == !wrong[i].why);
        if (wrong[i].why && !strstr(err.message, wrong[i].why))
            CHECK_STR(err.message, wrong[i].why);
        if (wrong[i].why) {
            CHECK_INT(after.step, ==, before.step);
            CHECK_INT(after.puts + after.same + after.removes, ==,
                      before.puts + before.same + before.removes);
        }
        free(text);
    }
    const struct tec_value goal = text_value("goal", "find it");
    REQUIRE(see(&o, &goal, 1, &input) == TEC_OK);
    CHECK_INT(counts(&o).store.segments, ==, 1024);
    close_planner(&o);
    folder_remove();
}

/* Of two texts the second is a word too long, so the first is not stored either. */
TEST(a_text_of_too_many_tokens_changes_nothing)
{
    struct open o;
    struct tec_frame_input input;
    char text[1024];
    int at = snprintf(text, sizeof text, "{\"put\": {\"a\": \"fine\", \"b\": \"");
    folder_make();
    REQUIRE(open_planner(&o, "", NULL, NULL) == TEC_OK);
    for (int i = 0; i < 129; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "w ");
    snprintf(text + at, sizeof text - (size_t)at, "\"}}");
    const struct tec_value values[] = {text_value("goal", "find it"), text_value("memory", text)};
    CHECK_INT(see(&o, values, 2, &input), ==, TEC_INVALID);
    CHECK(strstr(err.message, "memory: 'b' has 129 tokens, the pipeline allows 1 to 128"));
    CHECK_INT(counts(&o).store.segments, ==, 0);
    CHECK_INT(counts(&o).store.step, ==, 0);
    close_planner(&o);
    folder_remove();
}

/* The memory that attach takes for KV in transit is what the plan says, and a budget may refuse
 * it. */
TEST(kv_on_its_way_is_in_the_budget_of_the_host)
{
    struct open o;
    struct tec_measured m;
    struct tec_arena arena;
    folder_make();
    REQUIRE(open_planner(&o, "", "resources.mem.tiers.host=1MiB", NULL) == TEC_OK);
    const struct tec_memory *memory = o.engine->memories[0];
    tec_arena_init(&arena, &heap);
    struct tec_engine_options options = o.engine->options;
    REQUIRE(went_well(tec_engine_measure(&m, &options, &heap, &arena, &err), &err));
    size_t piece = (2 * 128 * memory->row + 8 + 63) / 64 * 64;
    int64_t pieces = 40 * memory->layers;
    CHECK_INT(m.memory.kept, ==, 1 << 20);
    if (tec_device_reads_host(o.engine->device))
        CHECK_INT(m.memory.staging, ==, pieces * (int64_t)piece);
    CHECK_INT((int64_t)memory->shared->stage_layer * memory->layers, ==, pieces * (int64_t)piece);
    CHECK_INT(m.host, ==, m.bytes.captures + m.memory.staging + m.memory.kept);
    tec_arena_finish(&arena);
    close_planner(&o);
    CHECK_INT(open_planner(&o, path, "memory.host=2MiB", "resources.mem.tiers.host=1MiB"), ==,
              TEC_NO_MEMORY);
    printf("# %s\n", err.message);
    CHECK(strstr(err.message, "qwen_planner.lua:39: memory.host: "));
    CHECK(strstr(err.message, "keys and values of 'mem' on their way"));
    CHECK(strstr(err.message, "budget is 2.00 MiB"));
    struct stat about;
    CHECK_INT(stat(path, &about), !=, 0); /* before the store is opened */
    folder_remove();
}

TAP_MAIN
