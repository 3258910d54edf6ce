/* cmd_man.c - writes the manual pages, one of the program and one of each verb, from the tables of
 * verbs and options: the text of --help in the form of man(7). */
#include "base/out_file.h"
#include "tools/cli/help.h"
#include "tools/cli/shared.h"

#include <string.h>

struct man_options {
    const char *out;
};

static const struct tec_option options[] = {
    {"out", 'o', TEC_OPTION_TEXT, "DIR",
     "write every page to this folder: tectum.1, tectum-run.1, ...",
     offsetof(struct man_options, out), 0, 0},
};

/* Print text so that troff shows it as it is: a backslash and a dash have meanings of their own,
 * and so has a line that begins with a dot or an apostrophe. */
static void print_plain(const char *text, FILE *out)
{
    bool first = true;
    for (; *text; text++) {
        if (first && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputc(*text, out);
        first = *text == '\n';
    }
}

/* Lines that keep their breaks. */
static void print_lines(const char *text, FILE *out)
{
    fputs(".nf\n", out);
    print_plain(text, out);
    fputs(".fi\n", out);
}

static void print_head(const char *page, const char *summary, FILE *out)
{
    fprintf(out, ".\\\" Made by `tectum man` from the tables of verbs and options.\n.TH ");
    for (const char *c = page; *c; c++)
        fputc(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c, out);
    fprintf(out, " 1 \"\" \"tectum %s\" \"tectum\"\n.SH NAME\n", TECTUM_VERSION);
    print_plain(page, out);
    fputs(" \\- ", out);
    print_plain(summary, out);
    fputs("\n.SH SYNOPSIS\n", out);
}

static void print_option(const struct tec_option *o, FILE *out)
{
    fputs(".TP\n", out);
    if (o->letter)
        fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", out);
    print_plain(o->name, out);
    fputs("\\fR", out);
    if (o->value) {
        fputs(" \\fI", out);
        print_plain(o->value, out);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    print_plain(o->help, out);
    fputc('\n', out);
}

static void print_verb(const struct tec_verb *verb, FILE *out)
{
    const struct tec_command *c = verb->command;
    struct tec_option_group groups[TEC_MAX_GROUPS];
    int n = tec_shared_groups(groups, c, NULL, NULL);
    char page[64];
    snprintf(page, sizeof page, "tectum-%s", verb->name);
    print_head(page, verb->text, out);
    fputs(".B tectum\n", out);
    print_plain(c->usage, out);
    fputc('\n', out);
    if (c->about) {
        fputs(".SH DESCRIPTION\n", out);
        print_lines(c->about, out);
    }
    fputs(".SH OPTIONS\n", out);
    for (int g = 0; g < n; g++) {
        if (groups[g].n)
            fprintf(out, ".SS %s\n", groups[g].title);
        for (int i = 0; i < groups[g].n; i++)
            print_option(&groups[g].options[i], out);
    }
    fputs(".SH EXAMPLES\n", out);
    print_lines(c->example, out);
    fputs(".SH SEE ALSO\n.BR tectum (1)\n", out);
}

static void print_program(const struct tec_verbs *verbs, FILE *out)
{
    print_head("tectum", "vision-language-action models on robots, by the deadline", out);
    fputs(".B tectum\n.I VERB\n[options] [arguments]\n.SH VERBS\n", out);
    for (int i = 0; i < verbs->n; i++) {
        fprintf(out, ".TP\n.BR tectum\\-%s (1)\n", verbs->verb[i].name);
        print_plain(verbs->verb[i].text, out);
        fputc('\n', out);
    }
    fputs(".SH EXIT STATUS\n", out);
    print_lines(tec_help_exit_codes, out);
}

static enum tec_status write_program(const char *folder, const struct tec_verbs *verbs,
                                     struct tec_arena *arena, struct tec_error *err)
{
    struct tec_out_file out = {0};
    const char *path = tec_arena_printf(arena, "%s/tectum.1", folder);
    if (!path)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    TEC_TRY(tec_outfile_file_open(&out, path, err));
    print_program(verbs, out.file);
    return tec_outfile_file_keep(&out, err);
}

static enum tec_status write_verb(const char *folder, const struct tec_verb *verb,
                                  struct tec_arena *arena, struct tec_error *err)
{
    struct tec_out_file out = {0};
    const char *path = tec_arena_printf(arena, "%s/tectum-%s.1", folder, verb->name);
    if (!path)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    TEC_TRY(tec_outfile_file_open(&out, path, err));
    print_verb(verb, out.file);
    return tec_outfile_file_keep(&out, err);
}

/* Write the page of the program and one of each verb as FOLDER/NAME.1. */
static enum tec_status write_all(const char *folder, const struct tec_verbs *verbs,
                                 struct tec_arena *arena, struct tec_error *err)
{
    TEC_TRY(write_program(folder, verbs, arena, err));
    for (int i = 0; i < verbs->n; i++)
        TEC_TRY(write_verb(folder, &verbs->verb[i], arena, err));
    return TEC_OK;
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const struct man_options *o = call->options;
    const struct tec_verbs verbs = tec_verbs();
    if (o->out && call->args.n)
        return tec_fail(err, TEC_INVALID, "--out writes every page; leave '%s' away",
                        call->args.item[0]);
    if (o->out)
        return write_all(o->out, &verbs, call->arena, err);
    if (!call->args.n) {
        print_program(&verbs, call->out);
        return TEC_OK;
    }
    for (int i = 0; i < verbs.n; i++) /* `words` has refused what is no verb */
        if (strcmp(verbs.verb[i].name, call->args.item[0]) == 0)
            print_verb(&verbs.verb[i], call->out);
    return TEC_OK;
}

const struct tec_command tec_command_man = {
    .usage = "man [options] [VERB]",
    .about = "Without VERB the page of the program. `cmake --install` puts them all in place.\n",
    .example = "  tectum man run | man -l -\n"
               "  tectum man -o /usr/local/share/man/man1\n",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct man_options),
    .max_args = 1,
    .words = tec_command_verbs,
    .run = run,
};
