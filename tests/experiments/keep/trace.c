/* trace.c - objects, examples and tasks from a seed. */
#include "tests/experiments/keep/trace_words.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { HABIT = 5, EXAMPLE_STEPS = 6, VERBS = 6 };

/* How often an object of a class is changed, beside others. */
static const int rates[TEC_TRACE_CLASSES] = {1, 8, 12, 40, 48, 0};

static const char *const verbs[VERBS] = {"find a",   "pick up the",  "find a",
                                         "open the", "put down the", "close the"};
static const bool of_place[VERBS] = {false, false, true, true, false, true};

const char *tec_trace_beginning(void)
{
    return "Robot: Hello, I am a robot that works in a house.\n"
           "Robot: Give me a task, and I will tell you the steps that I take, one after the "
           "other.\n"
           "Rules: I can hold one thing at a time. Before I put something down I must have found "
           "and picked it up. What is closed must be opened before something goes into it. When I "
           "need to slice something I must hold a knife.\n"
           "When the task is finished I say that it is done. Examples of tasks stand after the "
           "objects.\n"
           "Here is what I know of the objects in the house, with their states and where they "
           "are:\n";
}

static int below(struct tec_trace *t, int n)
{
    return n > 0 ? (int)(tec_trace_random(&t->random) % (uint64_t)n) : 0;
}

/* Six in ten have no state worth a word. */
static int draw_state(struct tec_trace *t)
{
    return below(t, 10) < 6 ? 0 : 1 + below(t, TEC_TRACE_STATES - 1);
}

static void write_object(struct tec_trace_segment *s)
{
    snprintf(s->text, sizeof s->text, "{'object': '%s', 'state': '%s', 'position': '%s'}\n",
             tec_trace_nouns[s->noun].word, tec_trace_states[s->state], tec_trace_places[s->place]);
}

static const char *word_of(const struct tec_trace *t, int object)
{
    return tec_trace_nouns[t->segments[object].noun].word;
}

/* Steps of a plan, numbered from `first`, into `out` from `at` on; where it ends. */
static int write_step(char *out, int room, int at, int number, const char *what, const char *where)
{
    int verb = (number - 1) % VERBS;
    int n = snprintf(out + at, (size_t)(room - at), " %d. %s %s,", number, verbs[verb],
                     of_place[verb] ? where : what);
    return at + n < room ? at + n : room - 1;
}

static void write_example(struct tec_trace *t, struct tec_trace_segment *s)
{
    const char *what = tec_trace_nouns[16 + below(t, TEC_TRACE_NOUNS - 16)].word;
    const char *where = tec_trace_nouns[below(t, 16)].word;
    int room = (int)sizeof s->text;
    int at = snprintf(s->text, sizeof s->text,
                      "Human: %s %s in the %s.\nRobot:", tec_trace_goals[below(t, TEC_TRACE_GOALS)],
                      what, where);
    for (int i = 1; i <= EXAMPLE_STEPS; i++)
        at = write_step(s->text, room, at, i, what, where);
    snprintf(s->text + at, (size_t)(room - at), " %d. done.\n", EXAMPLE_STEPS + 1);
}

/* What can be held is the object of a task, furniture or an appliance its place. */
static int draw_object(struct tec_trace *t, bool held)
{
    for (;;) {
        int i = below(t, t->n_objects);
        if ((t->segments[i].kind > TEC_TRACE_APPLIANCE) == held)
            return i;
    }
}

static void begin_task(struct tec_trace *t)
{
    t->target = draw_object(t, true);
    t->place = draw_object(t, false);
    t->goal = below(t, TEC_TRACE_GOALS);
    snprintf(t->instruction, sizeof t->instruction, "%s %s in the %s.", tec_trace_goals[t->goal],
             word_of(t, t->target), word_of(t, t->place));
}

/* Everything that was done in this task. */
static void write_query(struct tec_trace *t)
{
    int room = (int)sizeof t->query, done = (int)(t->step % TEC_TRACE_STEPS);
    int at = snprintf(t->query, sizeof t->query, "Human: %s\nRobot:", t->instruction);
    for (int i = 1; i <= done; i++)
        at = write_step(t->query, room, at, i, word_of(t, t->target), word_of(t, t->place));
    snprintf(t->query + at, (size_t)(room - at), " %d.", done + 1);
}

void tec_trace_begin(struct tec_trace *t, uint64_t seed, int objects, int examples)
{
    memset(t, 0, sizeof *t);
    t->random = seed * 2 + 1;
    /* Each noun once before any comes twice: every class is there. */
    t->n_objects = objects < TEC_TRACE_NOUNS ? TEC_TRACE_NOUNS : objects;
    if (t->n_objects > TEC_TRACE_OBJECTS)
        t->n_objects = TEC_TRACE_OBJECTS;
    t->n = t->n_objects + (examples < TEC_TRACE_EXAMPLES ? examples : TEC_TRACE_EXAMPLES);
    for (int i = 0; i < t->n; i++) {
        struct tec_trace_segment *s = &t->segments[i];
        if (i < t->n_objects) {
            s->noun = i < TEC_TRACE_NOUNS ? i : below(t, TEC_TRACE_NOUNS);
            s->kind = tec_trace_nouns[s->noun].kind;
            s->state = draw_state(t);
            s->place = below(t, TEC_TRACE_PLACES);
            snprintf(s->id, sizeof s->id, "object%d", i);
            write_object(s);
        } else {
            s->kind = TEC_TRACE_EXAMPLE;
            snprintf(s->id, sizeof s->id, "example%d", i - t->n_objects);
            write_example(t, s);
        }
        t->members[s->kind]++;
    }
    begin_task(t);
    write_query(t);
}

/* --- changes --------------------------------------------------------------------------------- */

static int draw_changed(struct tec_trace *t)
{
    int sum = 0, i = 0;
    for (int k = 0; k < t->n_objects; k++)
        sum += rates[t->segments[k].kind];
    for (int at = below(t, sum); at >= rates[t->segments[i].kind]; i++)
        at -= rates[t->segments[i].kind];
    return i;
}

static void change(struct tec_trace *t, int i)
{
    struct tec_trace_segment *s = &t->segments[i];
    for (int k = 0; k < t->n_changes; k++)
        if (t->changes[k] == i)
            return;
    /* What is fastened changes its state alone. */
    if (s->kind <= TEC_TRACE_APPLIANCE)
        s->state = (s->state + 1 + below(t, TEC_TRACE_STATES - 1)) % TEC_TRACE_STATES;
    else
        s->place = (s->place + 1 + below(t, TEC_TRACE_PLACES - 1)) % TEC_TRACE_PLACES;
    write_object(s);
    t->changes[t->n_changes++] = i;
    t->changed[s->kind]++;
}

void tec_trace_next(struct tec_trace *t)
{
    t->step++;
    t->n_changes = 0;
    if (t->step % TEC_TRACE_STEPS == 0)
        begin_task(t);
    /* The action changes what it is about half of the time; every other step something is seen. */
    change(t, below(t, 2) ? t->target : draw_changed(t));
    if (below(t, 2))
        change(t, draw_changed(t));
    write_query(t);
}
