/* transform.h - what the tests of graph/transform share: a small robot, JSON as C strings. */
#ifndef TEC_TESTS_TRANSFORM_H
#define TEC_TESTS_TRANSFORM_H

#include "tests/tap.h"

#include "graph/transform/robot.h"

#include <stdlib.h>

static struct tec_heap heap;
static struct tec_error err;

#define CHECK_SAYS(text)                                                             \
    do {                                                                             \
        if (!tap_check(strstr(err.message, text) != NULL, text, __FILE__, __LINE__)) \
            fprintf(stderr, "#   message: %s\n", err.message);                       \
    } while (0)

/* JSON with ' for ". */
static inline json_t *json(const char *text)
{
    char *copy = strdup(text);
    for (char *c = copy; c && *c; c++)
        if (*c == '\'')
            *c = '"';
    json_error_t where;
    json_t *value = copy ? json_loads(copy, JSON_REJECT_DUPLICATES, &where) : NULL;
    free(copy);
    if (!value)
        fprintf(stderr, "# %s: %s\n", text, where.text);
    REQUIRE(value);
    return value;
}

/* The fields of a description: three cameras, four values of state, two columns of actions. */
#define SMALL                                                                           \
    "'name':'small','cameras':[{'slot':'a','input':'images/front'},"                    \
    "{'slot':'b','input':'images/wrist','missing':'mask'},{'slot':'c'}],"               \
    "'ignore':['images/low'],'resize':'openpi_pil',"                                    \
    "'state':{'inputs':[{'input':'joints','size':3},{'input':'gripper','size':1}],"     \
    "'ops':[{'op':'multiply','at':[2],'by':-1}]},"                                      \
    "'actions':{'size':2,'ops':[{'op':'add_state','at':[1]}],'max_rows':3,"             \
    "'limits':{'min':[-50,-1],'max':[50,1]}},'norm':{'mode':'quantile','asset':'x/y'}," \
    "'prompt':{'state':true,'default':'wave'},'rate_hz':10,'execute':2"

#endif
