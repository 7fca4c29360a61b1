/* What a package says about itself, brought from every kind of manifest to one model.
 *
 * Reading happens in a jailed child (job "manifest"), which sends the model as JSON; the front
 * reads that JSON as hostile. Fields that a manifest lacks are NULL or empty, never guessed. All
 * text in the model is quoted (base/text) and on one line. docs/formats/manifest.md says which file
 * speaks for a package. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "base/mem.h"
#include "model/capability.h"
#include "model/finding.h"
#include "model/package.h"

typedef enum aq_kind {
#define AQ_KIND(id, name, title) AQ_KIND_##id,
#include "model/kinds.def"
#undef AQ_KIND
    AQ_KIND_COUNT
} aq_kind;

typedef enum aq_type {
    AQ_TYPE_NONE,
#define AQ_TYPE(id, name) AQ_TYPE_##id,
#include "model/types.def"
#undef AQ_TYPE
    AQ_TYPE_COUNT
} aq_type;

const char *aq_kind_name(aq_kind kind);
const char *aq_kind_title(aq_kind kind);
const char *aq_type_name(aq_type type); /* "none" for AQ_TYPE_NONE */
int aq_type_find(const char *name, aq_type *ret);

/* A package that another names: member of a bundle, dependency, MCP server that is started. */
typedef struct aq_reference {
    const char *name, *version, *locator; /* path, URL or registry name */
    const char *sha256;                   /* hex, NULL when not pinned */
    const char *file;                     /* quoted path of the manifest that says so */
    uint32_t line;                        /* in that file */
} aq_reference;

/* Something that gets run: CLI, script, hook, MCP server, Wasm export. */
typedef struct aq_entry_point {
    const char *role;    /* "cli", "postinstall", "hook:PreToolUse", "mcp:stdio", "wasm" … */
    const char *command; /* as written */
    const char *matcher; /* of a hook: the tools it is for, as written; NULL: all, or no hook */
    const char *file;    /* quoted path of the manifest that says so */
    uint32_t line;       /* in that file */
} aq_entry_point;

typedef struct aq_manifest {
    aq_kind kind;
    const char *dialect; /* "arc/v1", "pai/v1", "metafactory/v1", "agent-skill", "claude-plugin",
                            "claude-marketplace", "mcp-server.json", "mcp-config", "package.json",
                            "pyproject", "wasm", "arc-bundle"; NULL when there is none */
    const char *file;    /* quoted path of the manifest, NULL when there is none */
    aq_type type;
    const char *name, *namespace_, *version, *description, *license, *author, *homepage, *tier;
    const char *readme;       /* quoted path of the README that speaks for the package, or NULL */
    const char *license_file; /* likewise */
    aq_capabilities declared; /* what was said */
    aq_capabilities implied;  /* what the manifests start, whatever was said; see capability.md */
    aq_entry_point *entry_points;
    size_t entry_point_count;
    aq_reference *references;
    size_t reference_count;
    uint64_t members;  /* of a collection without a manifest of its own; 0 otherwise */
    const char **also; /* quoted paths of further manifests in the package (skills of a plugin) */
    size_t also_count;
} aq_manifest;

/* Finds and reads the manifest of `package` whose contents are mapped at `image`. Problems of the
 * package are appended as findings of intake. Pure: no file, no clock. */
int aq_manifest_detect(aq_arena *a, const aq_package *package, const unsigned char *image,
                       aq_findings *findings, aq_manifest *ret, aq_err *err);

json_t *aq_manifest_json(const aq_manifest *m);
/* Reads what aq_manifest_json made, from the hostile side. */
int aq_manifest_read(aq_arena *a, const json_t *from, aq_manifest *ret, aq_err *err);
