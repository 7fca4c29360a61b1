/* What the commands share: a command describes itself in one struct, from which parsing, --help and
 * completion follow; and a few ways of speaking to people. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"
#include "cleanroom/report.h"
#include "cleanroom/walk.h"

/* Exit statuses, the same for every command. 0…3 are verdicts. */
enum { AQ_EXIT_USAGE = 64, AQ_EXIT_OURS = 70 };

typedef struct aq_option {
    const char *name;     /* without dashes */
    const char *argument; /* "FILE", or NULL for a flag */
    const char *help;
} aq_option;

enum { AQ_OPTIONS = 24, AQ_ANY_NUMBER = 1 << 20 };

/* A parsed command line. `value[i]` belongs to option i: NULL when not given, "" for a flag. */
typedef struct aq_args {
    const char *value[AQ_OPTIONS];
    char **operand; /* borrowed from argv */
    size_t operands;
    char **rest; /* what follows --, of a command that takes a command; NULL-terminated */
} aq_args;

/* A sub-command ("ledger prove"), or a plain word that completion offers (run NULL). */
typedef struct aq_act {
    const char *name;
    int (*run)(aq_home *home, const aq_args *args);
    const char *needs;  /* what its operands are, for the message; NULL when it has none */
    size_t least, most; /* operands behind its name */
} aq_act;

typedef struct aq_command {
    const char *name, *summary;
    const char *usage;        /* what follows "aquarium NAME" */
    const char *description;  /* a paragraph or two */
    const aq_option *options; /* ended by an empty row */
    const aq_act *acts;       /* ended by an empty row, or NULL */
    const char *examples;
    const char *exits; /* NULL: the verdict table */
    size_t min_operands, max_operands;
    bool takes_command;              /* what follows -- is a command line of its own */
    int (*run)(const aq_args *args); /* returns the exit status */
} aq_command;

#define AQ_COMMAND(id) extern const aq_command aq_command_##id;
#include "cli/commands.def"
#undef AQ_COMMAND

/* All of them, NULL-terminated. */
extern const aq_command *const aq_commands[];

/* 0, or the exit status to leave with (help was printed, or usage was wrong and said so). The
 * options every command has (--json, --state, --help) are added here. */
enum { AQ_PARSE_RUN = -1 };
int aq_args_parse(const aq_command *c, int argc, char **argv, aq_args *ret);
/* The value of option `name`; NULL when not given. */
const char *aq_arg(const aq_command *c, const aq_args *a, const char *name);
bool aq_flag(const aq_command *c, const aq_args *a, const char *name);
/* The act that the first operand names, with as many operands as it takes; NULL after saying what
 * there is or what it needs. */
const aq_act *aq_act_find(const aq_command *c, const aq_args *a);
void aq_command_help(const aq_command *c, aq_buf *out);
/* The manual page of a command, and of the program, as roff. */
void aq_command_man(const aq_command *c, aq_buf *out);
void aq_overview_man(aq_buf *out);
/* What 0…3, 64 and 70 mean. */
extern const char aq_verdict_exits[];

/* The words of the report, a line each. */
#define AQ_LEGEND_LINE(word, blanks, means) "\n  " word blanks means
#define AQ_LEGEND                           "Words of the report, worst first:" AQ_LEGEND_ROWS(AQ_LEGEND_LINE)

/* "aquarium: …" on standard error; returns the status. */
int aq_say_usage(const aq_command *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int aq_say_failed(const aq_err *err);

/* First of all: nothing that is opened takes the place of a standard stream; a reader who goes away
 * and a file that may not grow are errors like others; we take what we need of the caller's
 * limits. */
void aq_begin(void);

/* Opens the state folder of --state; with `make` an absent one is made. AQ_PARSE_RUN, or the status
 * to leave with after saying what is wrong. */
int aq_open_home(const aq_command *c, const aq_args *args, bool make, aq_home *ret);

/* ---- output.c ---- */

/* Writes to standard output, or to `path` when given and not "-"; -errno with `err` set. A file
 * appears whole or not at all; devices, FIFOs and descriptors (/dev/fd/N) are written into. A pipe
 * that was closed by its reader is not an error. */
int aq_put(const char *path, const void *data, size_t len, aq_err *err);
int aq_put_json(const char *path, const json_t *value, aq_err *err);
/* One line, for streams of objects. */
int aq_put_json_line(const json_t *value, aq_err *err);
/* Does `path` mean standard output? */
bool aq_output_is_stdout(const char *path);
/* Can something be written to `path`? AQ_PARSE_RUN with `*real` set to the file's true path (NULL
 * for what is no file; the caller frees), or the status after saying why not. */
int aq_output_check(const aq_command *c, const char *option, const char *path, char **real);
/* Is `path` the folder `folder` or in it? Both true paths. */
bool aq_path_within(const char *path, const char *folder);

/* Colour: --color always|never, else NO_COLOR, TERM=dumb and whether the stream is a terminal. */
bool aq_colour(const char *choice, int fd);
unsigned aq_terminal_width(int fd);
/* "30d", "12h", "90m", "5s" in seconds; -EINVAL. */
int aq_parse_span(const char *text, int64_t *ret);
