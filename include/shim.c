#include "config.h"

#include "shim.h"
#include "src/common/read_config.h"
#include "src/common/run_in_daemon.h"
#include "src/common/xmalloc.h"
#include "src/common/xstring.h"

#pragma weak running_in_slurmctld
#pragma weak slurm_conf
#pragma weak node_record_table_ptr
#pragma weak node_record_count
#pragma weak job_list
#pragma weak find_job_record
#pragma weak list_count
#pragma weak list_for_each
#pragma weak list_create
#pragma weak list_append
#pragma weak list_destroy
#pragma weak destroy_config_key_pair
#pragma weak slurm_xcalloc
#pragma weak last_job_update
#pragma weak slurm_xfree
#pragma weak xstrdup

/* The alias that libslurm and libslurmfull both export. */
extern void slurm_log_var(const log_level_t level, const char *format, ...) __attribute__((weak));

bool lockstep_in_slurmctld(void)
{
	return running_in_slurmctld && running_in_slurmctld();
}

const char *lockstep_missing_symbol(void)
{
#define NEED(symbol) do { if (!&symbol) return #symbol; } while (0)
	NEED(slurm_log_var);
	NEED(slurm_conf);
	NEED(node_record_table_ptr);
	NEED(node_record_count);
	NEED(job_list);
	NEED(find_job_record);
	NEED(list_count);
	NEED(list_for_each);
	NEED(list_create);
	NEED(list_append);
	NEED(list_destroy);
	NEED(destroy_config_key_pair);
	NEED(slurm_xcalloc);
	NEED(last_job_update);
	NEED(slurm_xfree);
	NEED(xstrdup);
#undef NEED
	return NULL;
}

void lockstep_log(int level, const char *message)
{
	if (slurm_log_var)
		slurm_log_var(level, "%s", message);
}

const char *lockstep_plugin_dir(void)
{
	return &slurm_conf ? slurm_conf.plugindir : NULL;
}

const char *lockstep_conf_path(void)
{
	return slurm_conf.slurm_conf;
}

uint16_t lockstep_select_parameters(void)
{
	return slurm_conf.select_type_param;
}

bool lockstep_debugs_select(void)
{
	return slurm_conf.debug_flags & DEBUG_FLAG_SELECT_TYPE;
}

int lockstep_node_count(void)
{
	return node_record_count;
}

node_record_t *lockstep_node(int index)
{
	return node_record_table_ptr[index];
}

List lockstep_jobs(void)
{
	return job_list;
}

job_record_t *lockstep_find_job(uint32_t job_id)
{
	return find_job_record(job_id);
}

void lockstep_set_reason(job_record_t *job, uint32_t reason, const char *words)
{
	xfree(job->state_desc);
	job->state_desc = xstrdup(words);
	job->state_reason = reason;
	last_job_update = time(NULL);
}

void lockstep_set_system_comment(job_record_t *job, const char *words)
{
	xfree(job->system_comment);
	job->system_comment = xstrdup(words);
	last_job_update = time(NULL);
}

int lockstep_list_count(List list)
{
	return list ? list_count(list) : 0;
}

void lockstep_for_each(List list, int (*f)(void *entry, void *arg), void *arg)
{
	if (list)
		(void) list_for_each(list, f, arg);
}

List lockstep_list_create(void)
{
	return list_create(NULL);
}

void lockstep_list_append(List list, void *entry)
{
	(void) list_append(list, entry);
}

void lockstep_list_destroy(List list)
{
	list_destroy(list);
}

List lockstep_pairs_create(void)
{
	return list_create(destroy_config_key_pair);
}

void lockstep_pairs_append(List pairs, const char *name, const char *value)
{
	config_key_pair_t *pair = xmalloc(sizeof(*pair));

	pair->name = xstrdup(name);
	pair->value = xstrdup(value);
	(void) list_append(pairs, pair);
}
