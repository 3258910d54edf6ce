/* layout.c - places the items of a drawing in layers, each near the middle of what it is linked to,
 * and finds ways for the links that cross no box. */
#include "tools/picture/layout.h"

enum { GAP_X = 70, GAP_Y = 22, MARGIN = 30, ROUNDS = 16, LANE = 14, BEND = 16, ROW_OF_LINK = 6 };

/* What stands in a layer: an item, or the row that a long link keeps there. */
struct vertex {
    struct tec_item_box box;
    int layer;
};

struct edge {
    int from, to; /* vertices in neighbouring layers */
};

struct maker {
    const struct tec_drawing *d;
    struct tec_placing *out;
    struct tec_arena *arena;
    struct vertex *vertices;
    struct edge *edges;
    int *first_row; /* of each link: its vertex in the first layer between; -1 = none */
    int n_vertices, n_edges, n_layers;
    int *members, *first;          /* vertices of layer l: members[first[l] .. first[l + 1] - 1] */
    double *wishes, *left, *right; /* left, right: of each layer's column */
    int *order;
};

/* --- vertices --------------------------------------------------------------------------------- */

static int add_vertex(struct maker *m, struct tec_item_box box, int layer)
{
    m->vertices[m->n_vertices] = (struct vertex){box, layer};
    return m->n_vertices++;
}

static int layer_of(const struct maker *m, int item)
{
    return m->d->items[item].layer;
}

/* A long link gets a row in each layer between its ends. */
static void add_link(struct maker *m, int at)
{
    const struct tec_link *l = &m->d->links[at];
    int last = l->from, to = layer_of(m, l->to);
    m->first_row[at] = -1;
    if (to <= layer_of(m, l->from))
        return;
    for (int layer = layer_of(m, l->from) + 1; layer < to; layer++) {
        int row = add_vertex(m, (struct tec_item_box){.h = ROW_OF_LINK}, layer);
        m->first_row[at] = m->first_row[at] < 0 ? row : m->first_row[at];
        m->edges[m->n_edges++] = (struct edge){last, row};
        last = row;
    }
    m->edges[m->n_edges++] = (struct edge){last, l->to};
}

static enum tec_status take_memory(struct maker *m, struct tec_error *err)
{
    size_t n = (size_t)m->d->n_items + 2;
    for (int i = 0; i < m->d->n_items; i++)
        if (layer_of(m, i) + 1 > m->n_layers)
            m->n_layers = layer_of(m, i) + 1;
    for (int i = 0; i < m->d->n_links; i++)
        n += (size_t)m->n_layers + 1;
    m->vertices = TEC_NEW(m->arena, n, struct vertex);
    m->edges = TEC_NEW(m->arena, n, struct edge);
    m->first_row = TEC_NEW(m->arena, (size_t)m->d->n_links + 1, int);
    m->members = TEC_NEW(m->arena, n, int);
    m->order = TEC_NEW(m->arena, n, int);
    m->wishes = TEC_NEW(m->arena, n, double);
    m->first = TEC_NEW(m->arena, (size_t)m->n_layers + 2, int);
    m->left = TEC_NEW(m->arena, (size_t)m->n_layers + 1, double);
    m->right = TEC_NEW(m->arena, (size_t)m->n_layers + 1, double);
    m->out->routes = TEC_NEW(m->arena, (size_t)m->d->n_links + 1, struct tec_route);
    bool all = m->vertices && m->edges && m->first_row && m->members && m->order && m->wishes &&
               m->first && m->left && m->right && m->out->routes;
    return all ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a drawing");
}

static void list_layers(struct maker *m)
{
    int at = 0;
    for (int layer = 0; layer < m->n_layers; layer++) {
        m->first[layer] = at;
        for (int i = 0; i < m->n_vertices; i++)
            if (m->vertices[i].layer == layer)
                m->members[at++] = i;
    }
    m->first[m->n_layers] = at;
}

/* --- places ----------------------------------------------------------------------------------- */

/* The preferred height of a vertex's middle: the mean of its neighbours'. */
static double wish(const struct maker *m, int vertex)
{
    const struct tec_item_box *own = &m->vertices[vertex].box;
    double sum = 0.0;
    int n = 0;
    for (int i = 0; i < m->n_edges; i++) {
        const struct edge *e = &m->edges[i];
        int other = e->from == vertex ? e->to : e->to == vertex ? e->from : -1;
        if (other < 0)
            continue;
        sum += m->vertices[other].box.y + m->vertices[other].box.h / 2.0;
        n++;
    }
    return n ? sum / n : own->y + own->h / 2.0;
}

/* Order a layer by preferred heights, and place it as near to these as it fits. */
static void settle(struct maker *m, int layer)
{
    const int *items = m->members + m->first[layer];
    int n = m->first[layer + 1] - m->first[layer];
    double total = 0.0, middle = 0.0;
    for (int i = 0; i < n; i++) {
        m->wishes[i] = wish(m, items[i]);
        int at = i;
        for (; at > 0 && m->wishes[m->order[at - 1]] > m->wishes[i]; at--)
            m->order[at] = m->order[at - 1];
        m->order[at] = i;
        total += m->vertices[items[i]].box.h + (i ? GAP_Y : 0);
        middle += m->wishes[i] / n;
    }
    double y = middle - total / 2.0;
    for (int i = 0; i < n; i++) {
        struct tec_item_box *b = &m->vertices[items[m->order[i]]].box;
        b->y = y;
        y += b->h + GAP_Y;
    }
}

static void place_columns(struct maker *m)
{
    double x = MARGIN + LANE;
    for (int layer = 0; layer < m->n_layers; layer++) {
        double widest = 0.0, y = 0.0;
        for (int i = m->first[layer]; i < m->first[layer + 1]; i++) {
            struct tec_item_box *b = &m->vertices[m->members[i]].box;
            b->x = x;
            b->y = y;
            y += b->h + GAP_Y;
            widest = b->w > widest ? b->w : widest;
        }
        m->left[layer] = x;
        m->right[layer] = x + widest;
        x += widest > 0.0 ? widest + GAP_X : 0.0;
    }
    m->out->width = x - GAP_X + MARGIN + LANE;
}

static void place(struct maker *m)
{
    double top = 0.0, bottom = 0.0;
    place_columns(m);
    for (int round = 0; round < ROUNDS; round++)
        for (int k = 0; k < m->n_layers; k++)
            settle(m, round % 2 ? m->n_layers - 1 - k : k);
    for (int i = 0; i < m->n_vertices; i++) {
        const struct tec_item_box *b = &m->vertices[i].box;
        top = i == 0 || b->y < top ? b->y : top;
        bottom = i == 0 || b->y + b->h > bottom ? b->y + b->h : bottom;
    }
    for (int i = 0; i < m->n_vertices; i++)
        m->vertices[i].box.y += MARGIN - top;
    m->out->height = bottom - top + 2.0 * MARGIN;
}

/* --- routes ----------------------------------------------------------------------------------- */

static void to(struct tec_route *r, double x, double y)
{
    r->points[2 * r->n] = x;
    r->points[2 * r->n + 1] = y;
    r->n++;
}

/* From (x1, y1) to (x2, y2), level at both ends: in the gap between two columns. */
static void bend(struct tec_route *r, double x1, double y1, double x2, double y2)
{
    for (int i = 0; i <= BEND; i++) {
        double t = (double)i / BEND;
        to(r, x1 + (x2 - x1) * t, y1 + (y2 - y1) * t * t * (3.0 - 2.0 * t));
    }
}

static void route_forward(struct maker *m, int at, struct tec_route *r)
{
    const struct tec_link *l = &m->d->links[at];
    const struct tec_item_box *a = &m->vertices[l->from].box, *b = &m->vertices[l->to].box;
    double y = a->y + a->h / 2.0;
    int last = layer_of(m, l->to);
    to(r, a->x + a->w, y);
    for (int layer = layer_of(m, l->from); layer < last; layer++) {
        int row = m->first_row[at] + layer - layer_of(m, l->from);
        const struct tec_item_box *next = layer + 1 < last ? &m->vertices[row].box : b;
        double next_y = next->y + next->h / 2.0;
        bend(r, m->right[layer], y, m->left[layer + 1] - (layer + 1 < last ? 0.0 : 7.0), next_y);
        y = next_y;
    }
}

/* Back, or within a layer: to the right, below everything, and up on the left. */
static void route_back(struct maker *m, int at, struct tec_route *r, int lane)
{
    const struct tec_link *l = &m->d->links[at];
    const struct tec_item_box *a = &m->vertices[l->from].box, *b = &m->vertices[l->to].box;
    double side = 4.0 + (lane % 4) * 5.0, low = m->out->height - MARGIN / 2.0 + LANE * lane;
    double x1 = m->right[layer_of(m, l->from)] + side, x2 = m->left[layer_of(m, l->to)] - 10 - side;
    double y1 = a->y + a->h / 2.0, y2 = b->y + b->h * 0.8;
    to(r, a->x + a->w, y1);
    to(r, x1, y1);
    to(r, x1, low);
    to(r, x2, low);
    to(r, x2, y2);
    to(r, b->x - 7.0, y2);
}

static enum tec_status make_routes(struct maker *m, struct tec_error *err)
{
    size_t room = (size_t)(m->n_layers + 1) * (BEND + 2) + 8;
    int lanes = 0;
    for (int i = 0; i < m->d->n_links; i++) {
        const struct tec_link *l = &m->d->links[i];
        struct tec_route *r = &m->out->routes[i];
        r->points = TEC_NEW(m->arena, 2 * room, double);
        if (!r->points)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for a drawing");
        if (layer_of(m, l->to) > layer_of(m, l->from))
            route_forward(m, i, r);
        else
            route_back(m, i, r, lanes++);
    }
    m->out->height += (double)LANE * lanes;
    return TEC_OK;
}

enum tec_status tec_placing_make(struct tec_placing *layout, const struct tec_drawing *d,
                                 struct tec_item_box *boxes, struct tec_arena *arena,
                                 struct tec_error *err)
{
    struct maker m = {.d = d, .out = layout, .arena = arena};
    *layout = (struct tec_placing){.boxes = boxes};
    TEC_TRY(take_memory(&m, err));
    for (int i = 0; i < d->n_items; i++)
        add_vertex(&m, boxes[i], layer_of(&m, i));
    for (int i = 0; i < d->n_links; i++)
        add_link(&m, i);
    list_layers(&m);
    place(&m);
    for (int i = 0; i < d->n_items; i++)
        boxes[i] = m.vertices[i].box;
    return make_routes(&m, err);
}
