/* How the readers of the dialects share their work. One reader a dialect: it gets one file and
 * fills one aq_manifest; manifest.c finds the files, decides who speaks, and merges. Room-private.
 */
#pragma once

#include "base/doc.h"
#include "model/manifest.h"

enum {
    AQ_MANIFEST_ITEMS = 1024, /* entry points, references, further manifests */
    AQ_MANIFEST_NAME = 256,   /* bytes of names and versions */
    AQ_MANIFEST_TEXT = 2048,  /* bytes of descriptions and commands */
    AQ_MANIFEST_PATH = 4096,
};

typedef struct aq_reading {
    aq_arena *a;
    const aq_package *package;
    const unsigned char *image;
    aq_findings *findings;
    const aq_file *file; /* the one that is read */
    const char *root;    /* folder it speaks for, "" or with a slash at its end */
    const char *matcher; /* quoted, of the hook that is read; NULL: none */
    aq_manifest *m;
} aq_reading;

typedef int aq_doc_reader(aq_arena *, const char *, size_t, const char *, const aq_node **,
                          aq_err *);

/* Reads the file as a document; a failure becomes a finding and -EBADMSG. */
int aq_reading_doc(aq_reading *r, aq_doc_reader *read, const aq_node **ret);
const char *aq_reading_text(const aq_reading *r, const aq_file *file, size_t *len);
/* A finding about a line of the file that is read. */
void aq_reading_note(aq_reading *r, aq_rule_id rule, uint32_t line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The finding for text that no reader accepts; `why` may start with "name:line:column: ". */
void aq_reading_unreadable(aq_reading *r, const char *name, const char *why);
/* The file that `path`, written in the manifest, means; NULL with a finding when there is none. */
const aq_file *aq_reading_file(aq_reading *r, const char *path, uint32_t line);

/* Text of a scalar of any kind (version: 1.10 keeps its text), quoted and bounded; NULL when it is
 * no scalar, null or empty. Text on several lines becomes one. */
const char *aq_reading_scalar(aq_reading *r, const aq_node *node, size_t max);
const char *aq_reading_field(aq_reading *r, const aq_node *map, const char *key, size_t max);
/* "name <mail>", {name: …} or the first of a list of these. */
const char *aq_reading_person(aq_reading *r, const aq_node *node);

void aq_reading_entry(aq_reading *r, const char *role, const char *command, uint32_t line);
/* An entry point that is a command line: it implies that commands are run, and a role
 * "hook:EVENT" that the host calls the package. */
void aq_reading_command(aq_reading *r, const char *role, const char *command, uint32_t line);
/* The host calls the package at `event`, where the matcher of the reading fits. */
void aq_reading_event(aq_reading *r, const char *event);
/* An entry point that is a URL: it implies that its host is talked to. */
void aq_reading_remote(aq_reading *r, const char *role, const char *url, uint32_t line);
void aq_reading_reference(aq_reading *r, aq_reference ref);
/* Adds a pattern; one without canonical form is a finding. */
void aq_reading_capability(aq_reading *r, aq_capability group, const char *pattern, uint32_t line);
/* A list of texts, one text, a list of {key: text}, or true/false for all/none. */
void aq_reading_patterns(aq_reading *r, aq_capability group, const aq_node *node,
                         const char *const *keys);
/* Text of a hook's matcher; NULL when it matches everything. */
const char *aq_reading_matcher(aq_reading *r, const aq_node *hook);
/* "Bash(git:*), Read" or a list of such. */
void aq_reading_tools(aq_reading *r, const aq_node *tools);
/* Splits "@scope/name" and drops the sigil. */
void aq_reading_identity(aq_reading *r, const char *name, const char *namespace_);

/* Hook and MCP server tables, wherever they stand. */
void aq_reading_hooks(aq_reading *r, const aq_node *root);
void aq_reading_servers(aq_reading *r, const aq_node *root);

int aq_read_arc(aq_reading *r);
int aq_read_bundle(aq_reading *r);
int aq_read_skill(aq_reading *r);
int aq_read_component(aq_reading *r); /* command or agent of a plugin: a page with front matter */
int aq_read_plugin(aq_reading *r);
int aq_read_marketplace(aq_reading *r);
int aq_read_hooks(aq_reading *r); /* hooks/hooks.json that no plugin.json stands beside */
int aq_read_server(aq_reading *r);
int aq_read_npm(aq_reading *r);
int aq_read_python(aq_reading *r);
int aq_read_mcp_config(aq_reading *r);
int aq_read_wasm(aq_reading *r);

/* Is there anything in this hooks/hooks.json that an agent could run? */
bool aq_is_hooks(aq_reading *r);
/* Does this file say that the package is an MCP server? Silent: problems are told when it is read.
 */
bool aq_is_mcp_server_json(aq_reading *r);
bool aq_is_mcp_npm(aq_reading *r);
bool aq_is_mcp_python(aq_reading *r);
