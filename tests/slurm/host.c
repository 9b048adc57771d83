/*
 * Loads a select plugin as a Slurm client does, and says what it found: nothing of slurmctld is in this process.
 *
 * host PLUGIN [LIBRARY]: LIBRARY (libslurmfull) is made global first, as in a client that links it.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	/* RTLD_NOW is harder than Slurm's own RTLD_LAZY: one symbol that must be there and is not would fail it. */
	if (argc > 2 && !dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL))
		return printf("library: %s\n", dlerror()), 2;
	void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!plugin)
		return printf("dlopen: %s\n", dlerror()), 2;

	uint32_t *id = dlsym(plugin, "plugin_id"), *version = dlsym(plugin, "plugin_version");
	const char *type = dlsym(plugin, "plugin_type");
	int (*init)(void) = (int (*)(void)) dlsym(plugin, "init");
	void (*fini)(void) = (void (*)(void)) dlsym(plugin, "fini");
	if (!id || !version || !type || !init || !fini)
		return printf("a symbol is missing\n"), 2;

	/* A call before init() must be an error, not a jump to nowhere. */
	int (*ready)(void *) = (int (*)(void *)) dlsym(plugin, "select_p_job_ready");
	printf("before init: %d\n", ready(NULL));
	int code = init();
	printf("init: %d, id %u, type %s, version %#x\n", code, *id, type, *version);
	if (!code) {
		/* Clients make, pack and free such records through the plugin. */
		void *(*alloc)(void) = (void *(*)(void)) dlsym(plugin, "select_p_select_nodeinfo_alloc");
		int (*release)(void *) = (int (*)(void *)) dlsym(plugin, "select_p_select_nodeinfo_free");
		void *record = alloc();
		printf("record: %s, freed: %d\n", record ? "made" : "none", release(record));
		fini();
		printf("again: %d\n", init());
	}
	fini();
	printf("closed: %d\n", dlclose(plugin));
	return 0;
}
