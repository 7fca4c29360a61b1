/* The survey inside the jail: collects the list of files, maps the image, runs the two passes over
 * it and answers with one frame of JSON. It trusts nobody: a record that does not fit into the
 * image ends the job. */
#include "cleanroom/survey_job.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cleanroom/survey_core.h"
#include "model/package.h"

typedef struct list {
    aq_arena *arena;
    aq_file *items;
    size_t count, cap;
} list;

static void append(list *l, const aq_survey_record *record, const char *path)
{
    if (l->count == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 256;
        l->items = aq_realloc(l->items, l->cap, sizeof *l->items);
    }
    l->items[l->count++] = (aq_file){
        .path = aq_arena_strndup(l->arena, path, record->path),
        .offset = record->offset,
        .size = record->size,
    };
}

static int read_records(list *l, const char *data, size_t len, uint64_t image, aq_err *err)
{
    while (len > 0) {
        aq_survey_record record;
        if (len < sizeof record)
            return aq_fail(err, -EBADMSG, "survey: a record is cut off");
        memcpy(&record, data, sizeof record);
        data += sizeof record;
        len -= sizeof record;
        if (record.path > len || record.size > image || record.offset > image - record.size)
            return aq_fail(err, -EBADMSG, "survey: a record is outside the image");
        append(l, &record, data);
        data += record.path;
        len -= record.path;
    }
    return 0;
}

static int receive(aq_jail_io *io, list *l, uint64_t image, aq_err *err)
{
    int fds[AQ_JAIL_FRAME_FDS], r;
    const void *payload;
    size_t len, fd_count;
    uint16_t type;

    while ((r = aq_jail_recv(io, &type, &payload, &len, fds, &fd_count, err)) == 0) {
        if (type != AQ_SURVEY_FILES || fd_count)
            return aq_fail(err, -EBADMSG, "survey: unknown request %u", type);
        if ((r = read_records(l, payload, len, image, err)) < 0)
            return r;
    }
    return r == -ENODATA ? 0 : r;
}

static void survey_all(const list *l, const unsigned char *image, aq_survey *ret)
{
    aq_survey_scan *scan = aq_survey_scan_new();

    for (size_t i = 0; i < l->count; i++)
        aq_survey_count(scan, l->items[i].path, image + l->items[i].offset, l->items[i].size);
    for (size_t i = 0; i < l->count; i++)
        aq_survey_score(scan, l->items[i].path, image + l->items[i].offset, l->items[i].size);
    aq_survey_finish(scan, l->arena, ret);
    aq_survey_scan_free(scan);
}

/* The JSON library opens /dev/urandom for the seed of its hash tables, once: before the lock. */
void aq_survey_job_warm(void)
{
    json_object_seed(0);
}

int aq_survey_job_run(aq_jail_io *io, aq_err *err)
{
    aq_auto_arena arena = aq_arena_new();
    aq_auto_json json_t *answer = NULL;
    aq_auto_buf text = {0};
    list l = {.arena = arena};
    aq_package package = {.image = aq_jail_fd(io, 0)};
    const unsigned char *image = NULL;
    off_t size = lseek(package.image, 0, SEEK_END); /* the jail allows no fstat() */
    aq_survey survey;
    int r;

    if (size < 0)
        return aq_fail_errno(err, "survey: the image");
    package.bytes = (uint64_t)size;
    if ((r = receive(io, &l, package.bytes, err)) < 0 ||
        (r = aq_package_map(&package, &image, err)) < 0) {
        free(l.items);
        return r;
    }
    survey_all(&l, image ? image : (const unsigned char *)"", &survey);
    aq_package_unmap(&package, image);
    free(l.items);
    answer = aq_survey_json(&survey);
    if ((r = aq_json_canonical(answer, &text)) < 0)
        return aq_fail(err, r, "survey: the answer could not be written");
    return aq_jail_send(io, AQ_SURVEY_RESULT, text.data, text.len, err);
}

const aq_jail_job aq_survey_job = {
    .name = "survey",
    .run = aq_survey_job_run,
    .memory = (uint64_t)AQ_SURVEY_MEMORY_MB << 20,
    .seconds = AQ_SURVEY_SECONDS,
    .warm = aq_survey_job_warm,
};
