/*
 * Every Slurm symbol that Lockstep touches, behind one function each: no logic, only what Rust cannot say (macros,
 * variadics, weak references).
 *
 * All of Slurm's symbols are weak here. Clients load the plugin too, and they lack slurmctld's functions and data: a
 * strong reference would keep the plugin from loading, a weak one is NULL. lockstep_missing_symbol() tells slurmctld
 * at start whether all of them are there; nothing below but lockstep_in_slurmctld(), lockstep_plugin_dir() and
 * lockstep_log() may be called elsewhere.
 */
#ifndef LOCKSTEP_SHIM_H
#define LOCKSTEP_SHIM_H

#include "src/slurmctld/slurmctld.h"

/* Flags whose macros bindgen cannot read. */
static const uint64_t lockstep_spread_job = SPREAD_JOB;
static const uint64_t lockstep_flex_reservation = RESERVE_FLAG_FLEX;
static const uint32_t lockstep_least_loaded = PART_FLAG_LLN;
static const uint32_t lockstep_powered_down = NODE_STATE_POWERED_DOWN;

/*
 * The reason of a waiting job whose words slurmctld leaves alone; made for select plugins, and used by nobody else since
 * the one it was made for is gone. And the reason that slurmctld gives itself.
 */
static const uint32_t lockstep_reason_in_words = WAIT_BLOCK_MAX_ERR;
static const uint32_t lockstep_reason_resources = WAIT_RESOURCES;

/* Whether this process is slurmctld; false where Slurm does not say. */
bool lockstep_in_slurmctld(void);

/* The name of a symbol that slurmctld should have and this process lacks; NULL if all are there. */
const char *lockstep_missing_symbol(void);

/* Logs one line through Slurm at a level of log_level_t; silent in a process without Slurm's log. */
void lockstep_log(int level, const char *message);

/* slurm.conf's PluginDir, colon separated; NULL in a process without Slurm's configuration. */
const char *lockstep_plugin_dir(void);

/* The path of slurm.conf. */
const char *lockstep_conf_path(void);

/* SelectTypeParameters: CR_* bits. */
uint16_t lockstep_select_parameters(void);

/* Whether DebugFlags has SelectType. */
bool lockstep_debugs_select(void);

/* How long slurmctld's node table is, holes included. */
int lockstep_node_count(void);

/* The node with this index; NULL where the table has a hole. */
node_record_t *lockstep_node(int index);

/* slurmctld's job list. */
List lockstep_jobs(void);

/* The job with this number; NULL if slurmctld does not know it. */
job_record_t *lockstep_find_job(uint32_t job_id);

/* Sets why a job waits, in words or without (NULL). */
void lockstep_set_reason(job_record_t *job, uint32_t reason, const char *words);

/* Sets the system's comment on a job. */
void lockstep_set_system_comment(job_record_t *job, const char *words);

/* How many entries a list has; 0 for NULL. */
int lockstep_list_count(List list);

/* Calls f for every entry of a list, in order, until it returns a negative number. */
void lockstep_for_each(List list, int (*f)(void *entry, void *arg), void *arg);

/* A new list of names with values, as slurmctld shows them and frees them. */
List lockstep_pairs_create(void);

/* Adds a name with its value, both copied. */
void lockstep_pairs_append(List pairs, const char *name, const char *value);

/* A new list that does not own its entries; NULL if there is no memory. */
List lockstep_list_create(void);

/* Adds an entry at a list's end. */
void lockstep_list_append(List list, void *entry);

/* Frees a list, not its entries. */
void lockstep_list_destroy(List list);

#endif
