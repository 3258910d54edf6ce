/* cmd_completion.c - prints the script with which a shell completes tectum's verbs, options and
 * what may follow them. The script is made from the tables of verbs and options and the names of
 * the policies, and asks the program nothing later. */
#include "tools/cli/help.h"
#include "tools/cli/offers.h"
#include "tools/cli/shared.h"

#include <string.h>

/* What the script is made from. */
struct script {
    const struct tec_verbs *verbs;
    const char *policies;
    struct tec_arena *arena;
    FILE *out;
};

/* Print the words of "a|b|c" with a space between them. */
static void print_words(const char *words, FILE *out)
{
    for (; *words; words++)
        fputc(*words == '|' ? ' ' : *words, out);
}

/* Print `text` inside single quotes, in which `also` is escaped with a backslash as well. */
static void print_quoted(const char *text, const char *also, const char *quote, FILE *out)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs(quote, out);
            continue;
        }
        if (strchr(also, *text))
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void print_verb_names(const struct tec_verbs *verbs, FILE *out)
{
    for (int i = 0; i < verbs->n; i++)
        fprintf(out, "%s%s", i ? " " : "", verbs->verb[i].name);
}

/* --- bash ----------------------------------------------------------------------------------- */

/* The assignments that say what is offered; `ends` is / for folders alone, * for any file. */
static void bash_offers(const struct tec_offers *o, FILE *out)
{
    fputs("words='", out);
    print_words(o->words ? o->words : "", out);
    fputs("' ends='", out);
    if (o->ends)
        print_words(*o->ends ? o->ends : "*", out);
    else if (o->folders)
        fputc('/', out);
    fputc('\'', out);
}

static void bash_option(const struct script *s, const struct tec_option *o)
{
    const struct tec_offers offers = tec_offers_of(o, s->policies, s->arena);
    if (!o->value)
        return;
    if (o->letter)
        fprintf(s->out, "        -%c | --%s) ", o->letter, o->name);
    else
        fprintf(s->out, "        --%s) ", o->name);
    bash_offers(&offers, s->out);
    fputs(" ;;\n", s->out);
}

static void bash_verb(const struct script *s, const struct tec_verb *verb)
{
    struct tec_option_group groups[TEC_MAX_GROUPS];
    const struct tec_offers arguments = tec_offers_arguments(verb->command, s->policies, s->arena);
    int n = tec_shared_groups(groups, verb->command, NULL, NULL);
    fprintf(s->out, "    %s)\n        options='", verb->name);
    for (int g = 0; g < n; g++)
        for (int i = 0; i < groups[g].n; i++)
            fprintf(s->out, " --%s", groups[g].options[i].name);
    fputs("'\n        ", s->out);
    bash_offers(&arguments, s->out);
    fputc('\n', s->out);
    if (verb->command->words) {
        fputs("        [ \"$COMP_CWORD\" -ne 2 ] || words='", s->out);
        print_words(verb->command->words, s->out);
        fputs("' ends=''\n", s->out);
    }
    fputs("        case $before in\n", s->out);
    for (int g = 0; g < n; g++)
        for (int i = 0; i < groups[g].n; i++)
            bash_option(s, &groups[g].options[i]);
    fputs("        esac ;;\n", s->out);
}

static void print_bash(const struct script *s)
{
    fputs("# bash completion of tectum; made by `tectum completion bash`\n"
          "_tectum() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local words='' options='' ends='' end\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W '",
          s->out);
    print_verb_names(s->verbs, s->out);
    fputs(" --help --version' -- \"$word\"))\n"
          "        return\n"
          "    fi\n"
          "    case ${COMP_WORDS[1]} in\n",
          s->out);
    for (int i = 0; i < s->verbs->n; i++)
        bash_verb(s, &s->verbs->verb[i]);
    fputs("    esac\n"
          "    if [ \"${word:0:1}\" = - ]; then\n"
          "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
          "        return\n"
          "    fi\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "    case $ends in\n"
          "    '') ;; # no files\n"
          "    '*') COMPREPLY+=($(compgen -f -- \"$word\")) ;;\n"
          "    *)\n"
          "        for end in $ends; do\n"
          "            [ \"$end\" = / ] || COMPREPLY+=($(compgen -f -X \"!*.$end\" -- \"$word\"))\n"
          "        done\n"
          "        COMPREPLY+=($(compgen -d -- \"$word\")) ;;\n"
          "    esac\n"
          "}\n"
          "complete -o filenames -F _tectum tectum\n",
          s->out);
}

/* --- zsh ------------------------------------------------------------------------------------ */

/* The action of _arguments that offers it. */
static void zsh_offers(const struct tec_offers *o, bool policy, FILE *out)
{
    if (policy)
        fputs("_tectum_policies", out);
    else if (o->words && o->ends && *o->ends) {
        fputs("{compadd -- ", out);
        print_words(o->words, out);
        fprintf(out, "; _files -g \"*.(%s)\"}", o->ends);
    } else if (o->words && !o->folders) {
        fputc('(', out);
        print_words(o->words, out);
        fputc(')', out);
    } else if (o->folders)
        fputs("_files -/", out);
    else if (o->ends && *o->ends)
        fprintf(out, "_files -g \"*.(%s)\"", o->ends);
    else if (o->ends)
        fputs("_files", out);
}

/* One option as a specification of _arguments: '(-o --out)'{-o,--out}'[help]:FILE:_files'. */
static void zsh_option(const struct script *s, const struct tec_option *o)
{
    const char *many = o->type == TEC_OPTION_LIST ? "*" : "";
    const struct tec_offers offers = tec_offers_of(o, s->policies, s->arena);
    if (o->letter)
        fprintf(s->out, " \\\n            '(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter,
                o->name);
    else
        fprintf(s->out, " \\\n            '%s--%s[", many, o->name);
    print_quoted(o->help, "[]\\", "'\\''", s->out);
    fputc(']', s->out);
    if (o->value) {
        fprintf(s->out, ":%s:", o->name);
        zsh_offers(&offers, strcmp(o->name, "policy") == 0, s->out);
    }
    fputc('\'', s->out);
}

static void zsh_verb(const struct script *s, const struct tec_verb *verb)
{
    struct tec_option_group groups[TEC_MAX_GROUPS];
    int n = tec_shared_groups(groups, verb->command, NULL, NULL);
    const struct tec_offers arguments = tec_offers_arguments(verb->command, s->policies, s->arena);
    fprintf(s->out, "    %s)\n        _arguments", verb->name);
    for (int g = 0; g < n; g++)
        for (int k = 0; k < groups[g].n; k++)
            zsh_option(s, &groups[g].options[k]);
    if (verb->command->words) {
        fputs(" \\\n            '1: :(", s->out);
        print_words(verb->command->words, s->out);
        fputs(")'", s->out);
    }
    fputs(" \\\n            '*:file:", s->out);
    zsh_offers(&arguments, false, s->out);
    fputs("' ;;\n", s->out);
}

static void print_zsh(const struct script *s)
{
    fputs("#compdef tectum\n# zsh completion of tectum; made by `tectum completion zsh`\n"
          "_tectum_policies() {\n    compadd -- ",
          s->out);
    print_words(s->policies, s->out);
    fputs("\n    _files -g \"*.lua\"\n}\n"
          "_tectum() {\n    local -a verbs\n    verbs=(\n",
          s->out);
    for (int i = 0; i < s->verbs->n; i++) {
        fprintf(s->out, "        '%s:", s->verbs->verb[i].name);
        print_quoted(s->verbs->verb[i].text, ":\\", "'\\''", s->out);
        fputs("'\n", s->out);
    }
    fputs("    )\n"
          "    if ((CURRENT == 2)); then\n"
          "        _describe verb verbs\n"
          "        return\n"
          "    fi\n"
          "    local verb=$words[2]\n"
          "    words=(\"tectum $verb\" \"${(@)words[3,-1]}\")\n"
          "    ((CURRENT--))\n"
          "    case $verb in\n",
          s->out);
    for (int i = 0; i < s->verbs->n; i++)
        zsh_verb(s, &s->verbs->verb[i]);
    fputs("    esac\n}\ncompdef _tectum tectum\n", s->out);
}

/* --- fish ----------------------------------------------------------------------------------- */

/* What fish adds to the names of files that it offers by itself (-F), or in their place (-x). */
static void fish_offers(const struct tec_offers *o, FILE *out)
{
    fputs(o->ends && !*o->ends ? " -r -F" : " -x", out);
    if (!o->words && !o->folders && !(o->ends && *o->ends))
        return;
    fputs(" -a '", out);
    if (o->words)
        print_words(o->words, out);
    if (o->folders)
        fputs(" (__fish_complete_directories)", out);
    for (const char *end = o->ends; end && *end; end += end[0] == '|') {
        int n = (int)strcspn(end, "|");
        fprintf(out, " (__fish_complete_suffix .%.*s)", n, end);
        end += n;
    }
    fputc('\'', out);
}

static void fish_option(const struct script *s, const char *verb, const struct tec_option *o)
{
    const struct tec_offers offers = tec_offers_of(o, s->policies, s->arena);
    fprintf(s->out, "complete -c tectum -n '__fish_seen_subcommand_from %s' -l %s", verb, o->name);
    if (o->letter)
        fprintf(s->out, " -s %c", o->letter);
    if (o->value)
        fish_offers(&offers, s->out);
    fputs(" -d '", s->out);
    print_quoted(o->help, "\\", "\\'", s->out);
    fputs("'\n", s->out);
}

/* The first argument of a verb that has `words`, and then what else its arguments may be. */
static void fish_arguments(const struct script *s, const struct tec_verb *verb)
{
    const struct tec_offers o = tec_offers_arguments(verb->command, s->policies, s->arena);
    if (!verb->command->words)
        return;
    fprintf(s->out, "complete -c tectum -n '__fish_seen_subcommand_from %s' -a '", verb->name);
    print_words(verb->command->words, s->out);
    fputs("'\n", s->out);
    if (!o.words)
        return;
    fprintf(s->out, "complete -c tectum -n '__fish_seen_subcommand_from %s' -a '", verb->name);
    print_words(o.words, s->out);
    fputs("'\n", s->out);
}

static void print_fish(const struct script *s)
{
    fputs("# fish completion of tectum; made by `tectum completion fish`\n", s->out);
    for (int i = 0; i < s->verbs->n; i++) {
        const struct tec_verb *verb = &s->verbs->verb[i];
        struct tec_option_group groups[TEC_MAX_GROUPS];
        int n = tec_shared_groups(groups, verb->command, NULL, NULL);
        fprintf(s->out, "complete -c tectum -f -n __fish_use_subcommand -a %s -d '", verb->name);
        print_quoted(verb->text, "\\", "\\'", s->out);
        fputs("'\n", s->out);
        for (int g = 0; g < n; g++)
            for (int k = 0; k < groups[g].n; k++)
                fish_option(s, verb->name, &groups[g].options[k]);
        fish_arguments(s, verb);
    }
}

static const struct {
    const char *name;
    void (*print)(const struct script *script);
} shells[] = {{"bash", print_bash}, {"fish", print_fish}, {"zsh", print_zsh}};

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const struct tec_verbs verbs = tec_verbs();
    struct tec_error absent;
    (void)err; /* the name is one of `words` */
    /* Without the program's files there are no names of policies. */
    bool found = tec_cli_need_root(call, &absent) == TEC_OK;
    const struct script script = {.verbs = &verbs,
                                  .policies =
                                      tec_offers_policies(found ? call->root : NULL, call->arena),
                                  .arena = call->arena,
                                  .out = call->out};
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(call->args.item[0], shells[i].name) == 0)
            shells[i].print(&script);
    return TEC_OK;
}

const struct tec_command tec_command_completion = {
    .usage = "completion SHELL",
    .about = "SHELL is bash, fish or zsh. The script completes verbs, options\n"
             "and what may follow them: words, policies, files by their ending, folders.\n",
    .example = "  tectum completion bash > ~/.local/share/bash-completion/completions/tectum\n"
               "  tectum completion fish > ~/.config/fish/completions/tectum.fish\n"
               "  source <(tectum completion zsh)\n",
    .min_args = 1,
    .max_args = 1,
    .args = "the name of a shell",
    .words = "bash|fish|zsh",
    .run = run,
};
