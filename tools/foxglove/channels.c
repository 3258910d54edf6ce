/* channels.c - lists the channels of a robot with their JSON schemas. */
#include "tools/foxglove/channels.h"

#include "base/json_text.h"

#include <stdio.h>

#define NUMBER(name) "\"" name "\":{\"type\":\"number\"}"
#define TEXT(name) "\"" name "\":{\"type\":\"string\"}"
#define FLAG(name) "\"" name "\":{\"type\":\"boolean\"}"
#define NUMBERS(name) "\"" name "\":{\"type\":\"array\",\"items\":{\"type\":\"number\"}}"
#define OBJECT(name) "\"" name "\":{\"type\":\"object\",\"properties\":{}}"
#define SCHEMA(properties) "{\"type\":\"object\",\"properties\":{" properties "}}"

struct channel {
    const char *topic, *schema_name, *schema;
};

static const struct channel fixed[] = {
#define CHANNEL(name, topic, schema, properties) {topic, schema, SCHEMA(properties)},
#include "tools/foxglove/channels.def"
#undef CHANNEL
};

static const struct channel actions = {
    "/tectum/actions/", "tectum.Actions",
    SCHEMA(NUMBER("frame") "," NUMBER("session") "," NUMBER("age_ms") "," FLAG("late") "," TEXT(
        "units") "," NUMBERS("first") ",\"rows\":{\"type\":\"array\",\"items\":"
                                      "{\"type\":\"object\",\"properties\":{" NUMBERS(
                                          "values") "}}"
                                                    "}")};
static const struct channel texts = {
    "/tectum/text/", "tectum.Text",
    SCHEMA(NUMBER("request") "," NUMBER("session") "," NUMBER("frame") "," TEXT("text") "," TEXT(
        "said") "," FLAG("done") "," TEXT("reason") "," FLAG("lost"))};

bool tec_foxglove_has(const struct tec_engine *engine, int64_t channel)
{
    const struct tec_loop_options *o = tec_loop_settings(engine->loop);
    if (channel >= TEC_FOXGLOVE_TEXTS)
        return channel - TEC_FOXGLOVE_TEXTS < o->n_decoders;
    return channel >= 0 && channel < TEC_FOXGLOVE_ACTIONS + o->n_actions;
}

/* `name` is the node's, "" for a channel that is of none. */
static void add(json_t *to, int index, const struct channel *c, const char *name)
{
    char topic[160];
    snprintf(topic, sizeof topic, "%s%.100s", c->topic, name);
    json_array_append_new(to, json_pack("{s:i, s:o, s:s, s:s, s:s, s:s}", "id", index + 1, "topic",
                                        tec_json_shown(topic), "encoding", "json", "schemaName",
                                        c->schema_name, "schema", c->schema, "schemaEncoding",
                                        "jsonschema"));
}

json_t *tec_foxglove_advertise(const struct tec_engine *engine)
{
    const struct tec_loop_options *o = tec_loop_settings(engine->loop);
    json_t *all = json_array();
    for (int i = 0; i < TEC_FOXGLOVE_ACTIONS; i++)
        add(all, i, &fixed[i], "");
    for (int i = 0; i < o->n_actions; i++)
        add(all, TEC_FOXGLOVE_ACTIONS + i, &actions, o->actions[i].name);
    for (int i = 0; i < o->n_decoders; i++)
        add(all, TEC_FOXGLOVE_TEXTS + i, &texts, o->decoders[i].name);
    return json_pack("{s:s, s:o}", "op", "advertise", "channels", all);
}
