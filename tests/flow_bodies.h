/* flow_bodies.h - opens a model's description whose prefill and action are given as text: what the
 * tests of words share. */
#ifndef TEC_TESTS_FLOW_BODIES_H
#define TEC_TESTS_FLOW_BODIES_H

#include "graph/model/model.h"
#include "tests/box.h"
#include "tests/tap.h"

#include <string.h>

static struct tec_heap heap;
static struct tec_error err;

/* The description up to the body of prefill; the test gives it its value. */
static const char *prelude;

/* Opens the description with these bodies and `more` at its end. */
static inline enum tec_status open_in(struct tec_heap *of, struct tec_model **out,
                                      const char *prefill, const char *action, const char *more)
{
    struct box box;
    box_make(&box);
    box_path(&box, "t.lua");
    FILE *file = fopen(box.path, "w");
    REQUIRE(file);
    fprintf(file, "%s  %s\nend\nd.action = function(g, seen, x, t)\n  %s\nend\n%s\nreturn d\n",
            prelude, prefill, action, more);
    fclose(file);
    const struct tec_model_choice choice = {.root = box.dir, .arch = "t", .size = "tiny"};
    enum tec_status status = tec_model_open(out, &choice, of, &err);
    box_remove(&box);
    return status;
}

static inline enum tec_status open_bodies(struct tec_model **out, const char *prefill,
                                          const char *action, const char *more)
{
    return open_in(&heap, out, prefill, action, more);
}

/* Refused with the line (0: any) and these words. */
static inline void refused(const char *prefill, const char *action, const char *more, int line,
                           const char *says)
{
    struct tec_model *model = NULL;
    char place[32] = "";
    if (line)
        snprintf(place, sizeof place, "t.lua:%d: ", line);
    CHECK(open_bodies(&model, prefill, action, more) != TEC_OK);
    if (!strstr(err.message, says) || !strstr(err.message, place))
        fprintf(stderr, "# wanted '%s%s', is '%s'\n", place, says, err.message);
    CHECK(strstr(err.message, says) && strstr(err.message, place));
    CHECK_INT(heap.live, ==, 0);
}

#endif
