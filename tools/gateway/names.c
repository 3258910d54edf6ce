/* names.c - finds the input that a client means by a name. */
#include "tools/gateway/names.h"

#include <string.h>

enum { STATE = -1, PROMPT = -2 };

/* What OpenVLA's and OpenVLA-OFT's clients call their values; a camera is its place in the list. */
static const struct {
    const char *name;
    int means;
} words[] = {
    {"image", 0},
    {"full_image", 0},
    {"wrist_image", 1},
    {"left_wrist_image", 1},
    {"right_wrist_image", 2},
    {"state", STATE},
    {"proprio", STATE},
    {"instruction", PROMPT},
};

/* The camera at this place among those that there are. */
static const char *camera_at(const struct tec_robot *r, int at)
{
    for (int i = 0; i < r->n_cameras; i++)
        if (r->cameras[i].input && at-- == 0)
            return r->cameras[i].input;
    return NULL;
}

static bool named(struct tec_gateway_input *found, const struct tec_robot *r, const char *name)
{
    for (int i = 0; i < r->n_cameras; i++)
        if (r->cameras[i].input && strcmp(r->cameras[i].input, name) == 0)
            *found = (struct tec_gateway_input){r->cameras[i].input, TEC_GATEWAY_PICTURE};
    for (int i = 0; i < r->n_ignored && !found->name; i++)
        if (strcmp(r->ignored[i], name) == 0)
            *found = (struct tec_gateway_input){r->ignored[i], TEC_GATEWAY_PICTURE};
    for (int i = 0; i < r->n_parts && !found->name; i++)
        if (strcmp(r->parts[i].input, name) == 0)
            *found = (struct tec_gateway_input){r->parts[i].input, TEC_GATEWAY_OTHER};
    if (!found->name && r->prompt_input && strcmp(r->prompt_input, name) == 0)
        *found = (struct tec_gateway_input){r->prompt_input, TEC_GATEWAY_PROMPT};
    for (int i = 0; i < r->n_cameras && !found->name; i++)
        if (r->cameras[i].input && strcmp(r->cameras[i].slot, name) == 0)
            *found = (struct tec_gateway_input){r->cameras[i].input, TEC_GATEWAY_PICTURE};
    return found->name;
}

struct tec_gateway_input tec_gateway_input(const struct tec_gateway_names *names, const char *name)
{
    const struct tec_robot *r = names->robot;
    struct tec_gateway_input found = {NULL, TEC_GATEWAY_OTHER};
    if (named(&found, r, name))
        return found;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].name, name) != 0)
            continue;
        if (words[i].means == PROMPT)
            return (struct tec_gateway_input){r->prompt_input, TEC_GATEWAY_PROMPT};
        if (words[i].means == STATE)
            return (struct tec_gateway_input){r->n_parts == 1 ? r->parts[0].input : NULL,
                                              TEC_GATEWAY_OTHER};
        return (struct tec_gateway_input){camera_at(r, words[i].means), TEC_GATEWAY_PICTURE};
    }
    return found;
}
