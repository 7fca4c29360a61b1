/* Git over HTTP (smart, protocol versions 0 and 2); see git.h. Objects are stored, not deflated, so
 * that both worlds of a seed send packs of the same length. */
#include "internet/git.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "internet/fill.h"

enum { COMMIT = 1, TREE = 2, BLOB = 3, SHA1 = 20 };

typedef struct repository {
    aq_buf readme, license, tree, commit;
    uint8_t id[SHA1]; /* of the commit */
    char hex[2 * SHA1 + 1];
} repository;

static void object_id(const char *type, const aq_buf *data, uint8_t ret[static SHA1])
{
    aq_auto_buf all = {0};
    unsigned len = SHA1;

    aq_buf_addf(&all, "%s %zu", type, data->len);
    aq_buf_addc(&all, 0);
    aq_buf_add(&all, data->data, data->len);
    if (EVP_Digest(all.data, all.len, ret, &len, EVP_sha1(), NULL) != 1)
        aq_panic("SHA-1 failed");
}

static void add_file(repository *r, const char *name, const aq_buf *data)
{
    uint8_t id[SHA1];

    object_id("blob", data, id);
    aq_buf_addf(&r->tree, "100644 %s", name);
    aq_buf_addc(&r->tree, 0);
    aq_buf_add(&r->tree, id, sizeof id);
}

static void make(aq_ask *q, repository *r)
{
    aq_auto_buf hex = {0};
    uint8_t tree[SHA1];
    aq_scene s;
    /* The same repository for every request: nothing but its path counts. */
    aq_ask same = *q;
    size_t path = strcspn(q->path, "?");
    const char *info = strstr(q->path, "/info/refs"), *pack = strstr(q->path, "/git-");

    *r = (repository){0};
    path = info ? (size_t)(info - q->path) : pack ? (size_t)(pack - q->path) : path;
    same.target = aq_arena_strndup(q->arena, q->path, path);
    same.body = (aq_buf){0};
    aq_scene_begin(&s, q->conn, &same, "git");
    aq_fill(&s, "# %{own.word:8}\n\n%{prose:24}\n\n%{prose:18}\n", &r->readme);
    aq_fill(&s, "Copyright (c) %{own.word:7} %{own.word:9}\n\n%{prose:60}\n", &r->license);
    add_file(r, "LICENSE", &r->license);
    add_file(r, "README.md", &r->readme);
    object_id("tree", &r->tree, tree);
    aq_hex(tree, sizeof tree, &hex);
    aq_buf_addf(&r->commit, "tree %s\n", aq_buf_str(&hex));
    aq_fill(&s,
            "author %{own.word:6} <%{own.word:6}@users.noreply.example.com> 1718021%{pair.digits:3}"
            " +0000\n",
            &r->commit);
    aq_fill(&s,
            "committer %{own.word:6} <%{own.word:6}@users.noreply.example.com> "
            "1718021%{pair.digits:3} +0000\n\nInitial commit\n",
            &r->commit);
    object_id("commit", &r->commit, r->id);
    for (size_t i = 0; i < SHA1; i++)
        snprintf(r->hex + 2 * i, 3, "%02x", r->id[i]);
}

static void release(repository *r)
{
    aq_buf_free(&r->readme);
    aq_buf_free(&r->license);
    aq_buf_free(&r->tree);
    aq_buf_free(&r->commit);
}

static void put_line(aq_buf *out, const char *text, size_t len)
{
    aq_buf_addf(out, "%04zx", len + 4);
    aq_buf_add(out, text, len);
}

/* ---- version 2 ---- */

static bool wants_two(const aq_ask *q)
{
    const char *wish = aq_ask_header(q, "git-protocol");

    return wish && strstr(wish, "version=2");
}

static bool says(const aq_ask *q, const char *text)
{
    return q->body.len > 0 && memmem(q->body.data, q->body.len, text, strlen(text));
}

static void put_text(aq_buf *out, const char *text)
{
    put_line(out, text, strlen(text));
}

static void put_abilities(aq_buf *out)
{
    put_text(out, "version 2\n");
    put_text(out, "agent=git/2.45.2\n");
    put_text(out, "ls-refs=unborn\n");
    put_text(out, "fetch=shallow wait-for-done\n");
    put_text(out, "server-option\n");
    put_text(out, "object-format=sha1\n");
    aq_buf_adds(out, "0000");
}

/* Does a ref begin with one of the prefixes that were asked for, if any were? */
static bool wanted(const aq_ask *q, const char *ref)
{
    static const char key[] = "ref-prefix ";
    const char *at = q->body.data, *end = at + q->body.len;

    if (!says(q, key))
        return true;
    while (at < end && (at = memmem(at, (size_t)(end - at), key, sizeof key - 1))) {
        size_t n = 0;

        at += sizeof key - 1;
        while (at + n < end && (unsigned char)at[n] > ' ' && n < strlen(ref) + 1)
            n++;
        if (n <= strlen(ref) && strncmp(at, ref, n) == 0)
            return true;
    }
    return false;
}

static void put_ref(const aq_ask *q, const repository *repo, const char *ref, const char *more,
                    aq_buf *out)
{
    aq_auto_buf line = {0};

    if (!wanted(q, ref))
        return;
    aq_buf_addf(&line, "%s %s%s\n", repo->hex, ref, more);
    put_line(out, line.data, line.len);
}

static void list_refs(const aq_ask *q, const repository *repo, aq_buf *out)
{
    put_ref(q, repo, "HEAD", says(q, "symrefs") ? " symref-target:refs/heads/main" : "", out);
    put_ref(q, repo, "refs/heads/main", "", out);
    aq_buf_adds(out, "0000");
}

/* In pieces on the first of three channels. */
static void put_pack(aq_buf *out, const aq_buf *pack)
{
    enum { PIECE = 65515 };

    put_text(out, "packfile\n");
    for (size_t at = 0; at < pack->len; at += PIECE) {
        size_t n = pack->len - at < PIECE ? pack->len - at : PIECE;

        aq_buf_addf(out, "%04zx", n + 5);
        aq_buf_addc(out, 1);
        aq_buf_add(out, pack->data + at, n);
    }
    aq_buf_adds(out, "0000");
}

static void fetch_two(const aq_ask *q, const aq_buf *pack, aq_buf *out)
{
    if (!says(q, "done")) {
        put_text(out, "acknowledgments\n");
        put_text(out, "NAK\n");
        aq_buf_adds(out, "0000");
        return;
    }
    put_pack(out, pack);
}

/* ---- both ---- */

static bool usual_headers(aq_reply *r, const char *type)
{
    aq_reply_header(r, "Content-Type", type);
    aq_reply_header(r, "Cache-Control", "no-cache, max-age=0, must-revalidate");
    return true;
}

bool aq_git_refs(aq_ask *q, aq_reply *r)
{
    const char *service = aq_ask_query(q, "service");
    aq_auto_buf line = {0};
    repository repo;
    bool receive;

    if (!service ||
        (strcmp(service, "git-upload-pack") != 0 && strcmp(service, "git-receive-pack") != 0))
        return false;
    receive = strcmp(service, "git-receive-pack") == 0;
    make(q, &repo);
    aq_buf_addf(&line, "# service=%s\n", service);
    put_line(&r->body, line.data, line.len);
    aq_buf_adds(&r->body, "0000");
    line.len = 0;
    if (!receive && wants_two(q)) {
        put_abilities(&r->body);
        release(&repo);
        return usual_headers(r, "application/x-git-upload-pack-advertisement");
    }
    aq_buf_addf(&line, "%s %s", repo.hex, receive ? "refs/heads/main" : "HEAD");
    aq_buf_addc(&line, 0);
    aq_buf_addf(&line, "%s object-format=sha1 agent=git/2.45.2\n",
                receive ? "report-status delete-refs ofs-delta"
                        : "shallow no-progress include-tag symref=HEAD:refs/heads/main");
    put_line(&r->body, line.data, line.len);
    line.len = 0;
    aq_buf_addf(&line, "%s refs/heads/main\n", repo.hex);
    if (!receive)
        put_line(&r->body, line.data, line.len);
    aq_buf_adds(&r->body, "0000");
    line.len = 0;
    aq_buf_addf(&line, "application/x-%s-advertisement", service);
    release(&repo);
    return usual_headers(r, aq_buf_str(&line));
}

/* Type and size in groups of bits, then the object as zlib stores it. */
static void put_object(aq_buf *out, unsigned type, const aq_buf *data)
{
    size_t size = data->len >> 4;
    unsigned first = type << 4 | (unsigned)(data->len & 15);
    uint8_t packed[8192];
    uLongf len = sizeof packed;

    aq_buf_addc(out, (char)(first | (size ? 0x80u : 0)));
    while (size) {
        unsigned next = size & 127;

        size >>= 7;
        aq_buf_addc(out, (char)(next | (size ? 0x80u : 0)));
    }
    if (compress2(packed, &len, (const Bytef *)data->data, data->len, Z_NO_COMPRESSION) != Z_OK)
        aq_panic("an object of the repository is too large");
    aq_buf_add(out, packed, len);
}

static void make_pack(const repository *repo, aq_buf *pack)
{
    uint8_t sum[SHA1];
    unsigned len = SHA1;

    aq_buf_add(pack, "PACK\0\0\0\2\0\0\0\4", 12);
    put_object(pack, COMMIT, &repo->commit);
    put_object(pack, TREE, &repo->tree);
    put_object(pack, BLOB, &repo->readme);
    put_object(pack, BLOB, &repo->license);
    if (EVP_Digest(pack->data, pack->len, sum, &len, EVP_sha1(), NULL) != 1)
        aq_panic("SHA-1 failed");
    aq_buf_add(pack, sum, SHA1);
}

bool aq_git_upload(aq_ask *q, aq_reply *r)
{
    bool done = says(q, "done"), shallow = says(q, "deepen ");
    aq_auto_buf pack = {0};
    repository repo;

    make(q, &repo);
    make_pack(&repo, &pack);
    if (wants_two(q)) {
        if (says(q, "command=ls-refs"))
            list_refs(q, &repo, &r->body);
        else
            fetch_two(q, &pack, &r->body);
        release(&repo);
        return usual_headers(r, "application/x-git-upload-pack-result");
    }
    if (shallow)
        aq_buf_adds(&r->body, "0000"); /* the only commit has no parent to leave out */
    if (done || !shallow)
        put_line(&r->body, "NAK\n", 4);
    if (done)
        aq_buf_add(&r->body, pack.data, pack.len);
    release(&repo);
    return usual_headers(r, "application/x-git-upload-pack-result");
}

/* "OLD NEW refs/…" in the first lines; each is told to be taken. */
bool aq_git_receive(aq_ask *q, aq_reply *r)
{
    size_t at = 0;

    aq_reply_header(r, "Content-Type", "application/x-git-receive-pack-result");
    put_line(&r->body, "unpack ok\n", 10);
    for (int refs = 0; refs < 64 && at + 4 <= q->body.len; refs++) {
        aq_auto_buf line = {0};
        size_t len = 0, name;

        for (size_t i = 0; i < 4; i++) {
            const char *all = "0123456789abcdef", *d;

            d = q->body.data[at + i] ? strchr(all, q->body.data[at + i]) : NULL;
            if (!d)
                return aq_buf_adds(&r->body, "0000"), true;
            len = len << 4 | (size_t)(d - all);
        }
        if (len < 4 + 82 || at + len > q->body.len)
            break;
        name = strnlen(q->body.data + at + 86, len - 86);
        aq_buf_adds(&line, "ok ");
        for (size_t i = 0; i < name && i < 200; i++)
            if (q->body.data[at + 86 + i] > ' ')
                aq_buf_addc(&line, q->body.data[at + 86 + i]);
        aq_buf_addc(&line, '\n');
        put_line(&r->body, line.data, line.len);
        at += len;
    }
    aq_buf_adds(&r->body, "0000");
    return true;
}
