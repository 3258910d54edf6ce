/* relative.c - which columns of a LeRobot checkpoint's actions are changes of the state.
 *
 * Runs at load. A column left out by mistake leaves as a place where it is a difference, so what
 * cannot be read is refused and never guessed. */
#include "base/text/bytes.h"
#include "base/text/unicode.h"
#include "graph/transform/robot.h"

#include <string.h>

static const json_t *find_step(const json_t *processor, const char *name, size_t *index)
{
    const json_t *steps = json_object_get(processor, "steps");
    for (*index = 0; *index < json_array_size(steps); (*index)++) {
        const json_t *step = json_array_get(steps, *index);
        const char *is = json_string_value(json_object_get(step, "registry_name"));
        if (is && strcmp(is, name) == 0)
            return step;
    }
    return NULL;
}

/* The names of a field, in lower case as the reference compares them; *n = 0 where there is none.
 */
static enum tec_status read_names(struct tec_bytes **out, size_t *n, const json_t *config,
                                  const char *field, size_t step, struct tec_arena *arena,
                                  struct tec_error *err)
{
    const json_t *list = json_object_get(config, field), *name;
    size_t i;
    bool failed = false;
    if (list && !json_is_null(list) && !json_is_array(list))
        return tec_fail(err, TEC_MALFORMED,
                        "policy_preprocessor.json: steps[%zu].config.%s: must be a list of names",
                        step, field);
    *n = json_array_size(list);
    *out = TEC_NEW(arena, *n + 1, struct tec_bytes);
    for (i = 0; *out && i < *n; i++) {
        name = json_array_get(list, i);
        if (!json_is_string(name))
            return tec_fail(err, TEC_MALFORMED,
                            "policy_preprocessor.json: steps[%zu].config.%s[%zu]: must be a name",
                            step, field, i);
        tec_bytes_init(&(*out)[i], arena, 0);
        tec_unicode_lower(&(*out)[i], json_string_value(name), json_string_length(name));
        failed |= (*out)[i].failed;
    }
    return *out && !failed ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for names of joints");
}

/* Is one of the names, none of which may be empty, a part of this one? */
static bool holds_any(const struct tec_bytes *name, const struct tec_bytes *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (parts[i].n > 0 && name->n > 0 &&
            memmem(name->at, name->n, parts[i].at, parts[i].n) != NULL)
            return true;
    return false;
}

int tec_robot_length(const struct tec_checkpoint *c, const char *features, const char *name)
{
    const json_t *feature = json_object_get(json_object_get(c->config, features), name);
    const json_t *shape = json_object_get(feature, "shape");
    const json_t *n = json_array_get(shape, 0);
    return json_array_size(shape) == 1 && json_is_integer(n) && json_integer_value(n) >= 0 &&
                   json_integer_value(n) <= TEC_ROBOT_MAX_VALUES
               ? (int)json_integer_value(n)
               : -1;
}

enum tec_status tec_robot_relative(bool **out, int *n, const struct tec_checkpoint *c,
                                   struct tec_arena *arena, struct tec_error *err)
{
    size_t at = 0, n_names = 0, n_excluded = 0;
    struct tec_bytes *names = NULL, *excluded = NULL;
    const json_t *step = find_step(c->preprocessor, "relative_actions_processor", &at);
    const json_t *config = json_object_get(step, "config");
    int columns = tec_robot_length(c, "output_features", "action");
    *out = NULL;
    *n = 0;
    if (!json_is_true(json_object_get(config, "enabled")) || columns < 0)
        return TEC_OK;
    TEC_TRY(read_names(&names, &n_names, config, "action_names", at, arena, err));
    TEC_TRY(read_names(&excluded, &n_excluded, config, "exclude_joints", at, arena, err));
    *out = TEC_NEW(arena, (size_t)columns + 1, bool);
    if (!*out)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d columns", columns);
    *n = columns;
    for (int i = 0; i < columns; i++)
        (*out)[i] = (size_t)i >= n_names || !holds_any(&names[i], excluded, n_excluded);
    return TEC_OK;
}
