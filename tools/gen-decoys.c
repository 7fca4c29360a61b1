/* Turns the packs of rules/decoys into C tables: `gen-decoys OUT PACK…`. It is the parser of the
 * program itself, run once at build time, so that both can never disagree. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "decoy/pack.h"

static void put_pool(FILE *to, const aq_pack *p)
{
    fputs("static const char pool[] = {", to);
    for (uint32_t i = 0; i < p->pool_len; i++)
        fprintf(to, "%s%d,", i % 32 ? "" : "\n", p->pool[i]);
    fputs("};\n", to);
}

static void put_template(FILE *to, aq_template t)
{
    fprintf(to, "{%u,%u}", t.first, t.count);
}

static void put_named(FILE *to, const char *name, const aq_pack_named *rows, uint32_t count)
{
    fprintf(to, "static const aq_pack_named %s[] = {\n", name);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(to, "{%u,", rows[i].name);
        put_template(to, rows[i].text);
        fputs("},\n", to);
    }
    fputs("};\n", to);
}

static void put_rows(FILE *to, const aq_pack *p)
{
    fputs("static const aq_piece pieces[] = {\n", to);
    for (uint32_t i = 0; i < p->piece_count; i++)
        fprintf(to, "{%u,%u,%u,%u,%u},\n", p->pieces[i].kind, p->pieces[i].at, p->pieces[i].len,
                p->pieces[i].from, p->pieces[i].to);
    fputs("};\nstatic const aq_pack_decoy decoys[] = {\n", to);
    for (uint32_t i = 0; i < p->decoy_count; i++) {
        const aq_pack_decoy *d = &p->decoys[i];

        fprintf(to, "{%u,%u,%u,%u,", d->name, d->grade, d->function, d->key);
        put_template(to, d->text);
        fputs("},\n", to);
    }
    fputs("};\nstatic const aq_pack_file files[] = {\n", to);
    for (uint32_t i = 0; i < p->file_count; i++) {
        const aq_pack_file *f = &p->files[i];

        fprintf(to, "{%u,", f->source);
        put_template(to, f->path);
        fputc(',', to);
        put_template(to, f->body);
        fprintf(to, ",%u,%u,%u,%u},\n", f->mode, f->hours, f->kind, f->size);
    }
    fputs("};\nstatic const aq_pack_list lists[] = {\n", to);
    for (uint32_t i = 0; i < p->list_count; i++)
        fprintf(to, "{%u,%u,%u,%u},\n", p->lists[i].name, p->lists[i].words, p->lists[i].width,
                p->lists[i].count);
    fputs("};\n", to);
}

static int put(const char *path, const aq_pack *p)
{
    FILE *to = fopen(path, "w");

    if (!to)
        return -1;
    put_pool(to, p);
    put_rows(to, p);
    put_named(to, "env", p->env, p->env_count);
    put_named(to, "facts", p->facts, p->fact_count);
    fprintf(to,
            "static const aq_pack builtin = {pool, pieces, decoys, env, facts, files, lists,\n"
            "%u, %u, %u, %u, %u, %u, %u};\n",
            p->pool_len, p->piece_count, p->decoy_count, p->env_count, p->fact_count, p->file_count,
            p->list_count);
    return fclose(to);
}

int main(int argc, char **argv)
{
    aq_auto_arena a = aq_arena_new();
    aq_pack_maker *m = aq_pack_begin(NULL);
    const aq_pack *p = NULL;
    aq_err err = {0};
    int r = 0;

    for (int i = 2; i < argc && r == 0; i++) {
        aq_auto_buf text = {0};
        const char *slash = strrchr(argv[i], '/');

        r = aq_read_file(AT_FDCWD, argv[i], AQ_PACK_BYTES, &text, &err);
        if (r == 0) /* by its last name: what is built does not know where it was built */
            r = aq_pack_add(m, slash ? slash + 1 : argv[i], aq_buf_str(&text), text.len, &err);
    }
    if (r == 0)
        r = aq_pack_end(m, a, &p, &err);
    aq_pack_abort(m);
    if (r == 0 && argc > 2 && put(argv[1], p) == 0)
        return 0;
    fprintf(stderr, "gen-decoys: %s\n", err.text);
    return 1;
}
